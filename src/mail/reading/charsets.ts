import { isAscii, isUtf8 } from "node:buffer";
import PostalMime from "postal-mime";
import type { Reader } from "./mime-part.ts";
import type { Decoder } from "./rare-charsets.ts";

/** Names of ASCII; programs that know of no locale call so whatever they write. */
export const ASCII_NAMES: ReadonlySet<string> = new Set(["us-ascii", "ascii", "ansi_x3.4-1968"]);

/** A decoder of the charset; null where its name is not known. */
export function decoderOf(charset: string): TextDecoder | null {
  try {
    // The declarations know a few labels alone.
    return new TextDecoder(charset as ConstructorParameters<typeof TextDecoder>[0]);
  } catch {
    return null;
  }
}

/** The encodings there are, but for those that decode as another one does. The MIME reader's own choice comes first. */
const ENCODINGS: readonly string[] = [
  ...["windows-1252", "shift_jis", "gb18030", "euc-kr", "big5", "euc-jp", "iso-2022-jp", "utf-8"],
  ...["windows-1250", "windows-1251", "windows-1253", "windows-1254", "windows-1255", "windows-1256"],
  ...["windows-1257", "windows-1258", "windows-874", "koi8-r", "koi8-u", "ibm866", "macintosh"],
  ...["iso-8859-2", "iso-8859-3", "iso-8859-4", "iso-8859-5", "iso-8859-6", "iso-8859-7", "iso-8859-8"],
  ...["iso-8859-10", "iso-8859-13", "iso-8859-14", "iso-8859-15", "iso-8859-16"],
  ...["x-mac-cyrillic", "x-user-defined", "utf-16le", "utf-16be"],
];

const [HIGH, LF] = [0x80, 0x0a];
/** Two kanji, as any two encodings of several octets read them otherwise, and one of ISO-2022-JP. */
const KANJI = Uint8Array.of(0xb0, 0xa1, LF, 0x8a, 0xbf, LF, 0x1b, 0x24, 0x42, 0x30, 0x21, 0x1b, 0x28, 0x42);

/** Octets that no two encodings read alike: each from 80 to FF on a line of its own, and kanji. */
function tellingOctets(): Uint8Array {
  const octets = new Uint8Array(2 * HIGH + KANJI.length).fill(LF);
  for (let at = 0; at < HIGH; at++) octets[2 * at] = HIGH + at;
  octets.set(KANJI, 2 * HIGH);
  return octets;
}

/**
 * A decoder of what the MIME reader takes a charset for: it knows more names, such as cp932, and has an answer for every
 * one. Itself it would decode a body as a whole.
 */
export function decoderAsRead(charset: string): TextDecoder {
  // The reader's declarations leave its parts out.
  const { root } = new PostalMime() as unknown as Reader;
  root.contentType.parsed.params = { charset };
  const octets = tellingOctets();
  root.content = octets;
  const read = root.getTextContent();
  for (const encoding of ENCODINGS) {
    const decoder = decoderOf(encoding);
    if (decoder?.decode(octets) === read) return decoder;
  }
  return new TextDecoder("windows-1252");
}

/**
 * The decoder that a text is to be read by, which may name its charset by mistake: what is called UTF-8 and has no character
 * of it beyond ASCII is what old programs write, and what is called Latin and has characters of UTF-8 alone is that.
 * @param beginning its first octets
 */
export function decoderFor(named: Decoder, beginning: Uint8Array): Decoder {
  if (named.encoding === "windows-1252") {
    const octets = withoutCutCharacter(beginning);
    return !isAscii(octets) && isUtf8(octets) ? new TextDecoder() : named;
  }
  if (named.encoding !== "utf-8" || isUtf8(withoutCutCharacter(beginning))) return named;
  const hasUtf8 = /[^\0-\x7f\ufffd]/.test(new TextDecoder().decode(beginning));
  return hasUtf8 ? named : new TextDecoder("windows-1252");
}

/** Octets of a character of UTF-8, at most. */
const MAX_UTF8_OCTETS = 4;

/** The octets up to the last character, if they may go on in the midst of it. */
function withoutCutCharacter(octets: Uint8Array): Uint8Array {
  for (let at = octets.length - 1; at >= Math.max(0, octets.length - MAX_UTF8_OCTETS); at--) {
    const octet = octets[at] ?? 0;
    if (octet < HIGH) return octets;
    if (octet >= 0xc0) return octets.subarray(0, at);
  }
  return octets;
}
