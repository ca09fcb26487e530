import { fieldsOf, findHeaderEnd, firstValue } from "./raw-headers.ts";

/** Maximum octets of a body that are searched for the first delimiter. */
const MAX_SEARCHED_OCTETS = 64 * 1024;
/** Maximum octets of a nested multipart that are searched for it. There may be many. */
const MAX_PREAMBLE_OCTETS = 4 * 1024;
/** A line that begins with two dashes, followed by a MIME field: the first delimiter (RFC 2046 §5.1.1). */
const DELIMITER = /(?:^|\n)--([^\r\n"\\]{1,200}?)[ \t]*\r?\n(?=content-[a-z-]{1,40}:)/i;

/**
 * Returns the Content-Type for a multipart message whose boundary is missing or wrong. It has the boundary found in
 * the body, else it is plain text. Returns null for any other message.
 * @param body the start of the message's body
 * @param maxParts parts that a message may have
 */
export function typeByBody(raw: Uint8Array, body: number, maxParts: number): string | null {
  const bytes = Buffer.from(raw.buffer, raw.byteOffset, raw.byteLength);
  const { header } = findHeaderEnd(raw);
  const value = firstValue(fieldsOf(bytes.toString("latin1", 0, header)), "content-type") ?? "";
  const subtype = /^multipart\/([a-z0-9.+-]{1,100})/i.exec(value)?.[1];
  const below = bytes.subarray(body);
  const named = namedBoundary(value);
  if (subtype === undefined || occursIn(below, named) || isEmpty(below, named)) return null;
  const found = DELIMITER.exec(below.toString("latin1", 0, MAX_SEARCHED_OCTETS))?.[1];
  return found !== undefined && count(below, found, maxParts) <= maxParts
    ? `multipart/${subtype}; boundary="${found}"`
    : "text/plain";
}

/**
 * Returns the boundary of the first delimiter near the start of a multipart's body, if the body has none of the named
 * boundary.
 */
export function boundaryInBody(body: Buffer, named: string | null): string | null {
  const start = body.subarray(0, MAX_SEARCHED_OCTETS);
  const found = DELIMITER.exec(start.toString("latin1", 0, MAX_PREAMBLE_OCTETS))?.[1];
  return found === undefined || occursIn(start, named) ? null : found;
}

/** Returns whether a body has nothing but delimiters that end parts. */
function isEmpty(body: Buffer, boundary: string | null): boolean {
  const start = body.toString("latin1", 0, MAX_SEARCHED_OCTETS);
  return start.replaceAll(`--${boundary ?? ""}--`, "").trim() === "";
}

function namedBoundary(value: string): string | null {
  const named = /;\s*boundary\s*=\s*(?:"([^"]{1,200})"|([^\s";]{1,200}))/i.exec(value);
  return named?.[1] ?? named?.[2] ?? null;
}

/** What follows the boundary in a delimiter that begins a part. */
const LINE_END = /^[ \t]*(?:\r?\n|$)/;
/** Maximum octets that are searched for it. */
const MAX_BLANKS = 200;

/** Returns whether a part begins at a delimiter. One that only ends parts does not count. */
function occursIn(body: Buffer, boundary: string | null): boolean {
  if (boundary === null) return false;
  const delimiter = Buffer.from(`\n--${boundary.trimEnd()}`, "latin1");
  const begins = (at: number): boolean => LINE_END.test(body.toString("latin1", at, at + MAX_BLANKS));
  if (body.subarray(0, delimiter.length - 1).equals(delimiter.subarray(1)) && begins(delimiter.length - 1))
    return true;
  for (let at = body.indexOf(delimiter); at >= 0; at = body.indexOf(delimiter, at + delimiter.length))
    if (begins(at + delimiter.length)) return true;
  return false;
}

function count(body: Buffer, boundary: string, stopBeyond: number): number {
  const delimiter = Buffer.from(`--${boundary}`, "latin1");
  let found = 0;
  for (let at = body.indexOf(delimiter); at >= 0 && found <= stopBeyond; at = body.indexOf(delimiter, at + 1))
    found++;
  return found;
}
