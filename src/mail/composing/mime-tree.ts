import { wrap as wrapBase64 } from "nodemailer/lib/base64";
import type MimeNode from "nodemailer/lib/mime-node";
import { quotedPrintable } from "./quoted-printable.ts";

/** Whole header fields that stand before those of MIME and behind them, each with its CRLF. */
export interface Fields {
  before: string;
  behind: string;
}

/** What a mail is written of: text, and bytes that stand in it in base64. */
type Chunk = string | Buffer;

/** Octets of a base64 part from which on it is encoded where it is to stand: as text it would be in memory four times. */
const LARGE_PART_OCTETS = 256 * 1024;
/** Octets of a large part that are encoded at a time: whole groups of three, which base64 makes four characters of. */
const OCTETS_AT_A_TIME = 192 * 1024;
/** RFC 2045 §6.8: characters of a line of base64 at most. */
const BASE64_LINE = 76;

/**
 * The bytes of a composer's tree. Its own stream takes some twenty turns of the event loop a mail; here the content is in
 * memory, and one turn is enough.
 */
export function writeTree(root: MimeNode, fields: Fields): Buffer {
  const chunks: Chunk[] = [fields.before];
  write(root, chunks, fields.behind);
  const last = chunks.findLast(({ length }) => length > 0);
  if (typeof last !== "string" || !last.endsWith("\r\n")) chunks.push("\r\n");
  // An address beyond ASCII stands as UTF-8; everything else is ASCII.
  return chunks.every((chunk) => typeof chunk === "string")
    ? Buffer.from(chunks.join(""), "utf8")
    : writeChunks(chunks);
}

function writeChunks(chunks: readonly Chunk[]): Buffer {
  const raw = Buffer.allocUnsafeSlow(chunks.reduce((sum, chunk) => sum + octetsOf(chunk), 0));
  let at = 0;
  for (const chunk of chunks) {
    if (typeof chunk === "string") raw.write(chunk, at, "utf8");
    else writeBase64(raw.subarray(at, at + octetsOf(chunk)), chunk);
    at += octetsOf(chunk);
  }
  return raw;
}

function octetsOf(chunk: Chunk): number {
  if (typeof chunk === "string") return Buffer.byteLength(chunk);
  const base64 = base64Octets(chunk);
  return base64 + (Math.ceil(base64 / BASE64_LINE) - 1) * 2;
}

function base64Octets({ length }: Buffer): number {
  return Math.ceil(length / 3) * 4;
}

/**
 * Fills a place with bytes in lines of base64, the last one without a line end: without any line ends at the end of the place
 * first, then line by line to where each belongs.
 */
function writeBase64(place: Buffer, bytes: Buffer): void {
  const start = place.length - base64Octets(bytes);
  for (let from = 0, at = start; from < bytes.length; from += OCTETS_AT_A_TIME)
    at += place.write(bytes.toString("base64", from, from + OCTETS_AT_A_TIME), at, "latin1");
  let at = 0;
  for (let from = start; from < place.length; from += BASE64_LINE) {
    const end = Math.min(from + BASE64_LINE, place.length);
    place.copyWithin(at, from, end);
    at += end - from;
    if (end < place.length) at += place.write("\r\n", at, "latin1");
  }
}

function write(node: MimeNode, chunks: Chunk[], behind: string): void {
  const encoding = node.getTransferEncoding();
  // The headers come first: building them settles the boundary.
  chunks.push(headersOf(node, encoding), "\r\n", behind, "\r\n");
  if (!node.multipart) {
    chunks.push(contentOf(node, encoding));
    return;
  }
  for (const child of node.childNodes) {
    chunks.push(`--${node.boundary}\r\n`);
    write(child, chunks, "");
    // RFC 2046 §5.1.1: the line end before a boundary belongs to the boundary, not to the part.
    chunks.push("\r\n");
  }
  chunks.push(`--${node.boundary}--\r\n`);
}

/** Headers of text parts, by the composer's few types and encodings: to build them takes longer than to encode a text. */
const textHeaders = new Map<string, string>();

function headersOf(node: MimeNode, encoding: Encoding): string {
  // A text alone has its content as a string, and within a tree it has no fields but these two.
  if (typeof node.content !== "string" || node.parentNode === undefined) return node.buildHeaders();
  const key = `${node.getHeader("Content-Type")} ${encoding}`;
  const known = textHeaders.get(key);
  if (known !== undefined) return known;
  const built = node.buildHeaders();
  textHeaders.set(key, built);
  return built;
}

type Encoding = ReturnType<MimeNode["getTransferEncoding"]>;

function contentOf({ content }: MimeNode, encoding: Encoding): Chunk {
  if (typeof content !== "string" && !Buffer.isBuffer(content)) return "";
  switch (encoding) {
    case "base64": {
      const bytes = typeof content === "string" ? Buffer.from(content, "utf8") : content;
      return bytes.length < LARGE_PART_OCTETS ? wrapBase64(bytes.toString("base64")) : bytes;
    }
    case "quoted-printable":
      return quotedPrintable(content);
    default:
      return content.toString("latin1");
  }
}
