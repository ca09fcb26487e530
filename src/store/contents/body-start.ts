import { CHUNK_OCTETS } from "./content-bytes.ts";
import { type Contents, contentBytes, contentRange, type StoredContent } from "./content-read.ts";
import type { MemoryBudget } from "./memory-budget.ts";
import { type BodyEnd, bodyEndIn, bodyEndSize, bodyIn, type MessageBody } from "./message-body.ts";

/** The beginning of a string. */
export interface Clipped {
  /** Null if the message has no such text. */
  part: string | null;
  /** True if the text continues after the part. */
  cut: boolean;
}

/** The beginning of a message's bodies, and its header fields. */
export interface BodyStart {
  html: Clipped;
  text: Clipped;
  headers?: Record<string, string> | undefined;
}

/** Returns the first octets of a string in UTF-8, not cut within a character. */
export function clipText(text: string | null, octets: number): Clipped {
  if (text === null || text.length * 3 <= octets) return { part: text, cut: false };
  // Each unit of UTF-16 takes an octet or more, so units after that number are cut off in any case.
  const bytes = Buffer.from(text.slice(0, octets + 1));
  return bytes.length <= octets ? { part: text, cut: false } : clipBytes(bytes, octets);
}

/** Returns the first octets of longer UTF-8, not cut within a character. */
function clipBytes(bytes: Buffer, octets: number): Clipped {
  let end = octets;
  // A byte 10xxxxxx continues a character that began before it.
  while (end > 0 && ((bytes[end] ?? 0) & 0xc0) === 0x80) end--;
  return { part: bytes.toString("utf8", 0, end), cut: true };
}

/** Returns the beginning of a body that is in memory. */
export function startOf({ html, text, headers }: MessageBody, octets: number): BodyStart {
  return { html: clipText(html, octets), text: clipText(text, octets), headers };
}

/**
 * Reads the first bytes of each stored body. If it is in chunks, only the chunks with those bytes and with its
 * end are read. An object is read as a whole.
 */
export async function readBodyStart(
  deps: Contents,
  content: StoredContent,
  octets: number,
  budget: MemoryBudget,
): Promise<BodyStart> {
  if (content.storedIn !== "chunks")
    return startOf(bodyIn(await contentBytes(deps, content, budget)), octets);
  const end = await readEnd(deps, content, budget);
  const [html = null, text = null] = end.octets;
  return {
    html: await readText(deps, content, { from: 0, size: html }, octets, budget),
    text: await readText(deps, content, { from: html ?? 0, size: text }, octets, budget),
    headers: end.headers,
  };
}

/** Reads the end of a body, which says how long each text is. */
async function readEnd(deps: Contents, content: StoredContent, budget: MemoryBudget): Promise<BodyEnd> {
  const { size } = content;
  const last = await contentRange(deps, content, Math.max(0, size - CHUNK_OCTETS), size, budget);
  const endSize = bodyEndSize(last);
  const whole =
    endSize <= last.length ? last : await contentRange(deps, content, size - endSize, size, budget);
  return bodyEndIn(whole);
}

async function readText(
  deps: Contents,
  content: StoredContent,
  { from, size }: { from: number; size: number | null },
  octets: number,
  budget: MemoryBudget,
): Promise<Clipped> {
  if (size === null || octets === 0) return { part: size === null ? null : "", cut: (size ?? 0) > 0 };
  // One byte more, which shows whether a character is cut.
  const to = from + Math.min(size, octets + 1);
  const bytes = Buffer.from(await contentRange(deps, content, from, to, budget));
  return bytes.length <= octets ? { part: bytes.toString(), cut: false } : clipBytes(bytes, octets);
}
