/** Limits how much of a busy service's work a page shows, so that dashboards do not slow it. */

/** With more events a second than this, a page reads less often. */
const BUSY_PER_SECOND = 100;
const BUSY_MS = 1_500;
/** Above this rate, rows pass too fast to read. */
const FLOOD_PER_SECOND = 100;

/**
 * Returns the milliseconds until the read after this one.
 * @param events those since the read before
 * @param elapsedMs time since the read before
 * @param ms the wait in quiet times
 */
export function waitAfter(events: number, elapsedMs: number, ms: number): number {
  const perSecond = (events * 1000) / Math.max(elapsedMs, ms);
  return perSecond > BUSY_PER_SECOND ? Math.max(ms, BUSY_MS) : ms;
}

/**
 * Returns a function that takes the time of each event, milliseconds, and returns whether there are too many to
 * follow: a leaky bucket that loses FLOOD_PER_SECOND.
 * @param burst events that may come at once
 */
export function floodMeter(burst: number): (at: number) => boolean {
  let level = 0;
  let last = Number.NEGATIVE_INFINITY;
  return (at) => {
    level = Math.max(0, level - ((at - last) * FLOOD_PER_SECOND) / 1000) + 1;
    last = at;
    return level > burst;
  };
}
