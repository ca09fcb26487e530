import { systemClock } from "../../src/clock.ts";
import type { Clock } from "../../src/core/time/clock.ts";
import { hurried } from "./hurried-clock.ts";

/** The system's clock with an offset, so that a test can move to another day. */
export interface ShiftedClock extends Clock {
  /** A positive shift lets time pass; a negative one only sets the wall clock back. */
  shift(ms: number): void;
}

/** A clock that shows the system's time until a test sets it forward. It may run `times` as fast. */
export function shiftedClock(times = 1): ShiftedClock {
  const clock = times === 1 ? systemClock : hurried(times);
  let ahead = 0;
  let passed = 0;
  return {
    now: () => clock.now() + ahead,
    elapsed: () => clock.elapsed() + passed,
    after: (delayMs, fire) => clock.after(delayMs, fire),
    shift(ms) {
      ahead += ms;
      passed += Math.max(0, ms);
    },
  };
}
