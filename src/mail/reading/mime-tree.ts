import type { Unread } from "../../core/messages/unread.ts";
import { boundaryInBody } from "./lost-parts.ts";
import { leaveBody, type MimePart, type Reader } from "../decoding/mime-part.ts";
import { lineAsUtf8, MAX_HEADER_OCTETS } from "./raw-headers.ts";
import { textStart, unfoldedParameter } from "./text-start.ts";

/** MIME parts of one message. Each takes memory, and a few octets are enough to make one. */
export const MAX_PARTS = 1000;

/** Maximum number of levels of nested multiparts that are read. */
export const MAX_NESTING_DEPTH = 50;

/** The place of a part's body: from its first line to before the delimiter that ends it. */
export interface Span {
  from: number;
  to: number;
}

const [TAB, LF, CR, SPACE, DASH] = [0x09, 0x0a, 0x0d, 0x20, 0x2d];

/** The parts from an octet on, which were not read. */
export interface UnreadRest {
  from: number;
  reason: Unread;
}

/** The parts of a message that were read. */
export interface ReadTree {
  spans: ReadonlyMap<MimePart, Span>;
  /** The rest that a limit left unread; null if all parts were read. */
  rest: UnreadRest | null;
}

/** The position of a line in a body: its start, its end without the line end, and the start of the next line. */
interface Line {
  start: number;
  end: number;
  next: number;
}

/**
 * Finds the parts of a message. The MIME reader gets only header lines and delimiters. Bodies stay in place, because
 * the reader would make several objects for each of their lines. At a limit of parts, nesting or headers it stops.
 * @param header the fields that replace the message's own
 * @param body the start of the message's body
 */
export async function readTree(
  reader: Reader,
  header: Uint8Array,
  raw: Uint8Array,
  body: number,
): Promise<ReadTree> {
  const bytes = Buffer.from(raw.buffer, raw.byteOffset, raw.byteLength);
  const { root } = reader;
  leaveBody(root);
  for (let at = 0; at < header.length; ) {
    const line = lineAt(header, at);
    root.feed(header.slice(line.start, line.end));
    at = line.next;
  }
  root.feed(header.slice(0, 0));
  trimBoundaries(reader);
  const spans = new Map<MimePart, Span>([[root, { from: body, to: raw.length }]]);
  let parts = 0;
  let begun = body;
  let rest: UnreadRest | null = null;
  for (let at = body; at < raw.length; ) {
    const part = reader.currentNode;
    const line = part.state === "header" ? lineAt(bytes, at) : delimiterFrom(bytes, at, reader.boundaries);
    if (line === null) break;
    if (part.state === "header" && !isDelimiter(bytes, line, reader.boundaries)) {
      const next = headerLine(reader, spans, bytes, line);
      if (next === null) {
        rest = { from: begun, reason: "part_headers_too_long" };
        part.parentNode?.childNodes.pop();
        break;
      }
      at = next;
    } else if (mayBegin(reader, bytes, line, parts)) {
      begun = line.start;
      if (await delimit(reader, spans, bytes, line)) parts++;
      at = line.next;
    } else {
      const span = spans.get(part);
      if (span !== undefined) span.to = line.start;
      rest = { from: line.start, reason: parts < MAX_PARTS ? "nested_too_deep" : "too_many_parts" };
      break;
    }
  }
  await reader.finalize();
  return { spans, rest };
}

/** Returns whether the limits allow the part that a delimiter begins. One that only ends parts is always allowed. */
function mayBegin({ boundaries }: Reader, bytes: Buffer, line: Line, parts: number): boolean {
  const text = bytes.toString("latin1", line.start + 2, line.end).trimEnd();
  const begun = boundaries.findLast(({ value }) => Buffer.from(value).toString("latin1") === text);
  return begun === undefined || (parts < MAX_PARTS && begun.node.depth < MAX_NESTING_DEPTH);
}

/**
 * Gives a line of a part's header to the reader. Returns the start of the next line, or of the part's body; null if the headers of
 * the message and its parts are together longer than is read.
 */
function headerLine(reader: Reader, spans: Map<MimePart, Span>, bytes: Buffer, line: Line): number | null {
  const part = reader.currentNode;
  // A line beyond the limit is refused by its length, so its end is not needed.
  const octets = bytes.subarray(line.start, Math.min(line.end, line.start + MAX_HEADER_OCTETS + 1));
  const parameter = unfoldedParameter(octets.toString("latin1"), part.headerLines.at(-1) ?? "");
  const isText = parameter === null && beginsText(bytes, line, reader.boundaries);
  if (!isText) {
    const written = parameter === null ? octets : Buffer.from(parameter, "latin1");
    const given = lineAsUtf8(written);
    if (reader.headerSize + given.length > MAX_HEADER_OCTETS) return null;
    part.feed(Uint8Array.from(given));
    if (part.state === "header") return line.next;
  } else part.feed(new Uint8Array(0));
  const from = isText ? line.start : line.next;
  spans.set(part, { from, to: bytes.length });
  trimBoundaries(reader);
  nameBoundary(reader, part, bytes, from);
  return from;
}

