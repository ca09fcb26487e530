import { type Address, addressParser } from "postal-mime";
import { type Mailbox, normalizeAddress } from "../../core/addresses.ts";
import type { Unread } from "../../core/messages/unread.ts";
import { readAddressList } from "./address-list.ts";
import { joinedWords } from "../decoding/encoded-words.ts";
import { decodedText, type HeaderBlock, headerBlockOf, MAX_HEADER_VALUE_CHARS } from "./header-block.ts";
import { typeByBody } from "./lost-parts.ts";
import { type MailText, wholeText } from "./mail-text.ts";
import { MAX_PARTS } from "./mime-tree.ts";
import { previewOf } from "../text/preview.ts";
import { findHeaderEnd, lineAsUtf8, type RawField, rawFields } from "./raw-headers.ts";
import { textStart } from "./text-start.ts";
import { type ReadFile, type ReadParts, readParts } from "./read-parts.ts";
import { storedLine } from "../text/stored-text.ts";

/**
 * Lines of one message. Each may be a part's header or begin like a delimiter, and costs one or two microseconds of
 * the thread. 40 MiB of base64 have fewer lines.
 */
export const MAX_LINES = 600_000;
/** Maximum number of mailboxes of one header field that are kept. */
export const MAX_MAILBOXES = 1000;
/** Maximum characters kept of a file name, Content-ID or media type. */
const MAX_NAME_CHARS = 255;
/** Maximum characters of a field of the MIME structure that are read. */
const MAX_MIME_FIELD_CHARS = 16 * 1024;
/** Maximum characters of an address header that are read. */
export const MAX_ADDRESS_FIELD_CHARS = 64 * 1024;

/** Names for parts that usually have none, so that programs can open the saved file. */
const DEFAULT_FILENAMES: ReadonlyMap<string, string> = new Map([
  ["message/rfc822", "message.eml"],
  ["text/calendar", "invite.ics"],
  ["application/ms-tnef", "winmail.dat"],
  ["application/vnd.ms-tnef", "winmail.dat"],
]);

export interface ParsedAttachment {
  filename: string;
  /** Lower case, without parameters. */
  contentType: string;
  size: number;
  /** Without angle brackets. */
  contentId: string | null;
  disposition: "attachment" | "inline";
  bytes: Uint8Array;
}

/** A received message as values that can be stored. No text has a NUL or another control except tab and LF. */
export interface ParsedMail extends HeaderBlock {
  /** Why something was not read; null if all was. */
  unread: Unread | null;
  from: Mailbox | null;
  to: Mailbox[];
  cc: Mailbox[];
  replyTo: Mailbox[];
  text: string | null;
  html: string | null;
  /** In the order of the message; equal for equal bytes. A message within the message is one attachment. */
  attachments: ParsedAttachment[];
  /** First characters of the text, on one line. */
  preview: string;
}

/**
 * A received message whose large bodies stay in place. Bodies are decoded on request, and attachments have only
 * their size.
 */
export interface OpenMail extends Omit<ParsedMail, "attachments" | "text" | "html"> {
  text: MailText | null;
  html: MailText | null;
  attachments: Omit<ParsedAttachment, "bytes">[];
}

/** Reads a message. Never throws: garbage gives `unread` or empty values. */
export async function parseMail(raw: Uint8Array): Promise<ParsedMail> {
  const fields = rawFields(raw);
  const parts = await partsOf(raw, fields);
  const attachments = parts.files.map((file) => ({ ...shownFile(file), bytes: file.bytes() }));
  const { text, html, ...mail } = shownOf(fields, parts);
  return {
    ...mail,
    text: text === null ? null : wholeText(text),
    html: html === null ? null : wholeText(html),
    attachments,
  };
}

/**
 * Reads a message whose bodies may be large. Its bytes must not change while its bodies are in use. Never throws.
 */
export async function openMail(raw: Uint8Array): Promise<OpenMail> {
  const fields = rawFields(raw);
  const parts = await partsOf(raw, fields);
  return { ...shownOf(fields, parts), attachments: parts.files.map(shownFile) };
}

/** Returns the bytes of one attachment by its position, or null if there is none. Never throws. */
export async function partBytes(raw: Uint8Array, ord: number): Promise<Uint8Array | null> {
  const parts = await partsOf(raw, rawFields(raw));
  return parts.files[ord]?.bytes() ?? null;
}

function shownOf(
  fields: readonly RawField[],
  { text, html, unread }: ReadParts,
): Omit<OpenMail, "attachments"> {
  const preview = previewOf(text?.beginning ?? null, html?.beginning ?? null);
  return { ...shownHeader(fields), unread, text, html, preview };
}

/** Returns the values of the header block alone: no body and no file. Never throws. */
export function headerOnly(raw: Uint8Array): ParsedMail {
  return shownHeader(rawFields(raw));
}

function shownHeader(fields: readonly RawField[]): ParsedMail {
  const block = headerBlockOf(fields);
  return {
    ...block,
    unread: null,
    from: mailboxesIn(block, "from")[0] ?? null,
    to: mailboxesIn(block, "to"),
    cc: mailboxesIn(block, "cc"),
    replyTo: mailboxesIn(block, "reply-to"),
    text: null,
    html: null,
    attachments: [],
    preview: "",
  };
}

