import { isAscii, isUtf8 } from "node:buffer";
import { openReader } from "./mime-part.ts";
import { type Decoder, rareDecoderOf } from "./rare-charsets.ts";

/** Names of ASCII. Programs that know no locale give their text this name, whatever it is. */
export const ASCII_NAMES: ReadonlySet<string> = new Set(["us-ascii", "ascii", "ansi_x3.4-1968"]);

/** Returns a decoder of the charset, or null if its name is unknown in any spelling. */
export function decoderNamed(charset: string): Decoder | null {
  const name = charset.trim().toLowerCase();
  return decoderByName(name) ?? decoderByName(charsetName(name));
}

function decoderByName(name: string): Decoder | null {
  return decoderOf(name) ?? rareDecoderOf(name);
}

/** Returns a decoder of the charset, or null if the runtime does not know its name. */
export function decoderOf(charset: string): TextDecoder | null {
  try {
    // The declarations list only a few labels.
    return new TextDecoder(charset as ConstructorParameters<typeof TextDecoder>[0]);
  } catch {
    return null;
  }
}

/** The known encodings, without those that decode like another one. The MIME reader's own choice comes first. */
const ENCODINGS: readonly string[] = [
  "windows-1252",
  "shift_jis",
  "gb18030",
  "euc-kr",
  "big5",
  "euc-jp",
  "iso-2022-jp",
  "utf-8",
  "windows-1250",
  "windows-1251",
  "windows-1253",
  "windows-1254",
  "windows-1255",
  "windows-1256",
  "windows-1257",
  "windows-1258",
  "windows-874",
  "koi8-r",
  "koi8-u",
  "ibm866",
  "macintosh",
  "iso-8859-2",
  "iso-8859-3",
  "iso-8859-4",
  "iso-8859-5",
  "iso-8859-6",
  "iso-8859-7",
  "iso-8859-8",
  "iso-8859-10",
  "iso-8859-13",
  "iso-8859-14",
  "iso-8859-15",
  "iso-8859-16",
  "x-mac-cyrillic",
  "x-user-defined",
  "utf-16le",
  "utf-16be",
];

const [HIGH, LF] = [0x80, 0x0a];
/**
 * Two kanji in an encoding of several octets, which any other such encoding reads differently, and one of
 * ISO-2022-JP.
 */
const KANJI = Uint8Array.of(0xb0, 0xa1, LF, 0x8a, 0xbf, LF, 0x1b, 0x24, 0x42, 0x30, 0x21, 0x1b, 0x28, 0x42);

/** Octets that no two encodings read alike: each from 80 to FF on its own line, and kanji. */
function tellingOctets(): Uint8Array {
  const octets = new Uint8Array(2 * HIGH + KANJI.length).fill(LF);
  for (let at = 0; at < HIGH; at++) octets[2 * at] = HIGH + at;
  octets.set(KANJI, 2 * HIGH);
  return octets;
}

/**
 * Returns a decoder of the encoding that the MIME reader takes for a charset. It knows more names, such as cp932, and
 * answers every one. By itself it would decode a body as a whole.
 */
