import parseDkimHeaders from "mailauth/lib/parse-dkim-headers";
import { fieldValue, findHeaderEnd, MAX_HEADER_FIELDS, type RawField } from "../reading/raw-headers.ts";
import { mailboxes } from "../reading/parse.ts";

/** DKIM signatures of one mail that we check: each costs an RSA operation and a lookup (RFC 6376 §8.4). */
export const MAX_SIGNATURES = 20;
/** Maximum octets of one signature field; a longer `h=` would be compared with every field of the header. */
export const MAX_SIGNATURE_OCTETS = 8 * 1024;
/**
 * Maximum number of different body hashes that signatures may ask for: each reads the whole body (`l=` alone makes
 * any number).
 */
export const MAX_BODY_HASHES = 4;
/** Maximum octets and lines of header that we check signatures over. A signature that covers more fails. */
export const MAX_CHECKED_HEADER_OCTETS = 256 * 1024;
export const MAX_CHECKED_HEADER_LINES = 4000;
/** Maximum octets of a From field that we read as it is. A longer one is reduced to its addresses. */
const MAX_FROM_OCTETS = 8 * 1024;
/** Maximum number of From fields that we read: two are as wrong as a thousand. */
const MAX_FROM_FIELDS = 2;
/** Maximum number of instances of an ARC chain (RFC 8617 §4.2.1). */
const MAX_ARC_SETS = 50;

/** Fields that hold signatures, and the number of each that we check. */
const SIGNATURE_FIELDS: ReadonlyMap<string, number> = new Map([
  ["dkim-signature", MAX_SIGNATURES],
  ["arc-message-signature", MAX_ARC_SETS],
  ["arc-seal", MAX_ARC_SETS],
]);
const LF = 0x0a;

/** A message in the form that is checked. */
export interface CheckableMail {
  /** Its header block with the empty line. */
  header: Buffer;
  body: Buffer;
}

/**
 * Returns the mail with a header that can be checked in bounded time. Every honest mail keeps the limits and is left as it is.
 * Otherwise fields over them are left out, but never the author, and signatures over those fields fail. Without
 * signatures the body is left out. If the header then has only fields, all but the author is left out too.
 * @param fields the fields of its header, by `rawFields`
 */
export function checkable(raw: Buffer, fields: readonly RawField[]): CheckableMail {
  if (isSigned(fields))
    return { header: withinLimits(raw, fields), body: raw.subarray(findHeaderEnd(raw).body) };
  const authors = fields.filter(({ name }) => name === "from");
  const header = isAllFields(raw, fields) ? headerOf(keptFields(authors)) : withinLimits(raw, fields);
  return { header, body: Buffer.alloc(0) };
}

/** Returns whether a header has fields that hold signatures. */
export function isSigned(fields: readonly RawField[]): boolean {
  return fields.some(({ name }) => SIGNATURE_FIELDS.has(name));
}

function bodyCanonicalization(tag: (name: string) => string): string {
  return (tag("c").split("/")[1] || "simple").toLowerCase().trim();
}

/** Returns a header block of those fields, with the empty line. */
function headerOf(fields: readonly RawField[]): Buffer {
  return Buffer.from(`${fields.map(({ line }) => `${line}\r\n`).join("")}\r\n`, "latin1");
}

/** Returns whether the header has those fields alone. Another line may be a field to another program. */
function isAllFields(raw: Buffer, fields: readonly RawField[]): boolean {
  let octets = 0;
  for (const { line } of fields) octets += line.length + 2;
  return octets === findHeaderEnd(raw).header;
}

function withinLimits(raw: Buffer, fields: readonly RawField[]): Buffer {
  const { header, body } = findHeaderEnd(raw);
  const kept = keptFields(fields);
  const whole =
    kept.length === fields.length &&
    fields.length < MAX_HEADER_FIELDS &&
    header <= MAX_CHECKED_HEADER_OCTETS &&
    countLines(raw.subarray(0, header)) <= MAX_CHECKED_HEADER_LINES &&
    kept.every((field, at) => field === fields[at]);
  return whole ? raw.subarray(0, body) : headerOf(kept);
}

function keptFields(fields: readonly RawField[]): RawField[] {
  const counts = new Map<string, number>();
  const hashes = new Set<string>();
  let octets = 0;
  let lines = 0;
  return fields.flatMap((field) => {
    const count = (counts.get(field.name) ?? 0) + 1;
    counts.set(field.name, count);
    if (field.name === "from") return count <= MAX_FROM_FIELDS ? [shortFrom(field)] : [];
    const most = SIGNATURE_FIELDS.get(field.name);
    if (most !== undefined && (count > most || !isCheckable(field, hashes))) return [];
    octets += field.line.length + 2;
    lines += field.line.split("\n").length;
    return octets <= MAX_CHECKED_HEADER_OCTETS && lines <= MAX_CHECKED_HEADER_LINES ? [field] : [];
  });
}

/** Reads a long From with the bounded reader of the record: the checked author is the shown one. */
function shortFrom(field: RawField): RawField {
  if (field.line.length <= MAX_FROM_OCTETS) return field;
  const addresses = mailboxes(fieldValue(field)).map(({ email }) => `<${email}>`);
  return { name: field.name, line: `From: ${addresses.join(",\r\n ")}` };
}

/** Returns a reader of a signature field's tags, as the verifier reads them; "" for a tag that it does not have. */
function tagsOf({ line }: RawField): (name: string) => string {
  const { parsed } = parseDkimHeaders(Buffer.from(line, "latin1"));
  return (name) => `${parsed[name]?.value ?? ""}`;
}

function isCheckable(field: RawField, hashes: Set<string>): boolean {
  if (field.line.length > MAX_SIGNATURE_OCTETS) return false;
  // A seal covers no body (RFC 8617 §4.1.3).
  if (field.name === "arc-seal") return true;
  const tag = tagsOf(field);
  const hash = `${tag("a").split("-").at(-1)}:${bodyCanonicalization(tag)}:${tag("l")}`.toLowerCase();
  if (!hashes.has(hash) && hashes.size >= MAX_BODY_HASHES) return false;
  hashes.add(hash);
  return true;
}

function countLines(header: Uint8Array): number {
  let lines = 0;
  for (let at = header.indexOf(LF); at >= 0; at = header.indexOf(LF, at + 1)) lines++;
  return lines;
}
