import { systemClock } from "../../src/clock.ts";
import type { Clock } from "../../src/core/time/clock.ts";

/**
 * The machine's clock, except that timers of this delay never fire. Work that such a timer would cut off runs to
 * its end.
 */
export function patientClock(delayMs: number): Clock {
  return {
    ...systemClock,
    after: (ms, fire) => (ms === delayMs ? () => undefined : systemClock.after(ms, fire)),
  };
}