/** Reads the parts of a message; none if it cannot be read. */
async function partsOf(raw: Uint8Array, fields: readonly RawField[]): Promise<ReadParts> {
  if (isEndlessHeader(raw)) return noParts("header_too_long");
  if (hasTooManyLines(raw)) return noParts("too_many_lines");
  const end = findHeaderEnd(raw);
  const start = textStart(raw, 0, end.header);
  const body = start < end.header ? start : end.body;
  try {
    const parts = await readParts(raw, mimeHeader(fields, null), body);
    const type = hasParts(parts) ? null : typeByBody(raw, body, MAX_PARTS);
    if (type === null) return parts;
    const found = await readParts(raw, mimeHeader(fields, type), body);
    return hasParts(found) ? found : await readParts(raw, mimeHeader(fields, "text/plain"), body);
  } catch {
    return noParts("not_mime");
  }
}

function hasParts({ text, html, files }: ReadParts): boolean {
  return text !== null || html !== null || files.length > 0;
}

function noParts(unread: Unread): ReadParts {
  return { text: null, html: null, files: [], unread };
}

/** Returns whether the header continues beyond the part that is read. Then there is no body. */
function isEndlessHeader(raw: Uint8Array): boolean {
  const { header, body } = findHeaderEnd(raw);
  return header === body && body < raw.length;
}

/**
 * Returns only the fields of the MIME structure (RFC 2045 §3), the first of each. All other fields are read by
 * `headerBlock`, which has limits. The MIME reader has none: a megabyte of "a:" in a To holds it for seconds.
 * @param type replaces the message's own Content-Type; null keeps that
 */
function mimeHeader(fields: readonly RawField[], type: string | null): Uint8Array {
  const kept = new Map<string, string>();
  if (type !== null) kept.set("content-type", `Content-Type: ${type}\r\n`);
  for (const { name, line } of fields) {
    if (name.startsWith("content-") && !kept.has(name))
      kept.set(name, `${line.slice(0, MAX_MIME_FIELD_CHARS).trimEnd()}\r\n`);
  }
  return Buffer.concat([...kept.values()].map((line) => lineAsUtf8(Buffer.from(line, "latin1"))));
}

function hasTooManyLines(raw: Uint8Array): boolean {
  let lines = 0;
  for (let at = raw.indexOf(0x0a); at >= 0 && lines <= MAX_LINES; at = raw.indexOf(0x0a, at + 1)) lines++;
  return lines > MAX_LINES;
}

/** Returns the mailboxes of all fields of that name, with groups unwrapped. Entries without an address are left out. */
function mailboxesIn({ fields }: HeaderBlock, name: string): Mailbox[] {
  const value = fields
    .filter((field) => field.name.toLowerCase() === name)
    .map((field) => field.value)
    .join(", ");
  return value === "" ? [] : mailboxes(value);
}

/**
 * Returns the mailboxes in an address list (RFC 5322 §3.4), with names decoded. In a malformed list it finds as many
 * as it can. Never throws.
 */
export function mailboxes(value: string): Mailbox[] {
  try {
    const list = joinedWords(value.slice(0, MAX_ADDRESS_FIELD_CHARS));
    return (readAddressList(list) ?? addressParser(mended(list), { flatten: true }))
      .slice(0, MAX_MAILBOXES)
      .flatMap(toMailbox);
  } catch {
    return [];
  }
}

/** A name with a comma that lacks its quotes: "Example, Ben <ben@x.test>". */
const BARE_COMMA =
  /^([^<>@,;:"()[\]]{1,100}, ?[^<>@,;:"()[\]]{1,100}?)(?= ?<[^<>@\s]{1,250}@[^<>\s]{1,250}>$)/;

/** Returns a list without what some programs put around addresses: `<mailto:ann@x.test>`, `<<ann@x.test>>`. */
function mended(list: string): string {
  return list
    .replace(/<{1,8}(?: ?mailto:)?(?=[^<>@]{1,250}@)/gi, "<")
    .replace(/(?<=@[^<>@]{1,250})>{1,8}/g, ">")
    .replace(BARE_COMMA, '"$1"');
}

function toMailbox({ address, name }: Pick<Address, "address" | "name">): Mailbox[] {
  const email = storedLine(address ?? "", MAX_HEADER_VALUE_CHARS);
  if (email === "") return [];
  const displayName = decodedText(name);
  const shown = normalizeAddress(email) ?? normalizeAddress(unquoted(email)) ?? email;
  // Many programs repeat the address in place of the name.
  return [{ email: shown, ...(displayName === "" || displayName === email ? {} : { name: displayName }) }];
}

/** Returns the address without needless quotes around its local part (RFC 5321 §4.1.2). */
function unquoted(email: string): string {
  return email.replace(/^"([^"\\]+)"@/, "$1@");
}

function shownFile({ attachment, size }: ReadFile): Omit<ParsedAttachment, "bytes"> {
  const contentType = storedLine(attachment.mimeType, MAX_NAME_CHARS) || "application/octet-stream";
  const contentId = storedLine(bareContentId(attachment.contentId ?? ""), MAX_NAME_CHARS);
  return {
    filename: bareName(storedLine(attachment.filename ?? "", MAX_NAME_CHARS)) || defaultFilename(contentType),
    contentType,
    size: size(),
    contentId: contentId === "" ? null : contentId,
    disposition: attachment.disposition === "inline" || attachment.related ? "inline" : "attachment",
  };
}

/**
 * Returns the id between its angle brackets, which comments may surround (RFC 2045 §7). Without brackets it is
 * unchanged.
 */
function bareContentId(text: string): string {
  return /<([^<>]+)>/.exec(text)?.[1] ?? text.replace(/^<|>$/g, "");
}

/** Returns a file name without folders, so that saving the file cannot lead to another folder (RFC 2183 §2.3). */
function bareName(filename: string): string {
  return /^\.*$/.test(filename) ? "" : filename.replace(/[/\\]/g, "_");
}

function defaultFilename(contentType: string): string {
  return DEFAULT_FILENAMES.get(contentType) ?? "attachment";
}
