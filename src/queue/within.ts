import { type Clock, within } from "../core/clock.ts";

/**
 * Waits for `work` at most `limitMs`. True where it settled in time, false where it still goes on.
 * @throws what `work` rejects with in time; a later rejection is nobody's
 */
export function settlesWithin(clock: Clock, limitMs: number, work: Promise<unknown>): Promise<boolean> {
  return within(
    clock,
    limitMs,
    work.then(() => true),
    false,
  );
}
