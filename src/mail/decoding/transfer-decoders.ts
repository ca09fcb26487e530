/** The encoding of a body (RFC 2045 §6). */
export type Encoding = "identity" | "quoted-printable" | "base64";

/** Maximum octets that a decoder may hold back from one piece and give with the next. */
export const MAX_KEPT_BACK = 80;

/**
 * Decodes the next octets of a body into memory that has room for them, each line end twice, and `MAX_KEPT_BACK`
 * more. Null ends the body.
 * Returns the number of decoded octets.
 */
export type Decode = (octets: Uint8Array | null, into: Uint8Array) => number;

/** How the lines of a decoded body end: with LF alone in text, and with CRLF in a file (RFC 2045 §6.7 rule 4). */
export type LineEnd = "lf" | "crlf";

/** @param name as the part names it; an unknown one decodes nothing */
export function encodingOf(name: string): Encoding {
  if (/base64/i.test(name)) return "base64";
  return /quoted-printable/i.test(name) ? "quoted-printable" : "identity";
}

/** Makes a decoder for one body. */
export const DECODERS: Readonly<Record<Exclude<Encoding, "identity">, (lineEnd: LineEnd) => Decode>> = {
  base64: base64Decoder,
  "quoted-printable": quotedPrintableDecoder,
};

const [TAB, LF, CR, SPACE, EQUALS] = [0x09, 0x0a, 0x0d, 0x20, 0x3d];
/** The mark of an octet that is no digit. */
const NONE = 255;

/** The value of each octet as a digit. */
const HEX_DIGITS = Uint8Array.from({ length: 256 }, (_, octet) => hexDigit(octet));
const BASE64_DIGITS = Uint8Array.from({ length: 256 }, (_, octet) => base64Digit(octet));

function hexDigit(octet: number): number {
  const lower = octet | 0x20;
  if (octet >= 0x30 && octet <= 0x39) return octet - 0x30;
  return lower >= 0x61 && lower <= 0x66 ? lower - 0x61 + 10 : NONE;
}

function base64Digit(octet: number): number {
  if (octet >= 0x41 && octet <= 0x5a) return octet - 0x41;
  if (octet >= 0x61 && octet <= 0x7a) return octet - 0x61 + 26;
  if (octet >= 0x30 && octet <= 0x39) return octet - 0x30 + 52;
  if (octet === 0x2b) return 62;
  return octet === 0x2f ? 63 : NONE;
}

const [PLAIN, ESCAPE, HALF_ESCAPE, PADDED] = [0, 1, 2, 3];
/** Maximum white space after a soft line break that counts as added in transit: at most one line. */
const MAX_PADDING = 76;

/** Decodes quoted-printable (RFC 2045 §6.7). Text that is no escape is content. An escaped line end stays as it is. */
function quotedPrintableDecoder(lineEnd: LineEnd): Decode {
  let state = PLAIN;
  let first = 0;
  const padding = new Uint8Array(MAX_PADDING);
  let padded = 0;
  return (octets, into) => {
    let size = 0;
    for (let at = 0; octets !== null && at < octets.length; at++) {
      const octet = octets[at] ?? 0;
      const digit = state === PLAIN ? NONE : (HEX_DIGITS[octet] ?? NONE);
      if (state === PLAIN) {
        if (octet === EQUALS) state = ESCAPE;
        else {
          if (octet === LF && lineEnd === "crlf") into[size++] = CR;
          into[size++] = octet;
        }
      } else if (state === ESCAPE && (digit !== NONE || octet === LF)) {
        // A line that ends so continues in the next one.
        state = octet === LF ? PLAIN : HALF_ESCAPE;
        first = octet;
      } else if (
        (octet === SPACE || octet === TAB) &&
        (state === ESCAPE || (state === PADDED && padded < MAX_PADDING))
      ) {
        if (state === ESCAPE) padded = 0;
        padding[padded++] = octet;
        state = PADDED;
      } else if (state === PADDED && octet === LF) state = PLAIN;
      else if (state === HALF_ESCAPE && digit !== NONE) {
        into[size++] = ((HEX_DIGITS[first] ?? 0) << 4) | digit;
        state = PLAIN;
      } else {
        into[size++] = EQUALS;
        if (state === HALF_ESCAPE) into[size++] = first;
        if (state === PADDED) for (let space = 0; space < padded; space++) into[size++] = padding[space] ?? 0;
        state = octet === EQUALS ? ESCAPE : PLAIN;
        if (octet === LF && lineEnd === "crlf") into[size++] = CR;
        if (state === PLAIN) into[size++] = octet;
      }
    }
    return size;
  };
}

/**
 * Decodes base64 (RFC 2045 §6.8). Padding ends a group anywhere; octets that are no digits are skipped. Plain text
 * that a list or a relay added below the body is ignored. After padding and an empty line, that is all text. Else it
 * is a line that begins with no digit, below padding or an empty line.
 */
function base64Decoder(): Decode {
  let group = 0;
  let digits = 0;
  /** Line ends since the last digit or padding. */
  let lineEnds = 0;
  let began = false;
  let padded = false;
  let over = false;
  return (octets, into) => {
    let size = 0;
    const end = (): void => {
      if (digits === 3) into[size++] = group >> 10;
      if (digits === 2) into[size++] = group >> 4;
      if (digits === 3) into[size++] = group >> 2;
      digits = 0;
      group = 0;
    };
    for (let at = 0; octets !== null && !over && at < octets.length; at++) {
      const octet = octets[at] ?? 0;
      const digit = BASE64_DIGITS[octet] ?? NONE;
      if (digit !== NONE) {
        if (lineEnds > 0) {
          over = padded && lineEnds > 1;
          if (over) break;
          lineEnds = 0;
        }
        began = true;
        padded = false;
        group = (group << 6) | digit;
        if (++digits < 4) continue;
        into[size++] = group >> 16;
        into[size++] = group >> 8;
        into[size++] = group;
        digits = 0;
        group = 0;
      } else if (octet === EQUALS) {
        end();
        padded = began;
        lineEnds = 0;
      } else if (octet === LF) {
        if (began) lineEnds++;
      } else if (octet !== SPACE && octet !== TAB && octet !== CR) over = lineEnds > (padded ? 0 : 1);
    }
    if (octets === null || over) end();
    return size;
  };
}
