import { isAscii, isUtf8 } from "node:buffer";
import { isAsciiText } from "../../core/text.ts";
import { ASCII_NAMES, decoderFor, decoderNamed, decoderOf } from "./charsets.ts";
import type { Decoder } from "./rare-charsets.ts";

/** An encoded word. Programs leave question marks in its text unescaped; the length of such a word is limited. */
const WORD = /=\?([^?\s*]{1,60})(?:\*[^?\s]{0,20})?\?([bq])\?([^?\s]*|(?:[^?\s]|\?(?!=)){1,300})\?=/gi;
const BASE64_WORDS = /=\?([^?\s]{1,60})\?b\?[a-z0-9+/]*={0,2}\?=(?:\s+=\?\1\?b\?[a-z0-9+/]*={0,2}\?=)+/gi;

/** An encoded word at the end of a value that was cut within it. */
const CUT_WORD = /(=\?[^?\s*]{1,60}\?[bq]\?[^?\s]{1,300})\??$/i;

/**
 * Charsets in which each word starts in a known state: with a mark, or in ASCII after escapes. Joining two such words
 * would break them.
 */
const STARTS_FRESH = /^(?:cs)?(?:x-)?(?:iso-?2022|utf-?16|ucs-?2|unicode)/i;

/**
 * Returns encoded words (RFC 2047) in the form their reader knows. Words of base64 in a row become one: many programs
 * begin the next one within a character, although §5 forbids it.
 */
export function joinedWords(value: string): string {
  if (!value.includes("=?")) return value;
  if (!value.includes("=?")) return value;
  return value
    .replace(CUT_WORD, "$1?=")
    .replace(WORD, knownWord)
    .replace(BASE64_WORDS, (words: string, charset: string) => {
      if (STARTS_FRESH.test(charset)) return words;
      const octets = words.split(/\s+/).map((word) => Buffer.from(word.split("?")[3] ?? "", "base64"));
      return `=?${charset}?B?${Buffer.concat(octets).toString("base64")}?=`;
    });
}

/** Names of charsets without meaning: ASCII for other text, and those of RFC 1428 and similar. */
const NAMELESS: ReadonlySet<string> = new Set([
  ...ASCII_NAMES,
  "unknown-8bit",
  "x-unknown",
  "unknown",
  "default",
  "8bit",
]);

/**
 * Returns the word in UTF-8 if the reader does not know its charset, or if it names none and is UTF-8. UTF-16 is
 * handled in the same way, because the reader ignores its byte order mark. Otherwise returns it unchanged.
 */
function knownWord(word: string, charset: string, encoding: string, written: string): string {
  const name = charset.toLowerCase();
  const isQ = /q/i.test(encoding);
  const text = isQ ? written.replaceAll("?", "=3F") : written;
  const readable = text === written ? word : `=?${charset}?Q?${text}?=`;
  const known = decoderOf(name);
  const isRead = known !== null && !known.encoding.startsWith("utf-16");
  if (NAMELESS.has(name)) {
    const octets = isQ ? octetsOfQ(text) : Buffer.from(text, "base64");
    return !isAscii(octets) && isUtf8(octets) ? wordOf(octets) : readable;
  }
  if (isRead && (!isQ || isAsciiText(text))) return readable;
  const decoder = decoderNamed(name);
  if (decoder === null) return readable;
  return wordOf(Buffer.from(isQ ? textOfQ(text, decoder) : decodedBy(decoder, Buffer.from(text, "base64"))));
}

/** Decodes a word whose raw characters were already read as UTF-8. They stay as they are. */
function textOfQ(text: string, decoder: Decoder): string {
  const pieces = text.split(/([^\0-\x7f]+)/);
  return pieces.map((piece, at) => (at % 2 === 1 ? piece : decodedBy(decoder, octetsOfQ(piece)))).join("");
}

function decodedBy(decoder: Decoder, octets: Buffer): string {
  return decoderFor(decoder, octets).decode(octets);
}

/** RFC 2047 §4.2. */
function octetsOfQ(text: string): Buffer {
  const octets = text
    .replace(/_/g, " ")
    .replace(/=([0-9a-f]{2})/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
  return Buffer.from(octets, "latin1");
}

function wordOf(utf8: Buffer): string {
  return `=?utf-8?B?${utf8.toString("base64")}?=`;
}
