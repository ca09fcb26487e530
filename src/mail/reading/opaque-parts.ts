import { randomBase62 } from "../../core/ids.ts";
import { fieldsOf, findHeaderEnd, fieldValue, type RawField } from "./raw-headers.ts";

/** A large attachment in base64, of which reading the mail needs the size alone. */
export interface OpaquePart {
  /** Where its body lies in the mail. */
  from: number;
  to: number;
  /** Octets that the body stands for. */
  size: number;
  /** What the MIME reader is given in its place. */
  mark: string;
}

/** Octets of a body from which on it is passed over. The MIME reader takes some forty times its size while it reads. */
export const MIN_OPAQUE_OCTETS = 64 * 1024;
/** Octets of a part's header that are looked at. */
const MAX_PART_HEADER_OCTETS = 64 * 1024;
/** Lines that begin as delimiters do; a mail of more is read as a whole. */
export const MAX_DASHED_LINES = 10_000;
/** Characters of a boundary (RFC 2046 §5.1.1 allows 70). */
const MAX_BOUNDARY_CHARS = 200;

/** Characters of a mark. Nobody can guess one: a mail that brings it along would pass one part off as another. */
const MARK_CHARS = 24;

const LF = 0x0a;
const DELIMITER = "\n--";

/**
 * The attachments that need not be decoded to tell how large they are: leaves of the multiparts whose bodies are clean
 * base64. It goes by the boundaries that the headers of the mail's own multiparts name, and never looks into a message
 * within the mail. What it finds is a guess: `sizesOf` proves it.
 */
export function opaqueParts(raw: Uint8Array): OpaquePart[] {
  if (raw.length < MIN_OPAQUE_OCTETS) return [];
  const bytes = Buffer.from(raw.buffer, raw.byteOffset, raw.byteLength);
  const { header, body } = findHeaderEnd(raw);
  const boundaries = new Set<string>();
  addBoundary(boundaries, fieldsOf(bytes.toString("latin1", 0, header)));
  const parts: OpaquePart[] = [];
  let lines = 0;
  for (let at = bytes.indexOf(DELIMITER, Math.max(0, body - 1)); at >= 0 && boundaries.size > 0; ) {
    if (++lines > MAX_DASHED_LINES) return [];
    const next = bytes.indexOf(DELIMITER, at + 1);
    const part = partAt(bytes, at + 1, next < 0 ? bytes.length : next + 1, boundaries);
    if (part !== null) parts.push(part);
    at = next;
  }
  return parts;
}

/** What stands between a line that may be a delimiter and the next such line. */
function partAt(bytes: Buffer, line: number, end: number, boundaries: Set<string>): OpaquePart | null {
  const lineEnd = bytes.indexOf(LF, line);
  if (lineEnd < 0 || lineEnd - line > MAX_BOUNDARY_CHARS || !boundaries.has(nameIn(bytes, line, lineEnd)))
    return null;
  const block = bytes.subarray(lineEnd + 1, Math.min(end, lineEnd + 1 + MAX_PART_HEADER_OCTETS));
  const { header, body } = findHeaderEnd(block);
  if (header === body) return null;
  const fields = fieldsOf(block.toString("latin1", 0, header));
  addBoundary(boundaries, fields);
  const from = lineEnd + 1 + body;
  if (end - from < MIN_OPAQUE_OCTETS || !isOpaque(fields)) return null;
  const size = decodedSize(bytes, from, end);
  return size === null ? null : { from, to: end, size, mark: randomBase62(MARK_CHARS) };
}

function nameIn(bytes: Buffer, line: number, lineEnd: number): string {
  return bytes.toString("latin1", line + 2, lineEnd).trimEnd();
}

function addBoundary(boundaries: Set<string>, fields: readonly RawField[]): void {
  const type = only(fields, "content-type");
  if (!/^multipart\//i.test(type)) return;
  const named = /;\s*boundary\s*=\s*(?:"([^"]{1,200})"|([^\s";]{1,200}))/i.exec(type);
  const boundary = (named?.[1] ?? named?.[2] ?? "").trimEnd();
  if (boundary !== "") boundaries.add(boundary);
}

