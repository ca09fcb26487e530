import iconv from "iconv-lite";

/** A reader of octets in a charset, piece by piece: the part of TextDecoder that is used. */
export interface Decoder {
  readonly encoding: string;
  decode: (octets?: Uint8Array, options?: { stream?: boolean }) => string;
}

/**
 * Returns a decoder of a charset that messages use but the runtime does not know, because browsers do not. These are
 * UTF-7, ISO-2022-KR, HZ and the DOS code pages. Returns null for any other.
 * @param charset in lower case
 */
export function rareDecoderOf(charset: string): Decoder | null {
  return BY_NAME.get(charset)?.() ?? codePageOf(charset);
}

/** Translates a charset's octets into one that the runtime knows. It may start within a character. */
type Transcode = (octet: number, into: number[]) => void;

function transcoder(encoding: string, target: "utf-16be" | "euc-kr" | "gbk", transcode: Transcode): Decoder {
  // The declarations list only a few labels.
  const decoder = new TextDecoder(target as ConstructorParameters<typeof TextDecoder>[0]);
  return {
    encoding,
    decode: (octets = new Uint8Array(0), { stream = false } = {}) => {
      const known: number[] = [];
      for (const octet of octets) transcode(octet, known);
      return decoder.decode(Uint8Array.from(known), { stream });
    },
  };
}

const [LF, SHIFT_OUT, SHIFT_IN, ESCAPE] = [0x0a, 0x0e, 0x0f, 0x1b];
const [DOLLAR, BRACKET, LETTER_C, PLUS, MINUS, OPEN, TILDE, CLOSE] = [
  0x24, 0x29, 0x43, 0x2b, 0x2d, 0x7b, 0x7e, 0x7d,
];
const DESIGNATION: readonly number[] = [ESCAPE, DOLLAR, BRACKET, LETTER_C];

/** RFC 1557: EUC-KR without its eighth bits, between two shifts. */
function iso2022Kr(): Decoder {
  let shifted = false;
  let designated = 0;
  return transcoder("iso-2022-kr", "euc-kr", (octet, into) => {
    designated = octet === DESIGNATION[designated] ? designated + 1 : octet === ESCAPE ? 1 : 0;
    if (designated > 0) {
      if (designated === DESIGNATION.length) designated = 0;
      return;
    }
    if (octet === SHIFT_OUT) shifted = true;
    else if (octet === SHIFT_IN) shifted = false;
    else {
      // Each line begins in ASCII.
      if (octet === LF) shifted = false;
      into.push(shifted && isDoubled(octet) ? octet | 0x80 : octet);
    }
  });
}

/** RFC 1843: GB 2312 without its eighth bits, between "~{" and "~}". */
function hz(): Decoder {
  let shifted = false;
  let escaped = false;
  let within = false;
  return transcoder("hz-gb-2312", "gbk", (octet, into) => {
    if (escaped) {
      escaped = false;
      if (octet === OPEN || octet === CLOSE) shifted = octet === OPEN;
      else if (octet === TILDE) into.push(TILDE);
      else if (octet !== LF) into.push(TILDE, octet);
      return;
    }
    if (octet === TILDE && !within) {
      escaped = true;
      return;
    }
    if (octet === LF) shifted = false;
    within = shifted && !within && isDoubled(octet);
    into.push(shifted && isDoubled(octet) ? octet | 0x80 : octet);
  });
}

/** Returns whether an octet can be one of the two of a character. */
function isDoubled(octet: number): boolean {
  return octet > 0x20 && octet < 0x7f;
}

/**
 * RFC 2152: UTF-16 in base64, between "+" and the first character outside base64. The code page library knows it too,
 * but takes three seconds for ten megabytes of short runs. This takes half a second.
 */
function utf7(): Decoder {
  let encoded = false;
  let empty = false;
  let bits = 0;
  let held = 0;
  /** Returns the octets of the encoded run. An odd one at its end is padding. */
  let run: number[] = [];
  return transcoder("utf-7", "utf-16be", (octet, into) => {
    const digit = encoded ? BASE64.indexOf(String.fromCharCode(octet)) : -1;
    if (digit >= 0) {
      empty = false;
      held = ((held << 6) | digit) & 0x3fff;
      bits += 6;
      if (bits < 8) return;
      bits -= 8;
      run.push((held >> bits) & 0xff);
      if (run.length === 2) into.push(...run.splice(0));
      return;
    }
    if (encoded) {
      encoded = false;
      run = [];
      if (octet === MINUS) {
        if (empty) into.push(0, PLUS);
        return;
      }
    }
    if (octet === PLUS) {
      encoded = true;
      empty = true;
      bits = 0;
      held = 0;
    } else into.push(0, octet);
  });
}

const BASE64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/** Names of DOS code pages: `cp850`, `IBM00858`, `csPC850Multilingual`. The MIME reader knows the East Asian ones. */
const PAGE_NAME = /^(?:x-)?(?:cs)?(?:cp|ibm|pcp?|pc8codepage)?-?0*((?!9[345]\d)\d{3,4})(?:multilingual)?$/;

/** Returns a decoder of the code page with that name. */
function codePageOf(charset: string): Decoder | null {
  const encoding = `cp${PAGE_NAME.exec(charset)?.[1] ?? ""}`;
  return iconv.encodingExists(encoding) ? libraryDecoder(encoding) : null;
}

function libraryDecoder(encoding: string): Decoder {
  const decoder = iconv.getDecoder(encoding);
  return {
    encoding,
    decode: (octets = new Uint8Array(0), { stream = false } = {}) => {
      const text = decoder.write(Buffer.from(octets.buffer, octets.byteOffset, octets.byteLength));
      return stream ? text : text + (decoder.end() ?? "");
    },
  };
}

const BY_NAME: ReadonlyMap<string, () => Decoder> = new Map([
  ...["utf-7", "unicode-1-1-utf-7", "csunicode11utf7", "utf7"].map((name) => [name, utf7] as const),
  ...["iso-2022-kr", "csiso2022kr"].map((name) => [name, iso2022Kr] as const),
  ...["hz-gb-2312", "hz", "hz-gb2312"].map((name) => [name, hz] as const),
  ...["utf-32", "utf-32le", "utf-32be"].map((name) => [name, () => libraryDecoder(name)] as const),
]);
