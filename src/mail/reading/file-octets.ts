import type { Span } from "./mime-tree.ts";
import { octetsOf } from "./part-octets.ts";
import { encodingOf } from "./transfer-decoders.ts";

const [LF, CR] = [0x0a, 0x0d];
/** Encodings whose lines are the content's own (RFC 2045 §6.2). */
const IDENTITY: ReadonlySet<string> = new Set(["", "7bit", "8bit", "binary"]);

/** A body that is a file. */
export interface FileBody {
  span: Span;
  /** As the part names it, in lower case. */
  encoding: string;
  /** Whether it is the whole mail's: then no delimiter follows, and its last line end is the file's. */
  alone: boolean;
}

/**
 * The octets of a file, a piece at a time, to be used before the next one. Its lines end as they came, with CRLF
 * (RFC 5322 §2.3); the line end before a delimiter is part of the delimiter (RFC 2046 §5.1.1). In quoted-printable a LF
 * may be the content's own, so there only the last one goes.
 */
function* pieces(raw: Uint8Array, { span, encoding, alone }: FileBody): Generator<Uint8Array> {
  const identity = IDENTITY.has(encoding);
  const cut = encoding === "quoted-printable" || (identity && !alone);
  let lineEnd = false;
  for (const octets of octetsOf(raw, span, encodingOf(encoding))) {
    if (lineEnd) yield identity ? CRLF : CRLF.subarray(1);
    lineEnd = cut && octets.at(-1) === LF;
    const kept = lineEnd ? octets.subarray(0, -1) : octets;
    if (kept.length > 0) yield identity ? withCrlf(kept) : kept;
  }
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

/** Octets of a file. */
export function fileSize(raw: Uint8Array, file: FileBody): number {
  let size = 0;
  for (const { length } of pieces(raw, file)) size += length;
  return size;
}

/** The bytes of a file, in memory of their own. */
export function fileBytes(raw: Uint8Array, file: FileBody): Uint8Array {
  const bytes = new Uint8Array(fileSize(raw, file));
  let at = 0;
  for (const piece of pieces(raw, file)) {
    bytes.set(piece, at);
    at += piece.length;
  }
  return bytes;
}