export function decoderAsRead(charset: string): TextDecoder {
  const { root } = openReader();
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
 * Returns the decoder for a body whose charset may be wrongly named. Text named UTF-8 without any of its characters
 * beyond ASCII is in an encoding of old programs. Text named Latin with only UTF-8 characters is UTF-8. A byte
 * order mark of UTF-16 decides in any of them.
 * @param beginning its first octets
 */
export function decoderFor(named: Decoder, beginning: Uint8Array): Decoder {
  const marked = /^utf-(?:8|16)|^windows-1252$/.test(named.encoding) ? utf16Mark(beginning) : null;
  if (marked !== null) return marked;
  if (named.encoding.startsWith("utf-16")) return utf16Ordered(named, beginning);
  if (named.encoding === "windows-1252") {
    const octets = withoutCutCharacter(beginning);
    return !isAscii(octets) && isUtf8(octets) ? new TextDecoder() : named;
  }
  if (named.encoding !== "utf-8" || isUtf8(withoutCutCharacter(beginning))) return named;
  const hasUtf8 = /[^\0-\x7f\ufffd]/.test(new TextDecoder().decode(beginning));
  return hasUtf8 ? named : new TextDecoder("windows-1252");
}

/** Returns the decoder that a byte order mark asks for (RFC 2781 §4.3). Null without one. */
function utf16Mark([first, second]: Uint8Array): Decoder | null {
  if (first === 0xfe && second === 0xff) return new TextDecoder("utf-16be");
  return first === 0xff && second === 0xfe ? new TextDecoder("utf-16le") : null;
}

/** Maximum octets of unmarked UTF-16 that are searched for zeros. */
const MAX_ORDER_OCTETS = 1024;

/** Returns the decoder of UTF-16 without a mark: the zeros of ASCII characters show the order of its octets. */
function utf16Ordered(named: Decoder, beginning: Uint8Array): Decoder {
  const zeros = [0, 0];
  for (const [at, octet] of beginning.subarray(0, MAX_ORDER_OCTETS).entries())
    if (octet === 0) zeros[at % 2] = (zeros[at % 2] ?? 0) + 1;
  const [even = 0, odd = 0] = zeros;
  return even === odd ? named : new TextDecoder(even > odd ? "utf-16be" : "utf-16le");
}

/**
 * Returns the text of octets that name no charset, as in a header. It is UTF-8 (RFC 6532), even if a character is
 * broken or cut. Otherwise it is windows-1252, which old programs write without naming it.
 */
export function unnamedText(octets: Uint8Array): string {
  const text = new TextDecoder("utf-8", { ignoreBOM: true }).decode(octets);
  const count = (kind: RegExp): number => text.match(kind)?.length ?? 0;
  const [broken, whole] = [count(/\ufffd/g), count(/[^\0-\x7f\ufffd]/g)];
  const isCut = whole > 0 && isUtf8(withoutCutCharacter(octets));
  return isCut || whole > broken ? text : new TextDecoder("windows-1252").decode(octets);
}

/** Maximum octets of a character of UTF-8. */
const MAX_UTF8_OCTETS = 4;

/** Returns the octets up to the last whole character, if the text may continue. */
function withoutCutCharacter(octets: Uint8Array): Uint8Array {
  for (let at = octets.length - 1; at >= Math.max(0, octets.length - MAX_UTF8_OCTETS); at--) {
    const octet = octets[at] ?? 0;
    if (octet < HIGH) return octets;
    if (octet >= 0xc0) return octets.subarray(0, at);
  }
  return octets;
}

/** Spellings of charset names that messages use and the runtime does not know, each with the name it knows. */
const SPELLINGS: readonly (readonly [pattern: RegExp, name: string])[] = [
  [/^(?:unicode-?[\d-]*)?utf-?8(?:-?mb[34]|n|-?sig|-?bom|-?strict|-?unicode(?:-ci)?)?$/, "utf-8"],
  [/^(?:unicode-?[\d-]*)?utf-?7$/, "utf-7"],
  [/^utf-?16-?(be|le)?$/, "utf-16$1"],
  [/^ucs-?2-?(be|le)?$/, "utf-16$1"],
  [/^(?:utf-?32|ucs-?4)-?(be|le)?$/, "utf-32$1"],
  [/^(?:win(?:dows)?|w|ansi|ms|microsoft)?-?(?:cp|code-?page)?-?(125\d|874)$/, "windows-$1"],
  [/^(?:ansi|ms-?ansi|win(?:dows)?-?(?:latin-?1|ansi))$/, "windows-1252"],
  [/^(?:iso)?-?8859-?(\d{1,2})(?:[-:].*)?$/, "iso-8859-$1"],
  [/^(?:iso-?)?latin-?([1-6])$/, "latin$1"],
  [/^latin-?7$/, "iso-8859-13"],
  [/^latin-?8$/, "iso-8859-14"],
  [/^latin-?[09]$/, "iso-8859-15"],
  [/^latin-?10$/, "iso-8859-16"],
  [/^koi-?8(?:-?(?:u|ru))$/, "koi8-u"],
  [/^koi-?8(?:-?r)?$/, "koi8-r"],
  [/^mac(?:intosh|-?os)?-?(?:roman)?$/, "macintosh"],
  [/^mac-?cyrillic$/, "x-mac-cyrillic"],
  [/^(?:dos|oem|ms-?dos|code-?page)-?(\d{3})$/, "cp$1"],
  [/^(?:gb-?k|gb-?2312(?:-?80)?)$/, "gbk"],
  [/^gb-?18030(?:-?\d{4})?$/, "gb18030"],
  [/^big-?5(?:-?(?:hkscs|eten|tw))?$/, "big5"],
  [/^s(?:hift)?-?jis$/, "shift_jis"],
  [/^euc-?(jp|kr)$/, "euc-$1"],
  [/^(?:iso-?2022-?jp(?:-?\w+)?|jis-?7?)$/, "iso-2022-jp"],
];

/**
 * Returns a charset's name as the runtime knows it, if it is only spelled differently: in quotes, with other
 * separators, or as databases and programming languages write it. Otherwise returns it in lower case.
 */
function charsetName(written: string): string {
  const bare = written.toLowerCase().replace(/^[^a-z\d]+|[^a-z\d]+$/g, "");
  const plain = bare.replace(/^(?:x|cs)-/, "").replace(/[\s_.]+/g, "-");
  for (const [pattern, name] of SPELLINGS) if (pattern.test(plain)) return plain.replace(pattern, name);
  return bare;
}
