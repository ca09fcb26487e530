import type { Clock } from "../../core/time/clock.ts";
import { retryOnConflict } from "../../store/engine/retry-on-conflict.ts";

/** Time after a wrong guess in which none is made, milliseconds: each undoes the commit of all messages that share it. */
export const NO_GUESS_MS = 10_000;

/**
 * Stores a message, and tries again after a conflict. `asNew` is true if it may be stored without asking whether its inbox
 * knows its Message-ID. Returns null if it was in conflict each time.
 */
export type StoreAsNew = <Written>(store: (asNew: boolean) => Promise<Written>) => Promise<Written | null>;

/**
 * Guesses that each message is new, as nearly all are. The guard of its write checks, so a right guess saves a
 * query, and a wrong one costs another try.
 */
export function createStoreAsNew(clock: Clock): StoreAsNew {
  let wrongAt = Number.NEGATIVE_INFINITY;
  return (store) => {
    const guesses = clock.elapsed() - wrongAt > NO_GUESS_MS;
    let tries = 0;
    return retryOnConflict(() => {
      tries++;
      if (guesses && tries === 2) wrongAt = clock.elapsed();
      return store(guesses && tries === 1);
    });
  };
}
