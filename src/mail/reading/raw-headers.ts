import { isAsciiText } from "../../core/text.ts";
import { isUtf8 } from "node:buffer";
import { unnamedText } from "../decoding/charsets.ts";
import { unfoldedParameter } from "./text-start.ts";

const CR = 0x0d;
const LF = 0x0a;

/** Maximum octets of a header block that are read. The rest counts as body. */
export const MAX_HEADER_OCTETS = 1024 * 1024;
/** Maximum number of fields of a header block that are read. */
export const MAX_HEADER_FIELDS = 2000;

/** One field in its original form. */
export interface RawField {
  /** Lower case. */
  name: string;
  /** The whole field, folds and all, without its last line end; one character an octet (latin1). */
  line: string;
}

/** The end of a message's header block, and the start of its body. */
export interface HeaderEnd {
  header: number;
  body: number;
}

/** Finds the empty line; without one the whole message is header. Line ends may be CRLF or LF. */
export function findHeaderEnd(raw: Uint8Array): HeaderEnd {
  if (raw[0] === LF) return { header: 0, body: 1 };
  if (raw[0] === CR && raw[1] === LF) return { header: 0, body: 2 };
  const bound = Math.min(raw.length, MAX_HEADER_OCTETS);
  for (let at = raw.indexOf(LF); at >= 0 && at < bound; at = raw.indexOf(LF, at + 1)) {
    if (raw[at + 1] === LF) return { header: at + 1, body: at + 2 };
    if (raw[at + 1] === CR && raw[at + 2] === LF) return { header: at + 1, body: at + 3 };
  }
  return { header: bound, body: bound };
}

/** Returns the fields of a message's header block in order. A line that is neither field nor fold is skipped. */
export function rawFields(raw: Uint8Array): RawField[] {
  const { header } = findHeaderEnd(raw);
  const block = Buffer.from(raw.buffer, raw.byteOffset, header).toString("latin1");
  return fieldsOf(block);
}

/** Returns the fields of a header block given as text (one character an octet). */
export function fieldsOf(block: string): RawField[] {
  const fields: RawField[] = [];
  let current: RawField | undefined;
  let last = "";
  for (const line of block.split(/\r?\n/)) {
    if (/^[ \t]/.test(line)) {
      last = line;
      if (current !== undefined) current.line += `\r\n${line}`;
      continue;
    }
    const parameter = current?.name.startsWith("content-") === true ? unfoldedParameter(line, last) : null;
    last = line;
    if (current !== undefined && parameter !== null) {
      current.line += `\r\n${parameter}`;
      continue;
    }
    current = undefined;
    const colon = line.indexOf(":");
    const name = line.slice(0, Math.max(colon, 0)).trimEnd().toLowerCase();
    if (!/^[\x21-\x39\x3b-\x7e]+$/.test(name)) continue;
    if (fields.length >= MAX_HEADER_FIELDS) break;
    current = { name, line };
    fields.push(current);
  }
  return fields;
}

/**
 * Returns a field's value, unfolded (RFC 5322 §2.2.3) and trimmed. Octets beyond ASCII are read as `unnamedText`
 * says, and those within an encoded word in the charset of that word.
 */
export function fieldValue(field: RawField): string {
  const value = field.line.slice(field.line.indexOf(":") + 1).replace(/\r\n(?=[ \t])/g, "");
  return (isAsciiText(value) ? value : beyondAscii(Buffer.from(value, "latin1"))).trim();
}

/** Returns the value of the first field of that name (lower case), or null if there is none. */
export function firstValue(fields: readonly RawField[], name: string): string | null {
  const field = fields.find((candidate) => candidate.name === name);
  return field === undefined ? null : fieldValue(field);
}

/** Returns a header line as UTF-8, with its octets read as in `fieldValue`. */
export function lineAsUtf8(line: Buffer): Uint8Array {
  return isUtf8(line) ? line : Buffer.from(beyondAscii(line));
}

function beyondAscii(bytes: Buffer): string {
  return isUtf8(bytes) ? bytes.toString("utf8") : unnamedText(escapedWords(bytes));
}

/** A word in the Q encoding, one character an octet. */
const Q_WORD = /=\?[^?\s]{1,80}\?q\?[^?\s]*\?=/gi;

/** Escapes the raw octets of encoded words, so that they are read in the charset of their word. */
function escapedWords(bytes: Buffer): Buffer {
  const text = bytes.toString("latin1");
  if (!text.includes("=?")) return bytes;
  const escaped = (word: string): string =>
    word.replace(/[\x80-\xff]/g, (octet) => `=${octet.charCodeAt(0).toString(16).toUpperCase()}`);
  return Buffer.from(text.replace(Q_WORD, escaped), "latin1");
}

/** Counts the fields of that name (lower case) in the header block without reading their values. */
export function countFields(raw: Uint8Array, name: string): number {
  const { header } = findHeaderEnd(raw);
  const start = Buffer.from(`${name}:`);
  let count = 0;
  for (let at = 0; at >= 0 && at < header; at = raw.indexOf(LF, at) + 1 || header) {
    if (startsWith(raw, at, start)) count++;
  }
  return count;
}

/** Returns whether the octets from `at` on are those, in any case of letters. */
function startsWith(raw: Uint8Array, at: number, lowerCase: Uint8Array): boolean {
  for (let index = 0; index < lowerCase.length; index++) {
    const found = raw[at + index] ?? 0;
    const lower = found >= 0x41 && found <= 0x5a ? found + 0x20 : found;
    if (lower !== lowerCase[index]) return false;
  }
  return true;
}
