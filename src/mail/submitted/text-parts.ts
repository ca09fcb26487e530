import { fieldValue, findHeaderEnd, type RawField } from "../reading/raw-headers.ts";
import { type Encoding, encodingOf } from "../decoding/transfer-decoders.ts";

/** Maximum number of levels of nested multiparts that are searched. */
export const MAX_DEPTH = 20;
/** Maximum number of parts of one message that are searched. */
export const MAX_TEXT_PARTS = 200;

/** A part of a message without further parts, whose transfer encoding is known. */
export interface LeafPart {
  /** Lower case. */
  media: string;
  encoding: Encoding;
  /** The start of the part's header. */
  header: number;
  /** Start and end of its body. The line end before a delimiter does not belong to it (RFC 2046 §5.1.1). */
  from: number;
  to: number;
}

/** A text part of a message, which is not a file. */
export interface TextPart extends LeafPart {
  kind: "html" | "plain";
  /** Lower case; "" if the part names none. */
  charset: string;
  /** True if its lines are flowed (RFC 3676). */
  isFlowed: boolean;
}

interface Search {
  bytes: Buffer;
  leaves: LeafPart[];
  found: TextPart[];
  /** True if the message has anything but text parts, or structure other than one list of alternatives. */
  hasMore: boolean;
  left: number;
}

/**
 * Finds the text parts that a reader shows. Parts that are signed or encrypted as a whole (RFC 1847) are left out,
 * because a change would break them, and so are messages within the message. Line ends must be CRLF.
 */
export function textParts(bytes: Buffer): TextPart[] {
  return searched(bytes).found;
}

/**
 * Finds the parts that may get another transfer encoding: text parts and files, but not messages within the message.
 */
export function leafParts(bytes: Buffer): LeafPart[] {
  return searched(bytes).leaves;
}

/** Returns the text parts of a message that has only one, or a plain one and its html. Null for every other message. */
export function onlyTexts(bytes: Buffer): TextPart[] | null {
  const { found, hasMore } = searched(bytes);
  const [first, second, ...others] = found;
  if (hasMore || first === undefined || others.length > 0) return null;
  return second === undefined || (first.kind === "plain" && second.kind === "html") ? found : null;
}

function searched(bytes: Buffer): Search {
  const search: Search = { bytes, leaves: [], found: [], hasMore: false, left: MAX_TEXT_PARTS };
  searchPart(search, 0, bytes.length, 0);
  return search;
}

function searchPart(search: Search, start: number, end: number, depth: number): void {
  if (search.left-- <= 0) {
    search.hasMore = true;
    return;
  }
  const part = search.bytes.subarray(start, end);
  const { header, body } = findHeaderEnd(part);
  const fields = contentFields(part.toString("latin1", 0, header));
  const type = textOf(fields, "content-type");
  const media = /^\s*([\w!#$&^.+-]+\/[\w!#$&^.+-]+)/.exec(type)?.[1]?.toLowerCase() ?? "text/plain";
  if (/^multipart\//.test(media)) {
    const boundary = parameterOf(type, BOUNDARY);
    search.hasMore ||= depth > 0 || media !== "multipart/alternative";
    if (depth < MAX_DEPTH && boundary !== "" && !/^multipart\/(?:signed|encrypted)$/.test(media))
      for (const [from, to] of partsBetween(part, body, boundary))
        searchPart(search, start + from, start + to, depth + 1);
    return;
  }
  const isFile = /^\s*attachment\b/i.test(textOf(fields, "content-disposition"));
  const encoding = textOf(fields, "content-transfer-encoding").trim().toLowerCase();
  const isKnown = /^(?:|7bit|8bit|binary|base64|quoted-printable)$/.test(encoding);
  const leaf = { media, encoding: encodingOf(encoding), header: start, from: start + body, to: end };
  // RFC 2046 §5.2.1: a message within the message takes no other encoding.
  if (isKnown && !media.startsWith("message/")) search.leaves.push(leaf);
  if (!/^text\/(?:html|plain)$/.test(media) || isFile || !isKnown) {
    search.hasMore = true;
    return;
  }
  search.found.push({
    ...leaf,
    kind: media === "text/html" ? "html" : "plain",
    charset: parameterOf(type, CHARSET).toLowerCase(),
    isFlowed: /;\s*format\s*=\s*"?flowed/i.test(type),
  });
}

/** The fields of the MIME structure (RFC 2045 §3) with their folds. */
const CONTENT_FIELDS = /^(content-[\x21-\x39\x3b-\x7e]*)[ \t]*:.*(?:\r\n[ \t].*)*/gim;

/** Returns those fields of a header block, in order. Reading only them takes a third of the time. */
function contentFields(block: string): RawField[] {
  return Array.from(block.matchAll(CONTENT_FIELDS), ([line, name = ""]) => ({
    name: name.toLowerCase(),
    line,
  }));
}

function textOf(fields: readonly RawField[], name: string): string {
  const field = fields.find((candidate) => candidate.name === name);
  return field === undefined ? "" : fieldValue(field);
}

const [BOUNDARY, CHARSET] = [
  /;\s*boundary\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s;]+))/is,
  /;\s*charset\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s;]+))/is,
];

function parameterOf(value: string, pattern: RegExp): string {
  const match = pattern.exec(value);
  return match?.[1]?.replace(/\\(.)/gs, "$1") ?? match?.[2] ?? "";
}

/** Yields start and end of each part between delimiters, without the line end before the next delimiter. */
function* partsBetween(bytes: Buffer, from: number, boundary: string): Generator<[from: number, to: number]> {
  let begun: number | null = null;
  for (const { at, next, last } of delimiters(bytes, from, boundary)) {
    if (begun !== null) yield [begun, Math.max(begun, at - "\r\n".length)];
    if (last) return;
    begun = next;
  }
  // A message that was cut off: its last part goes to the end.
  if (begun !== null) yield [begun, bytes.length];
}

interface Delimiter {
  /** The start of its line, and of the line after it. */
  at: number;
  next: number;
  last: boolean;
}

function* delimiters(bytes: Buffer, from: number, boundary: string): Generator<Delimiter> {
  const dashed = Buffer.from(`--${boundary}`, "latin1");
  for (let at = bytes.indexOf(dashed, from); at >= 0; at = bytes.indexOf(dashed, at + dashed.length)) {
    if (at !== from && bytes[at - 1] !== 0x0a) continue;
    const lineEnd = bytes.indexOf("\r\n", at);
    const end = lineEnd < 0 ? bytes.length : lineEnd;
    // A delimiter's line is short. A longer one is no delimiter, and must not be copied for each of its places.
    const rest = bytes.toString("latin1", at + dashed.length, Math.min(end, at + dashed.length + 100));
    if (/^(?:--)?[ \t]*$/.test(rest))
      yield { at, next: Math.min(end + "\r\n".length, bytes.length), last: rest.startsWith("--") };
  }
}
