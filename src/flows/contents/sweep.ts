import type { Clock } from "../../core/clock.ts";
import type { Db } from "../../store/engine/client.ts";
import { removeUnused } from "../../store/contents/contents.ts";

/** Contents removed in one turn of the chores at most. */
export const CONTENTS_PER_TURN = 200;

/** Removes contents that nobody names any more, and those that were written ahead of a commit which never came. */
export async function sweepContents({ db, clock }: { db: Db; clock: Clock }): Promise<void> {
  await removeUnused(db, clock.now(), CONTENTS_PER_TURN);
}
