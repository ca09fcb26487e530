import { isAscii, isUtf8 } from "node:buffer";
import { ASCII_NAMES } from "./charsets.ts";
import { rareDecoderOf } from "./rare-charsets.ts";

/** In its text programs leave question marks as they are; of words that have any, as many characters are looked at. */
const WORD = /=\?([^?\s*]{1,60})(?:\*[^?\s]{0,20})?\?([bq])\?([^?\s]*|(?:[^?\s]|\?(?!=)){1,300})\?=/gi;
const BASE64_WORDS = /=\?([^?\s]{1,60})\?b\?[a-z0-9+/]*={0,2}\?=(?:\s+=\?\1\?b\?[a-z0-9+/]*={0,2}\?=)+/gi;

/** Charsets in which a word begins anew: by a mark at its begin, or in ASCII after escapes, of which two in a row are broken. */
const BEGINS_ANEW = /^(?:cs)?(?:x-)?(?:iso-?2022|utf-?16|ucs-?2|unicode)/i;

/**
 * Encoded words (RFC 2047) as their reader knows them. Words of base64 in a row are made one: many programs begin the next
 * one in the midst of a character (§5 forbids it).
 */
export function joinedWords(value: string): string {
  return value.replace(WORD, knownWord).replace(BASE64_WORDS, (words: string, charset: string) => {
    if (BEGINS_ANEW.test(charset)) return words;
    const octets = words.split(/\s+/).map((word) => Buffer.from(word.split("?")[3] ?? "", "base64"));
    return `=?${charset}?B?${Buffer.concat(octets).toString("base64")}?=`;
  });
}

/** Names of charsets that say nothing: of ASCII, where something else stands, and those of RFC 1428 and its like. */
const NAMELESS: ReadonlySet<string> = new Set([
  ...ASCII_NAMES,
  ...["unknown-8bit", "x-unknown", "unknown", "default", "8bit"],
]);

/** The word in UTF-8 where the reader does not know its charset, or it names none and is UTF-8; else as it is. */
function knownWord(word: string, charset: string, encoding: string, written: string): string {
  const name = charset.toLowerCase();
  const isQ = /q/i.test(encoding);
  const text = isQ ? written.replaceAll("?", "=3F") : written;
  const readable = text === written ? word : `=?${charset}?Q?${text}?=`;
  const decoder = rareDecoderOf(name);
  if (decoder === null && !NAMELESS.has(name)) return readable;
  const octets = isQ ? octetsOfQ(text) : Buffer.from(text, "base64");
  if (decoder !== null) return wordOf(Buffer.from(decoder.decode(octets)));
  return !isAscii(octets) && isUtf8(octets) ? wordOf(octets) : readable;
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
