import type { Clock } from "../../core/time/clock.ts";

/** Reserves the next moment of a key. Resolves with the milliseconds until then, 0 for now. Never rejects. */
export type Pace = (key: string) => number | Promise<number>;

/** Keys checked per call, to drop those whose moment has passed. */
const DROPPED_PER_CALL = 2;

/**
 * Creates a pacer whose moments of one key are at least `1 / perSecond` apart. They are evenly spaced, so no second has
 * more than its number, whenever it starts.
 */
export function createPacer(clock: Clock, perSecond: number): Pace & ((key: string) => number) {
  const spacingMs = 1000 / perSecond;
  /** Next moment of each key, in the order of last use. */
  const next = new Map<string, number>();
  return (key) => {
    const now = clock.elapsed();
    let looked = 0;
    for (const [old, at] of next) {
      if (looked++ === DROPPED_PER_CALL || at > now) break;
      if (old !== key) next.delete(old);
    }
    const at = Math.max(now, next.get(key) ?? now);
    next.delete(key);
    next.set(key, at + spacingMs);
    return at - now;
  };
}
