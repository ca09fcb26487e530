import type { Db } from "../../store/engine/client.ts";
import { indexWaiting, mergeSegments } from "../../store/search/message-index.ts";

/** Messages indexed in one write, which holds the event loop for about ten milliseconds. */
const MESSAGES_PER_WRITE = 250;
/** Writes of one turn. Sends that are accepted at the same time share their commits. */
const WRITES_PER_TURN = 4;
export const MESSAGES_PER_TURN = MESSAGES_PER_WRITE * WRITES_PER_TURN;
/**
 * Messages up to which a turn also merges pieces. With more, merging would double the cost of each message, and FTS5's own
 * merges keep the index at about twenty pieces.
 */
const QUIET_MESSAGES = 50;
/** Index pages merged in one write, which takes about six milliseconds, and such writes of a turn. */
const PAGES_PER_MERGE = 64;
const MERGES_PER_TURN = 4;

/**
 * Makes the chore that indexes the messages stored since its last turn. If there were few, it also merges pieces of the
 * index, until nothing is left to merge. Turns may be late, fail or run in several processes, because a search reads
 * unindexed messages one by one.
 */
export function indexMessages(db: Db): () => Promise<void> {
  // After a start there may be pieces that an earlier process left.
  let hasPieces = true;
  return async () => {
    const indexed = await indexSome(db);
    hasPieces ||= indexed > 0;
    if (indexed > QUIET_MESSAGES) return;
    if (hasPieces) hasPieces = await mergePieces(db, "message_terms");
  };
}

/** Merges some pieces of an index. Returns false if nothing is left to merge. */
export async function mergePieces(db: Db, table: "message_terms" | "message_words"): Promise<boolean> {
  for (let merge = 0; merge < MERGES_PER_TURN; merge++)
    if (!(await mergeSegments(db, PAGES_PER_MERGE, table))) return false;
  return true;
}

/** Indexes the messages of one turn. Returns their number. */
async function indexSome(db: Db): Promise<number> {
  let indexed = 0;
  for (let write = 0; write < WRITES_PER_TURN; write++) {
    const found = await indexWaiting(db, MESSAGES_PER_WRITE);
    indexed += found;
    if (found < MESSAGES_PER_WRITE) break;
  }
  return indexed;
}