/** Lines and octets from a line that is no field on. A field in them shows that the line belongs to the header. */
const LINES_AHEAD = 10;
const OCTETS_AHEAD = 2048;

/** Returns whether a line in a part's header begins its text, because the empty line between them is missing. */
function beginsText(bytes: Buffer, { start, end, next }: Line, boundaries: Reader["boundaries"]): boolean {
  const bound = Math.min(bytes.length, start + OCTETS_AHEAD);
  if (start === end || textStart(bytes, start, Math.min(end, bound)) > start) return false;
  let below = Math.min(next, bound);
  for (let lines = 0; lines < LINES_AHEAD && below < bound; lines++) {
    const ahead = lineAt(bytes, below);
    if (ahead.start === ahead.end || isDelimiter(bytes, ahead, boundaries)) break;
    below = Math.min(ahead.next, bound);
  }
  return textStart(bytes, start, below) === start;
}

/** Finds the boundary of a multipart that names none, or a wrong one, by its first delimiter. */
function nameBoundary({ boundaries }: Reader, part: MimePart, bytes: Buffer, from: number): void {
  if (part.contentType.multipart === false) return;
  const { params } = part.contentType.parsed;
  const found = boundaryInBody(bytes.subarray(from), params.boundary ?? null);
  if (
    found === null ||
    boundaries.some(({ value }) => Buffer.from(value).equals(Buffer.from(found, "latin1")))
  )
    return;
  params.boundary = found;
  const value = Uint8Array.from(Buffer.from(found, "latin1"));
  const newest = boundaries.at(-1);
  if (newest?.node === part) newest.value = value;
  else boundaries.push({ value, node: part });
}

/** A boundary does not end with white space (RFC 2046 §5.1.1), and relays remove it from delimiters. */
function trimBoundaries({ boundaries }: Reader): void {
  const newest = boundaries.at(-1);
  if (newest === undefined) return;
  const end = newest.value.findLastIndex((octet) => octet !== SPACE && octet !== TAB) + 1;
  if (end > 0) newest.value = newest.value.subarray(0, end);
}

/** Ends a part at its delimiter and begins the next one, if there is one. Returns whether it did. */
async function delimit(
  reader: Reader,
  spans: Map<MimePart, Span>,
  bytes: Buffer,
  line: Line,
): Promise<boolean> {
  const span = spans.get(reader.currentNode);
  if (span !== undefined) span.to = line.start;
  await reader.processLine(Uint8Array.from(bytes.subarray(line.start, line.end)), false);
  if (reader.currentNode.state === "header") leaveBody(reader.currentNode);
  return reader.currentNode.state === "header";
}

function lineAt(bytes: Uint8Array, start: number): Line {
  const lf = bytes.indexOf(LF, start);
  const next = lf < 0 ? bytes.length : lf + 1;
  let end = lf < 0 ? bytes.length : lf;
  while (end > start && bytes[end - 1] === CR) end--;
  return { start, end, next };
}

/** Returns the first delimiter from the start of a line on, or null if none follows. */
function delimiterFrom(bytes: Buffer, from: number, boundaries: Reader["boundaries"]): Line | null {
  if (boundaries.length === 0) return null;
  for (let start = from; start >= 0 && start < bytes.length; ) {
    if (mayDelimit(bytes, start, boundaries)) {
      const line = lineAt(bytes, start);
      if (isDelimiter(bytes, line, boundaries)) return line;
    }
    const found = bytes.indexOf(DASHED, start);
    start = found < 0 ? -1 : found + 1;
  }
  return null;
}

const DASHED = Uint8Array.of(LF, DASH, DASH);

/** Returns whether the line begins like a delimiter. Any line may, so this must not allocate memory. */
function mayDelimit(bytes: Uint8Array, start: number, boundaries: Reader["boundaries"]): boolean {
  if (bytes[start] !== DASH || bytes[start + 1] !== DASH) return false;
  for (const { value } of boundaries) if (isAt(bytes, start + 2, value)) return true;
  return false;
}

/** Two dashes, a boundary, two more dashes if it is the last, and white space (RFC 2046 §5.1.1). */
function isDelimiter(bytes: Uint8Array, { start, end }: Line, boundaries: Reader["boundaries"]): boolean {
  if (boundaries.length === 0 || bytes[start] !== DASH || bytes[start + 1] !== DASH) return false;
  let text = end;
  while (text > start && (bytes[text - 1] === SPACE || bytes[text - 1] === TAB)) text--;
  for (const { value } of boundaries) {
    const after = start + 2 + value.length;
    if (end < after || !isAt(bytes, start + 2, value)) continue;
    const closes = end >= after + 2 && bytes[after] === DASH && bytes[after + 1] === DASH;
    if (text <= (closes ? after + 2 : after)) return true;
  }
  return false;
}

function isAt(bytes: Uint8Array, at: number, value: Uint8Array): boolean {
  for (let index = 0; index < value.length; index++) if (bytes[at + index] !== value[index]) return false;
  return true;
}
