import { yieldToEventLoop } from "../../core/concurrency/event-loop.ts";
import type { DeferredValue } from "../sql/engine.ts";
import {
  type ContentEncoding,
  digestOf,
  encodingFor,
  projectKey,
  storedBytes,
  ZSTD_LEVEL,
} from "../sql/content-values.ts";

/**
 * Largest content that is stored in its row, in plain bytes. Larger ones are stored in chunks of this size. The stored form
 * depends on it: a program with another number could not read it.
 */
export const CHUNK_OCTETS = 256 * 1024;

/** Bytes that can be read piece by piece: an array, or one that is made on demand. */
export interface ByteSource {
  readonly length: number;
  /** Returns the bytes in the range [from, to). */
  subarray(from: number, to: number): Uint8Array;
  /** Returns the chunk at an offset, if it already has this encoding in memory that will not be reused. */
  encoded?(from: number, encoding: ContentEncoding): Uint8Array | null;
}

export type NewContent = HashedContent | DeferredHashed;

export interface HashedContent {
  /** The project whose content it is; absent before `ofProject`. */
  senderId?: string;
  /** The SHA-256 of the bytes, or the `projectKey` of a project's content. */
  key: Uint8Array;
  /** Plain bytes. */
  size: number;
  encoding: ContentEncoding;
  /** The encoded bytes; null if they are stored ahead, in chunks. */
  bytes: Uint8Array | null;
}

/** A content that is hashed and compressed on the thread that stores it. */
interface DeferredHashed extends Pick<HashedContent, "size" | "senderId"> {
  key: DeferredValue;
  encoding: DeferredValue;
  bytes: DeferredValue;
}

/** Makes a content of bytes: encoded if it is small, without bytes if it must be stored in chunks. */
export function newContent(bytes: Uint8Array): HashedContent {
  const [key, size] = [digestOf(bytes), bytes.length];
  if (size > CHUNK_OCTETS) return { key, size, encoding: encodingOf(bytes), bytes: null };
  return { key, size, ...storedBytes(bytes) };
}

/** Makes a content the project's own. */
export function ofProject(senderId: string, content: HashedContent): HashedContent {
  return { ...content, senderId, key: projectKey(senderId, content.key) };
}

/** Bytes of the time at the start of an ordered key. */
const TIME_OCTETS = 6;
/** Stored bytes up to which a received content has an ordered key: sharing it would save less than a page. */
const MAX_ORDERED_OCTETS = 4096;

/**
 * Gives a small content of a received message a key that begins with the time, so that the newest keys are together in
 * their index. A commit then writes one page of it, not one for each content. Only copies that are stored in one write
 * share such a content. A larger content keeps its key.
 * @param at milliseconds
 */
export function orderedByTime(content: HashedContent, at: number): HashedContent {
  if (content.bytes === null || content.bytes.length > MAX_ORDERED_OCTETS) return content;
  const key = Buffer.from(content.key);
  key.writeUIntBE(at, 0, TIME_OCTETS);
  return { ...content, key };
}

/** Returns the part of a key that equal bytes of a project have in common, ordered or not. See `RAW_KEY_END`. */
export function keyEnd(key: Uint8Array): Uint8Array {
  return key.subarray(TIME_OCTETS);
}

/** SQL for that part of the key of the raw bytes of a message's content `c`. */
export const RAW_KEY_END = `substr(c.raw, ${TIME_OCTETS + 1})`;

/** Chunks hashed at a time: 4 MiB, some milliseconds. */
const CHUNKS_PER_TURN = 16;

/** Does the same as `newContent`, and yields to the event loop while it hashes a large content. */
export async function contentOf(bytes: ByteSource): Promise<HashedContent> {
  const size = bytes.length;
  if (size <= CHUNK_OCTETS) return newContent(bytes.subarray(0, size));
  const hash = new Bun.CryptoHasher("sha256");
  for (let ord = 0; ord < chunkCount(size); ord++) {
    if (ord % CHUNKS_PER_TURN === 0) await yieldToEventLoop();
    hash.update(chunkAt(bytes, ord));
  }
  return { key: hash.digest(), size, encoding: encodingOf(bytes), bytes: null };
}

/** Chooses the encoding of a large content from its first chunk and one in its middle. */
function encodingOf(bytes: ByteSource): ContentEncoding {
  const samples = [0, Math.floor(bytes.length / 2)].map((from) => bytes.subarray(from, from + CHUNK_OCTETS));
  let before = 0;
  let after = 0;
  for (const sample of samples) {
    before += sample.length;
    after += Bun.zstdCompressSync(sample, { level: ZSTD_LEVEL }).length;
  }
  return encodingFor(before, after);
}

/** Returns the number of chunks of a content. */
export function chunkCount(size: number): number {
  return Math.ceil(size / CHUNK_OCTETS);
}

/** Encodes a chunk of a large content on the thread pool. The result shares no memory with the content. */
export async function encodedChunk(
  bytes: ByteSource,
  ord: number,
  encoding: ContentEncoding,
): Promise<Uint8Array> {
  const ready = bytes.encoded?.(ord * CHUNK_OCTETS, encoding) ?? null;
  if (ready !== null) return ready;
  const chunk = chunkAt(bytes, ord);
  return encoding === "plain" ? new Uint8Array(chunk) : await Bun.zstdCompress(chunk, { level: ZSTD_LEVEL });
}

function chunkAt(bytes: ByteSource, ord: number): Uint8Array {
  return bytes.subarray(ord * CHUNK_OCTETS, (ord + 1) * CHUNK_OCTETS);
}

/** Decodes stored bytes: a small content, a chunk, or the joined chunks of a large one. */
export function decoded(bytes: Uint8Array, encoding: ContentEncoding): Uint8Array {
  return encoding === "plain" ? bytes : Bun.zstdDecompressSync(bytes);
}
