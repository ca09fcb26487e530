import parseDkimHeaders from "mailauth/lib/parse-dkim-headers";
import {
  fieldValue,
  findHeaderEnd,
  MAX_HEADER_FIELDS,
  type RawField,
  rawFields,
} from "./reading/raw-headers.ts";
import { mailboxes } from "./reading/parse.ts";
import { isLoose, withRelaxedBody } from "./relaxed-body.ts";

/** DKIM signatures of one mail that are checked: each costs an RSA operation and a lookup (RFC 6376 §8.4). */
export const MAX_SIGNATURES = 20;
/** Octets of one signature field; a longer `h=` would be compared with every field of the header. */
export const MAX_SIGNATURE_OCTETS = 8 * 1024;
/** Different hashes of the body that signatures may ask for: each reads the whole body (`l=` alone makes any number). */
export const MAX_BODY_HASHES = 4;
/** The same of a body beyond so many octets: one of short lines takes over a second a hash, and holds the thread meanwhile. */
export const LARGE_BODY_OCTETS = 8 * 1024 * 1024;
export const MAX_LARGE_BODY_HASHES = 2;
/**
 * Lines of a body with white space for relaxed canonicalization to change: mailauth takes two microseconds for each and for each
 * hash, and six millions of them would hold the thread for half a minute.
 */
export const MAX_LOOSE_LINES = 50_000;
/** Header octets and lines that signatures are checked over; a signature that covers more fails. */
export const MAX_CHECKED_HEADER_OCTETS = 256 * 1024;
export const MAX_CHECKED_HEADER_LINES = 4000;
/** Octets of a From field that is read as it stands; of a longer one, its addresses. */
const MAX_FROM_OCTETS = 8 * 1024;
/** From fields that are looked at: two are as wrong as a thousand. */
const MAX_FROM_FIELDS = 2;
/** Instances of an ARC chain (RFC 8617 §4.2.1). */
const MAX_ARC_SETS = 50;

/** Fields that hold signatures, and how many of each are checked. */
const SIGNATURE_FIELDS: ReadonlyMap<string, number> = new Map([
  ["dkim-signature", MAX_SIGNATURES],
  ["arc-message-signature", MAX_ARC_SETS],
  ["arc-seal", MAX_ARC_SETS],
]);
const LF = 0x0a;

/**
 * The mail with a header that can be checked in bounded time: as it is where it keeps the limits, which every honest
 * mail does. Else without what is over them, so that signatures over that fail; the author is always in it. Of a mail
 * without signatures the header alone, for then nothing is said of the body; of a header that everybody reads alike, the
 * author.
 * @param fields those of its header, by `rawFields`
 */
export function checkable(raw: Buffer, fields: readonly RawField[]): Buffer {
  if (!isSigned(fields)) return unsigned(raw, fields);
  const checked = withinLimits(raw, fields);
  return isLoose(checked, findHeaderEnd(checked).body, MAX_LOOSE_LINES)
    ? withBodyMadeReady(checked)
    : checked;
}

/** Whether a header has fields that hold signatures. */
export function isSigned(fields: readonly RawField[]): boolean {
  return fields.some(({ name }) => SIGNATURE_FIELDS.has(name));
}

function unsigned(raw: Buffer, fields: readonly RawField[]): Buffer {
  const authors = fields.filter(({ name }) => name === "from");
  if (isAllFields(raw, fields)) return headerOf(keptFields(authors, 0));
  const checked = withinLimits(raw, fields);
  return checked.subarray(0, findHeaderEnd(checked).body);
}

/**
 * The mail with a body that takes no time to canonicalize, and with those signatures alone that canonicalize it as the first of
 * them does: signatures of both kinds over such a body are not seen with honest mail.
 */
function withBodyMadeReady(mail: Buffer): Buffer {
  const fields = rawFields(mail);
  const kinds = fields.map(bodyKind);
  const kind = kinds.find((one) => one !== null);
  const kept = fields.filter((_, at) => kinds[at] === null || kinds[at] === kind);
  const whole = kept.length === fields.length ? mail : withFields(kept, mail);
  return kind === "relaxed" ? withRelaxedBody(whole, findHeaderEnd(whole).body) : whole;
}

