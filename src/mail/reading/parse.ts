import PostalMime, { type Address, addressParser, type Attachment, type Email } from "postal-mime";
import { type Mailbox, normalizeAddress } from "../../core/addresses.ts";
import { decodedText, type HeaderBlock, headerBlock, MAX_HEADER_VALUE_CHARS } from "./header-block.ts";
import { matchParts, type OpaquePart, opaqueBytes, opaqueParts, withMarks } from "./opaque-parts.ts";
import { typeByBody } from "./lost-parts.ts";
import { restoreLineEnds } from "./part-bytes.ts";
import { repairParts } from "./part-repairs.ts";
import { type PlainBody, plainBody } from "./plain-body.ts";
import { previewOf } from "./preview.ts";
import { findHeaderEnd, MAX_HEADER_OCTETS, rawFields } from "./raw-headers.ts";
import { storedLine, storedText } from "../stored-text.ts";

/** Levels of multipart within multipart that are followed. */
export const MAX_NESTING_DEPTH = 50;
/** MIME parts of one mail: each takes memory, and a few octets are enough to make one. */
export const MAX_PARTS = 1000;
/**
 * Lines of one mail: the MIME reader takes about a microsecond for each, however short, and holds the thread meanwhile.
 * 40 MiB of base64 have fewer.
 */
export const MAX_LINES = 600_000;
/** Mailboxes of one header field that are kept. */
export const MAX_MAILBOXES = 1000;
/** Characters of a file name, a Content-ID and a media type that are kept. */
const MAX_NAME_CHARS = 255;
/** Characters of a field of the MIME structure that are read. */
const MAX_MIME_FIELD_CHARS = 16 * 1024;
/** Characters of an address header that are read. */
const MAX_ADDRESS_FIELD_CHARS = 64 * 1024;

