import type { Clock } from "../../core/clock.ts";
import type { Db } from "../../store/engine/client.ts";
import {
  chunkCount,
  contentOf,
  encodedChunk,
  type NewContent,
  ofProject,
  type Pieces,
} from "../../store/contents/content-bytes.ts";
import { findContent, storeChunks } from "../../store/contents/contents.ts";
import {
  bodyBytes,
  inlineBody,
  MAX_INLINE_OCTETS,
  type MessageBody,
  type NewBody,
} from "../../store/contents/message-body.ts";
import type { BodyRepeats } from "./body-repeats.ts";

export interface KeepDeps {
  db: Db;
  clock: Clock;
  /** Where bodies come again and again: small ones are kept once then, too. */
  repeats?: BodyRepeats;
}

/** Chunks written at a time: 1 MiB as read, some milliseconds of the event loop, which turns in between. */
const CHUNKS_PER_WRITE = 4;

/** Makes bytes a content of the project's, ready for the write that takes it up: a large one is stored ahead of that. */
export async function keepContent(deps: KeepDeps, senderId: string, bytes: Pieces): Promise<NewContent> {
  const content = ofProject(senderId, await contentOf(bytes));
  return content.bytes === null ? await writeAhead(deps, content, bytes) : content;
}

/** Octets of the smallest body that is shared: the row of a content takes some two hundred by itself. */
const MIN_SHARED_OCTETS = 512;

/**
 * Makes html and text a body of the project's, ready for the write of its message. A small one stands in the message's
 * row when it comes for the first time, since most never come again, and is a content, kept once, from the second on.
 */
export async function keepBody(deps: KeepDeps, senderId: string, body: MessageBody): Promise<NewBody> {
  const bytes = bodyBytes(body);
  const shared =
    bytes.length > MAX_INLINE_OCTETS ||
    (bytes.length >= MIN_SHARED_OCTETS && deps.repeats?.seen(senderId, bytes) === true);
  return shared ? keepContent(deps, senderId, bytes) : inlineBody(bytes);
}

/**
 * Stores a large content, a few chunks a write, so that no write holds the event loop for long; where it is there
 * already, nothing is written. What no write takes up goes with the sweep.
 * @param bytes the whole of it, not to be changed meanwhile
 * @returns the content as it stands in the database
 */
export async function writeAhead(
  { db, clock }: KeepDeps,
  content: NewContent,
  bytes: Pieces,
): Promise<NewContent> {
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