/** How a signature field canonicalizes the body; null for a field that says nothing of it. */
function bodyKind(field: RawField): string | null {
  if (!SIGNATURE_FIELDS.has(field.name) || field.name === "arc-seal") return null;
  const tag = tagsOf(field);
  // RFC 6376 §3.5. Of an ARC set without it mailauth tries both.
  return field.name === "arc-message-signature" && tag("c") === "" ? "both" : bodyCanonicalization(tag);
}

function bodyCanonicalization(tag: (name: string) => string): string {
  return (tag("c").split("/")[1] || "simple").toLowerCase().trim();
}

function withFields(fields: readonly RawField[], mail: Buffer): Buffer {
  return Buffer.concat([headerOf(fields), mail.subarray(findHeaderEnd(mail).body)]);
}

/** A header block of those fields, with the empty line. */
function headerOf(fields: readonly RawField[]): Buffer {
  return Buffer.from(`${fields.map(({ line }) => `${line}\r\n`).join("")}\r\n`, "latin1");
}

/** Whether nothing in the header is anything but those fields: what is may be a field to others. */
function isAllFields(raw: Buffer, fields: readonly RawField[]): boolean {
  let octets = 0;
  for (const { line } of fields) octets += line.length + 2;
  return octets === findHeaderEnd(raw).header;
}

function withinLimits(raw: Buffer, fields: readonly RawField[]): Buffer {
  const { header, body } = findHeaderEnd(raw);
  const large = raw.length - body > LARGE_BODY_OCTETS;
  const kept = keptFields(fields, large ? MAX_LARGE_BODY_HASHES : MAX_BODY_HASHES);
  const whole =
    kept.length === fields.length &&
    fields.length < MAX_HEADER_FIELDS &&
    header <= MAX_CHECKED_HEADER_OCTETS &&
    countLines(raw.subarray(0, header)) <= MAX_CHECKED_HEADER_LINES &&
    kept.every((field, at) => field === fields[at]);
  return whole ? raw : withFields(kept, raw);
}

function keptFields(fields: readonly RawField[], maxHashes: number): RawField[] {
  const counts = new Map<string, number>();
  const hashes = new Set<string>();
  let octets = 0;
  let lines = 0;
  return fields.flatMap((field) => {
    const count = (counts.get(field.name) ?? 0) + 1;
    counts.set(field.name, count);
    if (field.name === "from") return count <= MAX_FROM_FIELDS ? [shortFrom(field)] : [];
    const most = SIGNATURE_FIELDS.get(field.name);
    if (most !== undefined && (count > most || !isCheckable(field, hashes, maxHashes))) return [];
    octets += field.line.length + 2;
    lines += field.line.split("\n").length;
    return octets <= MAX_CHECKED_HEADER_OCTETS && lines <= MAX_CHECKED_HEADER_LINES ? [field] : [];
  });
}

/** A long From is read by the bounded reader that the record is made with: what is checked is what is shown. */
function shortFrom(field: RawField): RawField {
  if (field.line.length <= MAX_FROM_OCTETS) return field;
  const addresses = mailboxes(fieldValue(field)).map(({ email }) => `<${email}>`);
  return { name: field.name, line: `From: ${addresses.join(",\r\n ")}` };
}

/** The tags of a signature field as they are read where it is checked; "" for one that it has not. */
function tagsOf({ line }: RawField): (name: string) => string {
  const { parsed } = parseDkimHeaders(Buffer.from(line, "latin1"));
  return (name) => `${parsed[name]?.value ?? ""}`;
}

function isCheckable(field: RawField, hashes: Set<string>, maxHashes: number): boolean {
  if (field.line.length > MAX_SIGNATURE_OCTETS) return false;
  // A seal covers no body (RFC 8617 §4.1.3).
  if (field.name === "arc-seal") return true;
  const tag = tagsOf(field);
  const hash = `${tag("a").split("-").at(-1)}:${bodyCanonicalization(tag)}:${tag("l")}`.toLowerCase();
  if (!hashes.has(hash) && hashes.size >= maxHashes) return false;
  hashes.add(hash);
  return true;
}

function countLines(header: Uint8Array): number {
  let lines = 0;
  for (let at = header.indexOf(LF); at >= 0; at = header.indexOf(LF, at + 1)) lines++;
  return lines;
}
