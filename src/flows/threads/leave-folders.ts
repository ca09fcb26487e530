import { AppError } from "../../core/errors.ts";
import { HOUR_MS } from "../../core/time/units.ts";
import {
  keepInFolder,
  type LeavingThread,
  leavingThreads,
  wakeThreads,
} from "../../store/threads/thread-changes.ts";
import { getThread } from "../../store/threads/threads.ts";
import type { DeletionDeps } from "../sweep/delete-messages.ts";
import { deleteThread } from "../sweep/delete-now.ts";

/** Threads that leave their folders in one turn. */
export const LEAVING_PER_TURN = 100;
/** Pause until a thread whose messages are still in progress is deleted, milliseconds. */
export const MOVING_PAUSE_MS = HOUR_MS;

/**
 * Makes the chore that brings snoozed threads back at their time, and deletes those whose thirty days in spam or trash are
 * over. Any number of processes may run it.
 */
export function leaveFolders(deps: DeletionDeps): () => Promise<void> {
  return async () => {
    const { db, clock } = deps;
    const now = clock.now();
    const leaving = await leavingThreads(db, now, LEAVING_PER_TURN);
    const snoozed = leaving.filter(({ folder }) => folder === "snoozed").map(({ id }) => id);
    if (snoozed.length > 0) await db.write([wakeThreads(snoozed, now)]);
    for (const thread of leaving) if (thread.folder !== "snoozed") await remove(deps, thread, now);
  };
}

/** Deletes a thread with its messages. One with a message in progress waits, so that it does not hold up the others. */
async function remove(deps: DeletionDeps, { id, senderId }: LeavingThread, now: number): Promise<void> {
  const thread = await getThread(deps.db, senderId, id);
  // A request may have taken it out of the folder while others were deleted.
  if (thread?.folderUntil == null || thread.folderUntil > now) return;
  try {
    await deleteThread(deps, senderId, id);
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    await deps.db.write([keepInFolder(id, now, now + MOVING_PAUSE_MS)]);
  }
}
