import { systemClock } from "../../src/clock.ts";
import type { Clock } from "../../src/core/time/clock.ts";

/** The system's clock with an offset, so that a test can move to another day. Timers run at normal speed. */
export interface ShiftedClock extends Clock {
  /** A positive shift lets time pass; a negative one only sets the wall clock back. */
  shift(ms: number): void;
}

/** A clock that shows the system's time until a test sets it forward. */
export function shiftedClock(): ShiftedClock {
  let ahead = 0;
  let passed = 0;
  return {
    now: () => systemClock.now() + ahead,
    elapsed: () => systemClock.elapsed() + passed,
    after: (delayMs, fire) => systemClock.after(delayMs, fire),
    shift(ms) {
      ahead += ms;
      passed += Math.max(0, ms);
    },
  };
}
