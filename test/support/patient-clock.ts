import { systemClock } from "../../src/clock.ts";
import type { Clock } from "../../src/core/clock.ts";

/** The machine's clock, but that timers of this delay never fire: what they put an end to takes the time that it takes. */
export function patientClock(delayMs: number): Clock {
  return {
    now: systemClock.now,
    after: (ms, fire) => (ms === delayMs ? () => undefined : systemClock.after(ms, fire)),
  };
}
