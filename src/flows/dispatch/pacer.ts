import type { Clock } from "../../core/time/clock.ts";
import { MINUTE_MS } from "../../core/time/units.ts";

/**
 * Reserves the next moment of a key with that rate per minute. Resolves with the milliseconds until then, 0 for now.
 * Never rejects.
 */
export type Pace = (key: string, perMinute: number) => number | Promise<number>;

/** Keys checked per call, to drop those whose moment has passed. */
const DROPPED_PER_CALL = 2;

/** Creates a pacer. The moments of a key are evenly spaced, so no minute has more than its number, whenever it starts. */
export function createPacer(clock: Clock): Pace & ((key: string, perMinute: number) => number) {
  /** Next moment of each key, in the order of last use. */
  const next = new Map<string, number>();
  return (key, perMinute) => {
    const now = clock.elapsed();
    let looked = 0;
    for (const [old, at] of next) {
      if (looked++ === DROPPED_PER_CALL || at > now) break;
      if (old !== key) next.delete(old);
    }
    const at = Math.max(now, next.get(key) ?? now);
    next.delete(key);
    next.set(key, at + MINUTE_MS / perMinute);
    return at - now;
  };
}
