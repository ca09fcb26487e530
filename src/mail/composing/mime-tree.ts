import { wrap as wrapBase64 } from "nodemailer/lib/base64";
import type MimeNode from "nodemailer/lib/mime-node";
import { quotedPrintable } from "./quoted-printable.ts";

/** Whole header fields before and after those of MIME, each with its CRLF. */
export interface Fields {
  before: string;
  after: string;
}

/** The pieces of a message: text, and bytes that are written in base64. */
export type Chunk = string | Buffer;

/** Octets of a base64 part from which it is encoded in place. As text it would be in memory four times. */
const LARGE_PART_OCTETS = 256 * 1024;
/** Octets of a large part that are encoded at a time: whole groups of three, each of which becomes four characters. */
const OCTETS_AT_A_TIME = 192 * 1024;
/** Characters of a base64 line at most (RFC 2045 §6.8). */
const BASE64_LINE = 76;

/**
 * Returns the bytes of a composer's tree. Its own stream takes about twenty ticks of the event loop per message.
 * Here the content is in memory, so one tick is enough.
 */
export function writeTree(root: MimeNode, fields: Fields): Buffer {
  const chunks: Chunk[] = [fields.before];
  write(root, chunks, fields.after);
  return joined(chunks);
}

/** Returns the bytes of a whole message, with a line end at its end. */
export function joined(chunks: Chunk[]): Buffer {
  const last = chunks.findLast(({ length }) => length > 0);
  if (typeof last !== "string" || !last.endsWith("\r\n")) chunks.push("\r\n");
  // An address beyond ASCII is in UTF-8; everything else is ASCII.
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
 * Fills a space with bytes in lines of base64, the last one without a line end. The base64 is first written to the
 * end of the space without line ends. Then each line is moved to its place.
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

function write(node: MimeNode, chunks: Chunk[], after: string): void {
  const encoding = node.getTransferEncoding();
  // The headers come first: building them sets the boundary.
  chunks.push(headersOf(node, encoding), "\r\n", after, "\r\n");
  if (!node.multipart) {
    chunks.push(contentOf(node.content, encoding));
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

/**
 * Headers of text parts, by the composer's few types and encodings. Building them takes longer than encoding a
 * body.
 */
const textHeaders = new Map<string, string>();

function headersOf(node: MimeNode, encoding: Encoding): string {
  // A single text has its content as a string. Within a tree it has only these two fields.
  if (typeof node.content !== "string" || node.parentNode === undefined) return node.buildHeaders();
  const key = `${node.getHeader("Content-Type")} ${encoding}`;
  const known = textHeaders.get(key);
  if (known !== undefined) return known;
  const built = node.buildHeaders();
  textHeaders.set(key, built);
  return built;
}

export type Encoding = ReturnType<MimeNode["getTransferEncoding"]>;

/** Returns the encoded content of a part. */
export function contentOf(content: MimeNode["content"], encoding: Encoding): Chunk {
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
