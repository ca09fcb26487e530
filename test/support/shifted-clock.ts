import { systemClock } from "../../src/clock.ts";
import type { Clock } from "../../src/core/clock.ts";

/** The system's clock, put forward: timers run as ever, and it is another day. */
export interface ShiftedClock extends Clock {
  shift(ms: number): void;
}

/** A clock that shows the time of the system until it is put forward. */
export function shiftedClock(): ShiftedClock {
  let ahead = 0;
  return {
    now: () => systemClock.now() + ahead,
    after: (delayMs, fire) => systemClock.after(delayMs, fire),
    shift(ms) {
      ahead += ms;
    },
  };
}
