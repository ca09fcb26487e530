import type { Clock } from "../../core/clock.ts";
import type { Db } from "../../store/engine/client.ts";
import { LaterContent } from "../../store/engine/later-content.ts";
import {
  chunkCount,
  contentOf,
  encodedChunk,
  type HashedContent,
  type NewContent,
  ofProject,
  type Pieces,
} from "../../store/contents/content-bytes.ts";
import { findContent, storeChunks } from "../../store/contents/contents.ts";
import { bodyBytes, type MessageBody } from "../../store/contents/message-body.ts";

export interface KeepDeps {
  db: Db;
  clock: Clock;
}

/** Chunks written at a time: 1 MiB as read, some milliseconds of the event loop, which turns in between. */
const CHUNKS_PER_WRITE = 4;

/** Octets of a content that is hashed and compressed by the write that takes it up: many may share a commit. */
const MAX_LATER_OCTETS = 64 * 1024;

/** Makes bytes a content of the project's, ready for the write that takes it up: a large one is stored ahead of that. */
export async function keepContent(deps: KeepDeps, senderId: string, bytes: Pieces): Promise<NewContent> {
  const size = bytes.length;
  if (size <= MAX_LATER_OCTETS) {
    const { key, encoding, bytes: stored } = new LaterContent(senderId, bytes.subarray(0, size));
    return { key, size, encoding, bytes: stored };
  }
  const content = ofProject(senderId, await contentOf(bytes));
  return content.bytes === null ? await writeAhead(deps, content, bytes) : content;
}

/** Makes html and text a body of the project's, ready for the write of its message. */
export async function keepBody(deps: KeepDeps, senderId: string, body: MessageBody): Promise<NewContent> {
  return keepContent(deps, senderId, bodyBytes(body));
}

/**
 * Stores a large content, a few chunks a write, so that no write holds the event loop for long; where it is there
 * already, nothing is written. What no write takes up goes with the sweep.
 * @param bytes the whole of it, not to be changed meanwhile
 * @returns the content as it stands in the database
 */
export async function writeAhead(
  { db, clock }: KeepDeps,
  content: HashedContent,
  bytes: Pieces,
): Promise<HashedContent> {
  const known = await findContent(db, content.key);
  // What another program began, it may have begun in another encoding.
  const kept = known === null ? content : { ...content, encoding: known.encoding };
  if (known?.named === true) return kept;
  const count = chunkCount(content.size);
  for (let from = 0; from < count; from += CHUNKS_PER_WRITE) {
    const ords = Array.from({ length: Math.min(CHUNKS_PER_WRITE, count - from) }, (_, at) => from + at);
    const chunks = await Promise.all(ords.map((ord) => encodedChunk(bytes, ord, kept.encoding)));
    await db.write(storeChunks(kept, from, chunks, clock.now()));
  }
  return kept;
}
