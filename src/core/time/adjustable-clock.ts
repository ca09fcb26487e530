import type { Clock } from "./clock.ts";

/** A clock that can be set forward. Timers that are due by then fire at once, in their order. */
export interface AdjustableClock extends Clock {
  /** The clock that nobody sets forward. */
  readonly base: Clock;
  /** Sets both times forward by `ms` milliseconds. */
  advance(ms: number): void;
}

interface Timer {
  /** Time of `elapsed` at which it fires, milliseconds. */
  at: number;
  fire: () => void;
  cancel: () => void;
}

/** Returns a clock that runs like `base`, ahead of it by what it was advanced. */
export function adjustableClock(base: Clock): AdjustableClock {
  let ahead = 0;
  const timers = new Set<Timer>();
  const elapsed = (): number => base.elapsed() + ahead;
  const wait = (timer: Timer): void => {
    timer.cancel = base.after(timer.at - elapsed(), () => end(timer));
  };
  const end = (timer: Timer): void => {
    if (timers.delete(timer)) timer.fire();
  };
  return {
    base,
    now: () => base.now() + ahead,
    elapsed,
    after(delayMs, fire) {
      const timer: Timer = { at: elapsed() + Math.max(delayMs, 0), fire, cancel: () => undefined };
      timers.add(timer);
      wait(timer);
      return () => {
        timers.delete(timer);
        timer.cancel();
      };
    },
    advance(ms) {
      ahead += ms;
      const waiting = [...timers].sort((one, other) => one.at - other.at);
      for (const timer of waiting) {
        timer.cancel();
        if (timer.at > elapsed()) wait(timer);
        else end(timer);
      }
    },
  };
}