/** Names of parts that usually come without one, so that whoever saves them can open them. */
const DEFAULT_FILENAMES: ReadonlyMap<string, string> = new Map([
  ["message/rfc822", "message.eml"],
  ["text/calendar", "invite.ics"],
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

/** A received mail as values that can be stored: no text in it has a NUL or another control but tab and LF. */
export interface ParsedMail extends HeaderBlock {
  /** False where the body could not be read: then the header values are there, and no text, html or attachment. */
  ok: boolean;
  from: Mailbox | null;
  to: Mailbox[];
  cc: Mailbox[];
  replyTo: Mailbox[];
  /** Milliseconds since the epoch; null where the mail gives no readable date. */
  date: number | null;
  text: string | null;
  html: string | null;
  /** In the order of the mail; the same for the same bytes. A message within the mail is one attachment. */
  attachments: ParsedAttachment[];
  /** First characters of the text, on one line. */
  preview: string;
}

/** A received mail whose attachments are not decoded, but for their sizes. */
export interface SizedMail extends Omit<ParsedMail, "attachments"> {
  attachments: Omit<ParsedAttachment, "bytes">[];
}

/** Reads a mail. Never throws: garbage gives `ok: false` or empty values. */
export async function parseMail(raw: Uint8Array): Promise<ParsedMail> {
  const email = await parseMime(raw, []);
  return { ...shownOf(raw, email), attachments: (email?.attachments ?? []).map(toAttachment) };
}

/** Reads a mail without decoding its large attachments, which takes much less memory and time. Never throws. */
export async function sizedMail(raw: Uint8Array): Promise<SizedMail> {
  const { email, parts } = await parseSized(raw);
  const attachments = (email?.attachments ?? []).map(toAttachment);
  return {
    ...shownOf(raw, email),
    attachments: attachments.map(({ bytes: _, ...shown }, at) => ({
      ...shown,
      size: parts[at]?.size ?? shown.size,
    })),
  };
}

/** The bytes of one attachment, by its place in the order of the mail; null where there is none. Never throws. */
export async function partBytes(raw: Uint8Array, ord: number): Promise<Uint8Array | null> {
  const { email, parts } = await parseSized(raw);
  const part = parts[ord] ?? null;
  if (part !== null) return opaqueBytes(raw, part);
  const attachment = email?.attachments[ord];
  return attachment === undefined ? null : contentBytes(attachment);
}

/** @returns with the opaque part that stands in each attachment's place, if any */
async function parseSized(
  raw: Uint8Array,
): Promise<{ email: Email | PlainBody | null; parts: readonly (OpaquePart | null)[] }> {
  const opaque = opaqueParts(raw);
  if (opaque.length > 0 && opaque.length <= MAX_PARTS) {
    const email = await parseMime(raw, opaque);
    const parts = email === null ? null : matchParts(email.attachments.map(contentBytes), opaque);
    if (parts !== null) return { email, parts };
  }
  return { email: await parseMime(raw, []), parts: [] };
}

function shownOf(raw: Uint8Array, email: Email | PlainBody | null): Omit<ParsedMail, "attachments"> {
  const text = email?.text === undefined ? null : storedText(email.text);
  const html = email?.html === undefined ? null : storedText(email.html);
  return { ...headerOnly(raw), ok: email !== null, text, html, preview: previewOf(text, html) };
}

/** What the header block alone tells of a mail: `ok: false`, and nothing of the body. Never throws. */
export function headerOnly(raw: Uint8Array): ParsedMail {
  const block = headerBlock(raw);
  return {
    ...block,
    ok: false,
    from: mailboxesIn(block, "from")[0] ?? null,
    to: mailboxesIn(block, "to"),
    cc: mailboxesIn(block, "cc"),
    replyTo: mailboxesIn(block, "reply-to"),
    date: dateOf(block),
    text: null,
    html: null,
    attachments: [],
    preview: "",
  };
}

/** @param opaque parts of which a mark is read instead */
async function parseMime(raw: Uint8Array, opaque: readonly OpaquePart[]): Promise<Email | PlainBody | null> {
  if (isEndlessHeader(raw) || countParts(raw) > MAX_PARTS || hasTooManyLines(raw)) return null;
  const plain = plainBody(raw);
  if (plain !== null) return plain;
  try {
    const email = await readMime(mimeOnly(raw, opaque, null));
    const { text, html, attachments } = email;
    if (text !== undefined || html !== undefined || attachments.length > 0) return email;
    const type = typeByBody(raw, MAX_PARTS);
    return type === null ? email : await readMime(mimeOnly(raw, [], type));
  } catch {
    return null;
  }
}

async function readMime(mail: ArrayBuffer): Promise<Email> {
  const reader = new PostalMime({
    maxNestingDepth: MAX_NESTING_DEPTH,
    maxHeadersSize: MAX_HEADER_OCTETS,
    forceRfc822Attachments: true,
  });
  repairParts(reader);
  const email = await reader.parse(mail);
  restoreLineEnds(reader, email.attachments);
  return email;
}

/** Whether the header goes on beyond what is looked at of it: what follows is no body. */
function isEndlessHeader(raw: Uint8Array): boolean {
  const { header, body } = findHeaderEnd(raw);
  return header === body && body < raw.length;
}

/**
 * The mail with the fields of its MIME structure alone (RFC 2045 §3), of each the first. All others are read by
 * `headerBlock`, which has limits; the MIME reader has none, and a megabyte of "a:" in a To holds it for seconds.
 * @param type in place of the mail's own Content-Type; null leaves that
 */
function mimeOnly(raw: Uint8Array, opaque: readonly OpaquePart[], type: string | null): ArrayBuffer {
  const kept = new Map<string, string>();
  if (type !== null) kept.set("content-type", `Content-Type: ${type}\r\n`);
  for (const { name, line } of rawFields(raw)) {
    if (name.startsWith("content-") && !kept.has(name))
      kept.set(name, `${line.slice(0, MAX_MIME_FIELD_CHARS)}\r\n`);
  }
  const header = Buffer.from(`${[...kept.values()].join("")}\r\n`, "latin1");
  const pieces = [header, ...withMarks(raw, findHeaderEnd(raw).body, opaque)];
  const whole = new Uint8Array(pieces.reduce((sum, piece) => sum + piece.length, 0));
  let at = 0;
  for (const piece of pieces) {
    whole.set(piece, at);
    at += piece.length;
  }
  // Of a view the MIME reader would make a copy of its own.
  return whole.buffer;
}

/**
 * An upper bound of the mail's parts: lines that begin with "--" and a boundary named anywhere in it. Counted before
 * the parse, for a mail of empty parts (a few octets each) would fill the memory with part objects.
 */
export function countParts(raw: Uint8Array): number {
  const bytes = Buffer.from(raw.buffer, raw.byteOffset, raw.byteLength);
  const dashed = countOf(bytes, "\n--", MAX_PARTS);
  if (dashed <= MAX_PARTS) return dashed;
  const text = bytes.toString("latin1");
  const boundaries = new Set<string>();
  for (const match of text.matchAll(/boundary\*?0?\*?\s*=\s*(?:"([^"\r\n]{0,200})|([^\s";]{1,200}))/gi)) {
    boundaries.add(match[1] ?? match[2] ?? "");
    if (boundaries.size > MAX_PARTS) return boundaries.size;
  }
  let parts = 0;
  for (let at = text.indexOf("\n--"); at >= 0 && parts <= MAX_PARTS; at = text.indexOf("\n--", at + 1)) {
    const line = text.slice(at + 3, at + 203).split(/[\r\n]/, 1)[0] ?? "";
    if (isDelimiter(line, boundaries)) parts++;
  }
  return parts;
}

function hasTooManyLines(raw: Uint8Array): boolean {
  let lines = 0;
  for (let at = raw.indexOf(0x0a); at >= 0 && lines <= MAX_LINES; at = raw.indexOf(0x0a, at + 1)) lines++;
  return lines > MAX_LINES;
}

function isDelimiter(line: string, boundaries: ReadonlySet<string>): boolean {
  const trimmed = line.trimEnd();
  return boundaries.has(trimmed) || (trimmed.endsWith("--") && boundaries.has(trimmed.slice(0, -2)));
}

function countOf(text: Buffer, what: string, stopBeyond: number): number {
  let count = 0;
  for (let at = text.indexOf(what); at >= 0 && count <= stopBeyond; at = text.indexOf(what, at + 1)) count++;
  return count;
}

/** The mailboxes of all fields of that name, groups unwrapped; what has no address is left out. */
function mailboxesIn({ fields }: HeaderBlock, name: string): Mailbox[] {
  const value = fields
    .filter((field) => field.name.toLowerCase() === name)
    .map((field) => field.value)
    .join(", ");
  return value === "" ? [] : mailboxes(value);
}

/** The mailboxes in an address list (RFC 5322 §3.4), names decoded. Never throws. */
export function mailboxes(value: string): Mailbox[] {
  try {
    return addressParser(value.slice(0, MAX_ADDRESS_FIELD_CHARS), { flatten: true })
      .slice(0, MAX_MAILBOXES)
      .flatMap(toMailbox);
  } catch {
    return [];
  }
}

function toMailbox({ address, name }: Address): Mailbox[] {
  const email = storedLine(address ?? "", MAX_HEADER_VALUE_CHARS);
  if (email === "") return [];
  const displayName = decodedText(name);
  return [{ email: normalizeAddress(email) ?? email, ...(displayName === "" ? {} : { name: displayName }) }];
}

function dateOf({ fields }: HeaderBlock): number | null {
  const value = fields.find((field) => field.name.toLowerCase() === "date")?.value ?? "";
  // RFC 5322 §3.3 lets a comment follow, as "(UTC)", which the runtime's reader would not take.
  const ms = Date.parse(value.slice(0, 100).replace(/\([^()]*\)/g, ""));
  return Number.isFinite(ms) ? ms : null;
}

function toAttachment(attachment: Attachment): ParsedAttachment {
  const bytes = contentBytes(attachment);
  const contentType = storedLine(attachment.mimeType, MAX_NAME_CHARS) || "application/octet-stream";
  const contentId = storedLine(attachment.contentId ?? "", MAX_NAME_CHARS).replace(/^<|>$/g, "");
  return {
    filename: storedLine(attachment.filename ?? "", MAX_NAME_CHARS) || defaultFilename(contentType),
    contentType,
    size: bytes.length,
    contentId: contentId === "" ? null : contentId,
    disposition: attachment.disposition === "inline" || attachment.related ? "inline" : "attachment",
    bytes,
  };
}

function contentBytes({ content }: Attachment): Uint8Array {
  return typeof content === "string" ? Buffer.from(content) : new Uint8Array(content);
}

function defaultFilename(contentType: string): string {
  return DEFAULT_FILENAMES.get(contentType) ?? "attachment";
}
