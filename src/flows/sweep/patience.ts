import type { Clock } from "../../core/clock.ts";

/** Rest after the first failure of a row of them, and the longest one (milliseconds); each is twice the one before. */
export const FIRST_REST_MS = 2000;
export const LONGEST_REST_MS = 300_000;

/**
 * A chore that rests for a while once a turn of it has found nothing more to do.
 * @param pauseMs how long, milliseconds; a clock that was put back does not lengthen it
 * @param turn says whether it is done for now
 */
export function restingWhenDone(
  clock: Clock,
  pauseMs: number,
  turn: (now: number) => Promise<boolean>,
): () => Promise<void> {
  let doneAt = Number.NEGATIVE_INFINITY;
  return async () => {
    const now = clock.now();
    if (Math.abs(now - doneAt) >= pauseMs && (await turn(now))) doneAt = now;
  };
}

/** When to try again what is out of reach. */
export interface Patience {
  /** Whether the rest is over. */
  ready(): boolean;
  failed(): void;
  worked(): void;
}

/** Rests that grow with each failure, so that what is out of reach is asked, and the log written, ever more seldom. */
export function createPatience(clock: Clock): Patience {
  let restMs = 0;
  let failedAt = Number.NEGATIVE_INFINITY;
  return {
    // A clock that was put back does not lengthen a rest.
    ready: () => Math.abs(clock.now() - failedAt) >= restMs,
    failed() {
      restMs = restMs === 0 ? FIRST_REST_MS : Math.min(restMs * 2, LONGEST_REST_MS);
      failedAt = clock.now();
    },
    worked() {
      restMs = 0;
    },
  };
}
