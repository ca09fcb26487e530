/** How often a page reads again while events arrive, so that dashboards do not slow a busy service. */

/** With more events a second than this, a page reads less often. */
const BUSY_PER_SECOND = 100;
const BUSY_MS = 1_500;
/** With so many for longer than BUSY_MS, nobody can follow the single rows. */
const FLOOD_PER_SECOND = 500;
const FLOOD_MS = 4_000;

/**
 * Returns the milliseconds until the read after this one.
 * @param events those since the read before
 * @param elapsedMs time since the read before
 * @param ms the wait in quiet times
 */
export function waitAfter(events: number, elapsedMs: number, ms: number): number {
  const perSecond = (events * 1000) / Math.max(elapsedMs, ms);
  if (perSecond > FLOOD_PER_SECOND && elapsedMs >= BUSY_MS) return Math.max(ms, FLOOD_MS);
  return perSecond > BUSY_PER_SECOND ? Math.max(ms, BUSY_MS) : ms;
}
