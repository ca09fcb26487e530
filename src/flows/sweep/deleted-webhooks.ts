import type { Db } from "../../store/engine/client.ts";
import { removeDeleted } from "../../store/webhooks.ts";

/** Lines of a log removed in one write, some three milliseconds, and such writes of one turn. */
export const LINES_PER_WRITE = 500;
export const WRITES_PER_TURN = 4;

/** Removes deleted webhooks with their logs, as much as one turn takes. Any number of processes may do it. */
export async function removeDeletedWebhooks(db: Db): Promise<void> {
  for (let write = 0; write < WRITES_PER_TURN && (await removeDeleted(db, LINES_PER_WRITE)); write++);
}
