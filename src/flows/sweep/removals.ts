import { MINUTE_MS } from "../../core/time/units.ts";
import { removeUnused } from "../../store/contents/contents.ts";
import type { Db, Store } from "../../store/engine/client.ts";
import { giveBackPages } from "../../store/installation/free-pages.ts";
import { markedInboxes, removeInbox } from "../../store/threads/inbox-removal.ts";
import { removeDeleted } from "../../store/webhooks/webhooks.ts";
import { pauseWhenDone } from "./backoff.ts";

// Any number of processes may run these chores at once.

/** Pause between two searches for deleted inboxes, milliseconds. Each search reads all inboxes. */
export const INBOXES_PAUSE_MS = 10 * MINUTE_MS;
/** Rows of a webhook's log removed in one write, which takes about three milliseconds. */
export const LOG_ROWS_PER_WRITE = 500;
export const LOG_WRITES_PER_TURN = 4;
/** Contents removed in one write, which holds the event loop for about four milliseconds. */
export const CONTENTS_PER_WRITE = 50;
/** Enough to remove the bodies and raw messages that one turn of the retention releases. */
export const CONTENT_WRITES_PER_TURN = 40;
/** Pages given back in one write, which takes about two milliseconds, and such writes of a turn: 2 MiB. */
export const PAGES_PER_WRITE = 64;
const PAGE_WRITES_PER_TURN = 8;

/**
 * Makes the chore that finishes deletions of inboxes. A deletion stays half done if its process ended or its write
 * failed. Until it is done, the domain of the inbox cannot be deleted.
 */
export function removeDeletedInboxes({ db, clock }: Store): () => Promise<void> {
  return pauseWhenDone(clock, INBOXES_PAUSE_MS, async () => {
    for (const id of await markedInboxes(db)) await removeInbox(db, id);
    return true;
  });
}

/** Removes deleted webhooks and their logs, one limited step per turn. */
export async function removeDeletedWebhooks(db: Db): Promise<void> {
  for (let write = 0; write < LOG_WRITES_PER_TURN; write++)
    if (!(await removeDeleted(db, LOG_ROWS_PER_WRITE))) return;
}

/** Removes contents that no message refers to, and those that were written before a commit that never came. */
export async function removeUnusedContents({ db, clock }: Store): Promise<void> {
  for (let write = 0; write < CONTENT_WRITES_PER_TURN; write++)
    if (!(await removeUnused(db, clock.now(), CONTENTS_PER_WRITE))) return;
}

/** Gives pages that deletions have freed back to the file system, one limited step per turn. */
export async function giveBackSpace(db: Db): Promise<void> {
  for (let write = 0; write < PAGE_WRITES_PER_TURN; write++)
    if (!(await giveBackPages(db, PAGES_PER_WRITE))) return;
}
