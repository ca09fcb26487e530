import type { Store } from "../engine/client.ts";
import { DeferredContent } from "../sql/deferred-content.ts";
import {
  chunkCount,
  contentOf,
  encodedChunk,
  type HashedContent,
  type NewContent,
  ofProject,
  type ByteSource,
} from "../contents/content-bytes.ts";
import { findContent, storeChunks } from "../contents/contents.ts";
import { withinStored } from "../projects/holdings.ts";
import { bodyBytes, type MessageBody } from "../contents/message-body.ts";

export interface PrepareDeps extends Store {
  /** Bytes that the project can store, checked before each piece. If null or left out, there is no limit. */
  storedLimit?: number | null;
}

/** Chunks (1 MiB) per write, which holds the event loop for some milliseconds. */
const CHUNKS_PER_WRITE = 4;

/** Largest content that is hashed and compressed by the write of its message. */
const MAX_LATER_OCTETS = 64 * 1024;

/** Prepares bytes as a content of the project for the write of its message. A large one is stored now. */
export async function prepareContent(
  deps: PrepareDeps,
  senderId: string,
  bytes: ByteSource,
): Promise<NewContent> {
  const size = bytes.length;
  if (size <= MAX_LATER_OCTETS) {
    const { key, encoding, bytes: stored } = new DeferredContent(senderId, bytes.subarray(0, size));
    return { senderId, key, size, encoding, bytes: stored };
  }
  const content = ofProject(senderId, await contentOf(bytes));
  return content.bytes === null ? await writeAhead(deps, content, bytes) : content;
}

/** Prepares html and text as a body of the project for the write of its message. */
export async function prepareBody(
  deps: PrepareDeps,
  senderId: string,
  body: MessageBody,
): Promise<NewContent> {
  return prepareContent(deps, senderId, bodyBytes(body));
}

/**
 * Stores a large content in small writes, so that none holds the event loop for long. Does nothing if it is stored already.
 * The sweep removes a content that no message refers to. The first piece counts the whole size against the quota;
 * `overQuotaIn` knows that error.
 * @param bytes all bytes, which must not change until this resolves
 * @returns the content as the database has it
 */
export async function writeAhead(
  { db, clock, storedLimit = null }: PrepareDeps,
  content: HashedContent,
  bytes: ByteSource,
): Promise<HashedContent> {
  const known = await findContent(db, content.key);
  // Another process may have started to store it in another encoding.
  const kept = known === null ? content : { ...content, encoding: known.encoding };
  if (known?.named === true) return kept;
  const count = chunkCount(content.size);
  for (let from = 0; from < count; from += CHUNKS_PER_WRITE) {
    const ords = Array.from({ length: Math.min(CHUNKS_PER_WRITE, count - from) }, (_, at) => from + at);
    const chunks = await Promise.all(ords.map((ord) => encodedChunk(bytes, ord, kept.encoding)));
    const stored = storeChunks(kept, from, chunks, clock.now());
    await db.write([...stored, ...withinStored(content.senderId ?? "", storedLimit)]);
  }
  return kept;
}
