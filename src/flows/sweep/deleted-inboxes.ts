import type { Db } from "../../store/engine/client.ts";
import { markedInboxes, removeInbox } from "../../store/inbox-removal.ts";

/** A chore that removes, once, the inboxes whose deletion a process that ended has left half done. */
export function removeDeletedInboxes(db: Db): () => Promise<void> {
  let isDone = false;
  return async () => {
    if (isDone) return;
    for (const id of await markedInboxes(db)) await removeInbox(db, id);
    isDone = true;
  };
}
