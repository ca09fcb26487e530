import type { Clock } from "../../core/time/clock.ts";

/** Pauses after the first failure and at most, milliseconds. Each pause is twice the one before. */
export const FIRST_BACKOFF_MS = 2000;
export const MAX_BACKOFF_MS = 300_000;

/**
 * Makes a chore that pauses once a turn has found nothing more to do.
 * @param pauseMs milliseconds
 * @param turn returns true if it is done for now
 */
export function pauseWhenDone(
  clock: Clock,
  pauseMs: number,
  turn: (now: number) => Promise<boolean>,
): () => Promise<void> {
  let doneAt = Number.NEGATIVE_INFINITY;
  return async () => {
    const startedAt = clock.elapsed();
    if (startedAt - doneAt >= pauseMs && (await turn(clock.now()))) doneAt = startedAt;
  };
}

/** Exponential backoff for something that cannot be reached. */
export interface Backoff {
  /** Returns true if the next attempt may start. */
  isDue(): boolean;
  recordFailure(): void;
  recordSuccess(): void;
}

/** Makes a backoff from 2 s up to 5 min. It also limits log lines. */
export function createBackoff(clock: Clock): Backoff {
  let pauseMs = 0;
  let failedAt = Number.NEGATIVE_INFINITY;
  return {
    isDue: () => clock.elapsed() - failedAt >= pauseMs,
    recordFailure() {
      pauseMs = pauseMs === 0 ? FIRST_BACKOFF_MS : Math.min(pauseMs * 2, MAX_BACKOFF_MS);
      failedAt = clock.elapsed();
    },
    recordSuccess() {
      pauseMs = 0;
    },
  };
}
