import { AppError } from "../../core/errors.ts";
import { atMostEvery } from "../../core/time/clock.ts";
import { DAY_MS, MINUTE_MS } from "../../core/time/units.ts";
import { log } from "../../log.ts";
import { delegatedWithOldKey } from "../../store/domains/dkim-keys.ts";
import { rotateDkim } from "./rotate.ts";
import type { Checking } from "./checking.ts";

/** Age at which the DKIM key of a delegated domain is replaced. M3AAWG advises a change every six months at least. */
export const OLD_KEY_MS = 90 * DAY_MS;
/** Pause between two looks for old keys. */
export const LOOK_PAUSE_MS = MINUTE_MS;
/**
 * Maximum number of keys replaced in one turn. Thousands of domains that were registered on one day take some
 * hours.
 */
export const ROTATIONS_PER_LOOK = 10;

/**
 * Makes the chore that rotates the old DKIM keys of delegated domains, whose owners have nothing to publish. Any number of
 * processes may run it: of two rotations at once one wins.
 */
export function openRotation(deps: Checking): () => Promise<void> {
  const { db, clock } = deps;
  const isTimeToLook = atMostEvery(clock, LOOK_PAUSE_MS);
  return async () => {
    if (!isTimeToLook()) return;
    const now = clock.now();
    const old = await delegatedWithOldKey(db, {
      madeBefore: now - OLD_KEY_MS,
      now,
      limit: ROTATIONS_PER_LOOK,
    });
    for (const { senderId, id } of old)
      await rotateDkim(deps, { senderId, id, now, also: () => [] }).then(
        () => log("verify").info("the DKIM key of a domain is old and is replaced", { id }),
        ignoreChange,
      );
  };
}

/** Another process has begun the rotation, or the domain was deleted. */
function ignoreChange(error: unknown): void {
  if (!(error instanceof AppError)) throw error;
}
