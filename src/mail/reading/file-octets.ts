import type { Span } from "./mime-tree.ts";
import { octetsOf } from "./part-octets.ts";
import type { Encoding } from "../decoding/transfer-decoders.ts";

const [TAB, LF, CR, SPACE, EQUALS] = [0x09, 0x0a, 0x0d, 0x20, 0x3d];

export interface FileBody {
  span: Span;
  /** If it is identity, the lines are the content's own (RFC 2045 §6.2). */
  encoding: Encoding;
  /** Set if it is the whole message's body. Then no delimiter follows, and the last line end belongs to the file. */
  alone: boolean;
}

/**
 * Yields the octets of a file piece by piece; use each piece before the next. Lines end as they arrived, with CRLF
 * (RFC 5322 §2.3); in quoted-printable, too (RFC 2045 §6.7 rule 4). The line end before a delimiter belongs to the
 * delimiter (RFC 2046 §5.1.1), unless a soft break precedes it.
 */
function* pieces(raw: Uint8Array, { span, encoding, alone }: FileBody): Generator<Uint8Array> {
  const identity = encoding === "identity";
  const cut = !alone && (identity || (encoding === "quoted-printable" && !breaksSoftly(raw, span)));
  let lineEnd = false;
  for (const octets of octetsOf(raw, span, encoding, "crlf")) {
    if (lineEnd) yield CRLF;
    const written = identity ? withCrlf(octets) : octets;
    lineEnd = cut && endsLine(written);
    const kept = lineEnd ? written.subarray(0, -CRLF.length) : written;
    if (kept.length > 0) yield kept;
  }
}

function endsLine(octets: Uint8Array): boolean {
  return octets.at(-1) === LF && octets.at(-2) === CR;
}

/** Returns whether the line end after a quoted-printable body is not part of its content (RFC 2045 §6.7, rule 5). */
function breaksSoftly(raw: Uint8Array, { from, to }: Span): boolean {
  let end = raw[to - 1] === LF ? to - 1 : to;
  while (end > from && (raw[end - 1] === CR || raw[end - 1] === SPACE || raw[end - 1] === TAB)) end--;
  return end > from && raw[end - 1] === EQUALS;
}

const CRLF = Uint8Array.of(CR, LF);

function withCrlf(octets: Uint8Array): Uint8Array {
  const memory = new Uint8Array(octets.length * 2);
  let size = 0;
  for (let at = 0; at < octets.length; at++) {
    const octet = octets[at] ?? 0;
    if (octet === LF) memory[size++] = CR;
    memory[size++] = octet;
  }
  return memory.subarray(0, size);
}

export function fileSize(raw: Uint8Array, file: FileBody): number {
  let size = 0;
  for (const { length } of pieces(raw, file)) size += length;
  return size;
}

/** Returns a copy of a file's bytes. */
export function fileBytes(raw: Uint8Array, file: FileBody): Uint8Array {
  const bytes = new Uint8Array(fileSize(raw, file));
  let at = 0;
  for (const piece of pieces(raw, file)) {
    bytes.set(piece, at);
    at += piece.length;
  }
  return bytes;
}
