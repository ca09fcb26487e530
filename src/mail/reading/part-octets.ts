import type { Span } from "./mime-tree.ts";
import {
  type Decode,
  DECODERS,
  type Encoding,
  type LineEnd,
  MAX_KEPT_BACK,
} from "../decoding/transfer-decoders.ts";

/** Octets of a body that are decoded at a time. */
export const WINDOW_OCTETS = 64 * 1024;

const [LF, CR] = [0x0a, 0x0d];
const LINE_END = Uint8Array.of(LF);

/**
 * Yields the decoded content of a body piece by piece. Each line has an end, the last one too. Use each piece
 * before requesting the next, which reuses its memory.
 * @param lineEnd in quoted-printable; any other body has LF alone
 */
export function* octetsOf(
  raw: Uint8Array,
  span: Span,
  encoding: Encoding,
  lineEnd: LineEnd = "lf",
): Generator<Uint8Array> {
  if (encoding === "identity") return yield* linesOf(raw, span);
  const decode = DECODERS[encoding](lineEnd);
  const memory = new Uint8Array((lineEnd === "crlf" ? 2 : 1) * windowOf(span) + MAX_KEPT_BACK);
  const decoded = (lines: Parameters<Decode>[0]): Uint8Array => memory.subarray(0, decode(lines, memory));
  for (const lines of linesOf(raw, span)) {
    const octets = decoded(lines);
    if (octets.length > 0) yield octets;
  }
  const rest = decoded(null);
  if (rest.length > 0) yield rest;
}

function windowOf({ from, to }: Span): number {
  return Math.min(to - from, WINDOW_OCTETS);
}

/** Yields the lines of a body. All CRs before a line's LF are removed; any other CR is content. */
function* linesOf(raw: Uint8Array, span: Span): Generator<Uint8Array> {
  const { from, to } = span;
  // Reading in place would check each octet of shared memory that can grow.
  const memory = new Uint8Array(windowOf(span));
  for (let at = from; at < to; ) {
    const end = beforeCrs(raw, at, Math.min(to, at + memory.length), to);
    if (end === at) {
      const next = endOfCrs(raw, at, to);
      if (next < to && raw[next] !== LF) yield* crs(memory, next - at);
      at = next;
      continue;
    }
    const window = memory.subarray(0, end - at);
    window.set(raw.subarray(at, end));
    at = end;
    const size = withoutCrs(window);
    if (size > 0) yield window.subarray(0, size);
  }
  if (to > from && raw[to - 1] !== LF) yield LINE_END;
}

/**
 * Returns the start of the CRs at the end of a window: the octets that follow decide about them. Without any it is
 * the end itself.
 */
function beforeCrs(raw: Uint8Array, start: number, end: number, to: number): number {
  if (end === to && raw[end - 1] !== CR) return end;
  let before = end;
  while (before > start && raw[before - 1] === CR) before--;
  return before;
}

function endOfCrs(raw: Uint8Array, start: number, to: number): number {
  let end = start;
  while (end < to && raw[end] === CR) end++;
  return end;
}

function* crs(memory: Uint8Array, count: number): Generator<Uint8Array> {
  for (let left = count; left > 0; left -= memory.length)
    yield memory.fill(CR).subarray(0, Math.min(left, memory.length));
}

/** Removes the CRs before each LF, in place; there is none at the end. Returns the number of octets left. */
function withoutCrs(window: Uint8Array): number {
  let size = 0;
  let crs = 0;
  for (let at = 0; at < window.length; at++) {
    const octet = window[at] ?? 0;
    if (octet === CR) crs++;
    else {
      if (crs > 0 && octet !== LF) for (; crs > 0; crs--) window[size++] = CR;
      crs = 0;
      window[size++] = octet;
    }
  }
  return size;
}
