import { systemClock } from "../../src/clock.ts";
import type { Clock } from "../../src/core/time/clock.ts";
import { hurried } from "./hurried-clock.ts";
import { until } from "./poll.ts";

/** The system's clock with an offset, so that a test can move to another day. */
export interface ShiftedClock extends Clock {
  /** A positive shift lets time pass; a negative one only sets the wall clock back. */
  shift(ms: number): void;
  /** Lets a second pass, the longest pause of the chores, so that each of them that waits takes its turn now. */
  turn(): void;
}

/** Longest pause of the chores, milliseconds. A longer timer limits some work, which a test does not mean to cut off. */
const CHORE_PAUSE_MS = 1000;

/** A clock that shows the system's time until a test sets it forward. It may run `times` as fast. */
export function shiftedClock(times = 1): ShiftedClock {
  const clock = times === 1 ? systemClock : hurried(times);
  let ahead = 0;
  let passed = 0;
  const pauses = new Set<() => void>();
  const shift = (ms: number): void => {
    ahead += ms;
    passed += Math.max(0, ms);
  };
  return {
    now: () => clock.now() + ahead,
    elapsed: () => clock.elapsed() + passed,
    after(delayMs, fire) {
      if (delayMs > CHORE_PAUSE_MS) return clock.after(delayMs, fire);
      const end = (): void => {
        cancel();
        pauses.delete(over);
      };
      const over = (): void => {
        end();
        fire();
      };
      const cancel = clock.after(delayMs, over);
      pauses.add(over);
      return end;
    },
    shift,
    turn() {
      shift(CHORE_PAUSE_MS);
      // One may cancel another.
      for (const over of [...pauses]) if (pauses.has(over)) over();
    },
  };
}

/** Lets the chores take one turn after another until the condition holds. */
export function turnUntil(clock: ShiftedClock, holds: () => boolean | Promise<boolean>): Promise<void> {
  return until(async () => {
    const isSo = await holds();
    if (!isSo) clock.turn();
    return isSo;
  });
}
