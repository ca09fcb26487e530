import { MAX_LINE_OCTETS } from "../composing/header-fields.ts";
import {
  findHeaderEnd,
  MAX_HEADER_FIELDS,
  MAX_HEADER_OCTETS,
  type RawField,
} from "../reading/raw-headers.ts";

/** The header of a submitted message (RFC 6409), split into what is sent on and what asks us for something. */
export interface SubmittedHeader {
  /** The fields that are sent on, in order. */
  kept: RawField[];
  /** Our control fields, which are removed. */
  control: RawField[];
  /** The kept fields as octets, with the empty line. If none was removed, they are those of the message. */
  octets: Buffer;
  /** The start of the body. */
  body: number;
}

/** A field that only we read. */
const CONTROL = /^(?:idempotency-key|x-postrider-.*)$/;
/** Fields that must not reach the recipients: hidden recipients, and what the last server adds (RFC 5321 §4.4). */
const REMOVED = /^(?:bcc|resent-bcc|return-path)$/;
/**
 * Controls but tab and the escapes of ISO-2022, and the line ends of Unicode in UTF-8. Some programs end a line at them, so
 * that a field could begin there which we do not see.
 */
const BREAKS = /[\0-\x08\x0b\x0c\x0e-\x1a\x1c-\x1f\x7f]|\xc2\x85|\xe2\x80[\xa8\xa9]/;
const NAME = /^[\x21-\x39\x3b-\x7e]+(?=[ \t]*:)/;

/**
 * Splits the header of a message whose line ends are all CRLF. If readers could disagree about where it ends, or if
 * it is over our limits, returns the error message.
 */
export function splitHeader(raw: Uint8Array): SubmittedHeader | string {
  const end = findHeaderEnd(raw);
  if (end.header === end.body && end.body < raw.length)
    return `The header has no end within ${MAX_HEADER_OCTETS} octets`;
  const text = Buffer.from(raw.buffer, raw.byteOffset, end.header).toString("latin1");
  if (BREAKS.test(text))
    return "The header has a control character, which some readers take for the end of a line";
  const fields = fieldsIn(text.replace(/\r\n$/, ""));
  if (typeof fields === "string") return fields;
  const control = fields.filter(({ name }) => CONTROL.test(name));
  const kept = fields.filter(({ name }) => !CONTROL.test(name) && !REMOVED.test(name));
  const long = kept.find(({ line }) => hasLongLine(line));
  if (long !== undefined) return `A line of ${long.name} is over ${MAX_LINE_OCTETS} octets: fold it`;
  const isWhole = kept.length === fields.length && end.body > end.header;
  const octets = isWhole ? Buffer.from(raw.buffer, raw.byteOffset, end.body) : headerOctets(kept);
  return { kept, control, octets, body: end.body };
}

/** Some servers split longer lines, and a field could begin there for the next one. */
function hasLongLine(field: string): boolean {
  return field.length > MAX_LINE_OCTETS && field.split("\r\n").some((line) => line.length > MAX_LINE_OCTETS);
}

/** Reads fields strictly. A line that is none would be skipped by some readers and end the header for others. */
function fieldsIn(text: string): RawField[] | string {
  const fields: RawField[] = [];
  if (text === "") return fields;
  for (const [at, line] of text.split("\r\n").entries()) {
    const last = fields.at(-1);
    const name = NAME.exec(line)?.[0];
    if (name !== undefined) fields.push({ name: name.toLowerCase(), line });
    else if (/^[ \t]/.test(line) && last !== undefined) last.line += `\r\n${line}`;
    else return `Line ${at + 1} of the header is no field: a field is a name, a colon and a value`;
    if (fields.length > MAX_HEADER_FIELDS) return `The header has more than ${MAX_HEADER_FIELDS} fields`;
  }
  return fields;
}

/** Returns fields as octets, with the empty line after them. */
export function headerOctets(fields: readonly RawField[]): Buffer {
  return Buffer.from(`${fields.map(({ line }) => `${line}\r\n`).join("")}\r\n`, "latin1");
}
