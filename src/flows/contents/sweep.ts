import type { Clock } from "../../core/clock.ts";
import type { Db } from "../../store/engine/client.ts";
import { removeUnused } from "../../store/contents/contents.ts";

/** Contents removed in one write: some four milliseconds of the event loop. */
export const UNUSED_PER_WRITE = 50;
/** Such writes of one turn of the chores: as many contents as messages of retention let go of in theirs, body and raw mail. */
export const WRITES_PER_TURN = 40;

/** Removes contents that nobody names any more, and those that were written ahead of a commit which never came. */
export async function sweepContents({ db, clock }: { db: Db; clock: Clock }): Promise<void> {
  for (let write = 0; write < WRITES_PER_TURN; write++)
    if (!(await removeUnused(db, clock.now(), UNUSED_PER_WRITE))) return;
}
