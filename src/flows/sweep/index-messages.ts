import type { Db } from "../../store/engine/client.ts";
import { mergePieces } from "../../store/search/index-pieces.ts";
import { enterAnew } from "../../store/search/entering-anew.ts";
import { indexWaiting } from "../../store/search/message-index.ts";

/** Messages that enter the index in one write: it holds the event loop for some ten milliseconds. */
const MESSAGES_PER_WRITE = 250;
/** Writes of one turn at most: sends that are accepted meanwhile share them, and have what is left of the time. */
const WRITES_PER_TURN = 4;
/** Messages entered in one turn at most. */
export const MESSAGES_PER_TURN = MESSAGES_PER_WRITE * WRITES_PER_TURN;
/** Messages of older programs that are entered anew in one write, some five milliseconds. */
const ANEW_PER_WRITE = 100;
/**
 * A turn that finds no more than this is a quiet one. At more, merging costs each message as much again as entering it,
 * and what FTS5 merges by itself keeps the index at some twenty pieces.
 */
const QUIET_MESSAGES = 50;
/** Pages of the index merged in one write, some six milliseconds, and such writes of a quiet turn. */
const PAGES_PER_MERGE = 64;
const MERGES_PER_TURN = 4;

/**
 * Enters into the search index what was stored since the last turn, and anew some of what older programs have entered; merges
 * the index's pieces while little comes. What has not been entered is found all the same, one by one: turns may be late, fail,
 * or be made by several processes at once.
 */
export async function indexMessages(db: Db): Promise<void> {
  let entered = 0;
  for (let write = 0; write < WRITES_PER_TURN; write++) {
    const found = await indexWaiting(db, MESSAGES_PER_WRITE);
    entered += found;
    if (found < MESSAGES_PER_WRITE) break;
  }
  const quiet = entered <= QUIET_MESSAGES;
  for (let write = 0; write < (quiet ? WRITES_PER_TURN : 1); write++)
    if ((await enterAnew(db, ANEW_PER_WRITE)) < ANEW_PER_WRITE) break;
  if (!quiet) return;
  for (let merge = 0; merge < MERGES_PER_TURN && (await mergePieces(db, PAGES_PER_MERGE)); merge++);
}
