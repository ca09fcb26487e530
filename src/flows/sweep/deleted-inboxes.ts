import type { Clock } from "../../core/clock.ts";
import { MINUTE_MS } from "../../core/time-units.ts";
import type { Db } from "../../store/engine/client.ts";
import { markedInboxes, removeInbox } from "../../store/inbox-removal.ts";
import { restingWhenDone } from "./patience.ts";

/** Between two looks, which read all inboxes: a domain cannot be deleted as long as one of its own is half removed. */
export const INBOXES_PAUSE_MS = 10 * MINUTE_MS;

/**
 * A chore that removes the inboxes whose deletion has been left half done: by a process that has ended, which may be one that
 * has no chores, or by a request whose write has failed.
 */
export function removeDeletedInboxes({ db, clock }: { db: Db; clock: Clock }): () => Promise<void> {
  return restingWhenDone(clock, INBOXES_PAUSE_MS, async () => {
    for (const id of await markedInboxes(db)) await removeInbox(db, id);
    return true;
  });
}