/** Whether a part is an attachment in base64. Text to be shown is not, and neither is what has parts of its own. */
function isOpaque(fields: readonly RawField[]): boolean {
  if (only(fields, "content-transfer-encoding").toLowerCase() !== "base64") return false;
  const type = only(fields, "content-type").split(";")[0]?.trim().toLowerCase() ?? "";
  if (type === "" || /^(?:multipart|message)\//.test(type)) return false;
  return !/^text\/(?:plain|html)$/.test(type) || /^attachment\b/i.test(only(fields, "content-disposition"));
}

/** The value of the one field of that name; empty where there is none, or a second. */
function only(fields: readonly RawField[], name: string): string {
  const [first, second] = fields.filter((field) => field.name === name);
  return first === undefined || second !== undefined ? "" : fieldValue(first);
}

const [OTHER, DIGIT, PAD, LINE_END] = [0, 1, 2, 3];
/** What an octet is in base64 (RFC 2045 §6.8). */
const KINDS = Uint8Array.from({ length: 256 }, (_, octet) => kindOf(octet));

function kindOf(octet: number): number {
  if (octet === 0x3d) return PAD;
  if (octet === 0x0d || octet === LF) return LINE_END;
  const letter = (octet | 0x20) >= 0x61 && (octet | 0x20) <= 0x7a;
  const figure = octet >= 0x30 && octet <= 0x39;
  return letter || figure || octet === 0x2b || octet === 0x2f ? DIGIT : OTHER;
}

/** Octets that a base64 body stands for; null for one that is not clean, which readers read in different ways. */
function decodedSize(bytes: Buffer, from: number, to: number): number | null {
  let digits = 0;
  let pads = 0;
  for (let at = from; at < to; at++) {
    const kind = KINDS[bytes[at] ?? 0];
    if (kind === DIGIT && pads === 0) digits++;
    else if (kind === PAD) pads++;
    else if (kind !== LINE_END) return null;
  }
  return pads > 2 || (digits + pads) % 4 !== 0 ? null : Math.floor((digits * 3) / 4);
}

/** The mail from `body` on, the bodies of opaque parts replaced by what tells which they are. */
export function withMarks(raw: Uint8Array, body: number, parts: readonly OpaquePart[]): Uint8Array[] {
  const pieces: Uint8Array[] = [];
  let at = body;
  for (const { from, to, mark } of parts) {
    pieces.push(raw.subarray(at, from), Buffer.from(`${Buffer.from(mark).toString("base64")}\r\n`));
    at = to;
  }
  return [...pieces, raw.subarray(at)];
}

/** The place among the opaque parts of an attachment that was read in their stead; -1 for any other. */
function markedPart(content: Uint8Array, parts: readonly OpaquePart[]): number {
  if (content.length !== MARK_CHARS) return -1;
  const text = Buffer.from(content).toString("latin1");
  return parts.findIndex(({ mark }) => mark === text);
}

/**
 * Which opaque part each attachment is, null for one that is none. Null in all where not every part was met exactly once
 * as an attachment: then the mail's parts are others than they seemed.
 */
export function matchParts<Part extends OpaquePart>(
  contents: readonly Uint8Array[],
  parts: readonly Part[],
): (Part | null)[] | null {
  const places = contents.map((content) => markedPart(content, parts));
  const met = places.filter((place) => place >= 0);
  if (met.length !== parts.length || new Set(met).size !== parts.length) return null;
  return places.map((place) => parts[place] ?? null);
}

/** The bytes that an opaque part stands for. */
export function opaqueBytes(raw: Uint8Array, { from, to }: OpaquePart): Uint8Array {
  const bytes = Buffer.from(raw.buffer, raw.byteOffset, raw.byteLength);
  return Buffer.from(bytes.toString("latin1", from, to), "base64");
}
