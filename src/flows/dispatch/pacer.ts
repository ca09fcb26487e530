import type { Clock } from "../../core/clock.ts";

/** Reserves the next moment of a key; resolves with the milliseconds until then, 0 for now. Never rejects. */
export type Pace = (key: string) => number | Promise<number>;

/** Longest wait, milliseconds: a clock that is put back must not stop mail until it has come round again. */
const LONGEST_WAIT_MS = 2_000;
/** Keys looked at in one call, to forget those whose moment has passed. */
const FORGOTTEN_A_CALL = 2;

/**
 * Moments at least `1 / perSecond` apart, for each key on its own. Evenly spaced rather than so many at once and then
 * none: no second, wherever it begins, has more than its number.
 */
export function createPacer(clock: Clock, perSecond: number): Pace & ((key: string) => number) {
  const spacingMs = 1000 / perSecond;
  /** When each key's next moment is, in the order of their last use. */
  const next = new Map<string, number>();
  return (key) => {
    const now = clock.now();
    let looked = 0;
    for (const [old, at] of next) {
      if (looked++ === FORGOTTEN_A_CALL || at > now) break;
      if (old !== key) next.delete(old);
    }
    const at = Math.min(Math.max(now, next.get(key) ?? now), now + Math.max(LONGEST_WAIT_MS, spacingMs));
    next.delete(key);
    next.set(key, at + spacingMs);
    return at - now;
  };
}
