import { turn } from "../../core/turn.ts";
import type { LaterValue } from "../engine/engine.ts";
import {
  type ContentEncoding,
  digestOf,
  encodingFor,
  projectKey,
  storedBytes,
  ZSTD_LEVEL,
} from "../engine/content-values.ts";

/**
 * Octets of a content as read that are kept in one piece; larger contents are kept in chunks of so many, a rule of the
 * stored form: what a program with another number has written could not be read.
 */
export const CHUNK_OCTETS = 256 * 1024;
/** Bytes that can be had piece by piece as of an array: all of them in memory, or made when they are asked for. */
export interface Pieces {
  readonly length: number;
  /** Those from one place to before another, or to the end. */
  subarray(from: number, to: number): Uint8Array;
  /** The chunk from that place on, where it is there encoded so already, in memory that is not used again. */
  encoded?(from: number, encoding: ContentEncoding): Uint8Array | null;
}

/** A content on its way into the store. */
export type NewContent = HashedContent | LaterHashed;

export interface HashedContent {
  /** Of bytes alone, their SHA-256; of a project's content, its own: see `projectKey`. */
  key: Uint8Array;
  /** Octets as they are read back. */
  size: number;
  encoding: ContentEncoding;
  /** As stored; null for one that is written ahead, in chunks. */
  bytes: Uint8Array | null;
}

/** One that is hashed and compressed where it is stored. */
interface LaterHashed extends Pick<HashedContent, "size"> {
  key: LaterValue;
  encoding: LaterValue;
  bytes: LaterValue;
}

/** The content that some bytes are: a small one ready to be stored, of a large one how its chunks are to be stored. */
export function newContent(bytes: Uint8Array): HashedContent {
  const [key, size] = [digestOf(bytes), bytes.length];
  if (size > CHUNK_OCTETS) return { key, size, encoding: encodingOf(bytes), bytes: null };
  return { key, size, ...storedBytes(bytes) };
}

/** The content as the project's own. */
export function ofProject(senderId: string, content: HashedContent): HashedContent {
  return { ...content, key: projectKey(senderId, content.key) };
}

/** Chunks hashed at a time: 4 MiB, some milliseconds. */
const CHUNKS_PER_TURN = 16;

/** As `newContent`, of bytes of any size: the event loop turns while a large content is hashed. */
export async function contentOf(bytes: Pieces): Promise<HashedContent> {
  const size = bytes.length;
  if (size <= CHUNK_OCTETS) return newContent(bytes.subarray(0, size));
  const hash = new Bun.CryptoHasher("sha256");
  for (let ord = 0; ord < chunkCount(size); ord++) {
    if (ord % CHUNKS_PER_TURN === 0) await turn();
    hash.update(chunkAt(bytes, ord));
  }
  return { key: hash.digest(), size, encoding: encodingOf(bytes), bytes: null };
}

/** Whether a large content shrinks, as its first chunk and the one in its middle tell. */
function encodingOf(bytes: Pieces): ContentEncoding {
  const samples = [0, Math.floor(bytes.length / 2)].map((from) => bytes.subarray(from, from + CHUNK_OCTETS));
  let before = 0;
  let after = 0;
  for (const sample of samples) {
    before += sample.length;
    after += Bun.zstdCompressSync(sample, { level: ZSTD_LEVEL }).length;
  }
  return encodingFor(before, after);
}

/** Number of chunks that a content of so many octets has. */
export function chunkCount(size: number): number {
  return Math.ceil(size / CHUNK_OCTETS);
}

/** A chunk of a large content as it is stored, compressed by the thread pool. Its memory is its own. */
export async function encodedChunk(
  bytes: Pieces,
  ord: number,
  encoding: ContentEncoding,
): Promise<Uint8Array> {
  const ready = bytes.encoded?.(ord * CHUNK_OCTETS, encoding) ?? null;
  if (ready !== null) return ready;
  const chunk = chunkAt(bytes, ord);
  return encoding === "plain" ? new Uint8Array(chunk) : await Bun.zstdCompress(chunk, { level: ZSTD_LEVEL });
}

function chunkAt(bytes: Pieces, ord: number): Uint8Array {
  return bytes.subarray(ord * CHUNK_OCTETS, (ord + 1) * CHUNK_OCTETS);
}

/** Stored bytes as they are read: a whole small content, a chunk, or a large one whose chunks stand one after another. */
export function decoded(bytes: Uint8Array, encoding: ContentEncoding): Uint8Array {
  return encoding === "plain" ? bytes : Bun.zstdDecompressSync(bytes);
}
