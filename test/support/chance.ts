import type { Clock } from "../../src/core/time/clock.ts";

/** Random numbers from a seed, so that a failed run can be repeated. */
export interface Chance {
  /** In [0, 1). */
  number(): number;
  /** Whole, from 0 to below `limit`. */
  below(limit: number): number;
  happens(probability: number): boolean;
  pick<Item>(items: readonly [Item, ...Item[]]): Item;
}

/** Mulberry32: good enough to vary schedules. */
export function chanceOf(seed: number): Chance {
  let state = seed >>> 0;
  const number = (): number => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  const below = (limit: number): number => Math.floor(number() * limit);
  return {
    number,
    below,
    happens: (probability) => number() < probability,
    pick: (items) => items[below(items.length)] ?? items[0],
  };
}

/** A clock that jumps from timer to timer. */
export interface SteppingClock extends Clock {
  /** Jumps to the next timer and fires it. Returns false if there is none. */
  next(): boolean;
  /** Sets the wall clock forward or back. Timers keep their remaining time, as the system's timers do. */
  step(ms: number): void;
  /** Timers not yet fired or cancelled. */
  pending(): number;
}

/** A clock that stands still until a test moves it. */
export function steppingClock(start = 1_750_000_000_000): SteppingClock {
  let elapsed = 0;
  let offset = start;
  const timers = new Set<{ at: number; fire: () => void }>();
  return {
    now: () => offset + elapsed,
    after(delayMs, fire) {
      const timer = { at: elapsed + Math.max(0, delayMs), fire };
      timers.add(timer);
      return () => void timers.delete(timer);
    },
    next() {
      let first: { at: number; fire: () => void } | null = null;
      for (const timer of timers) if (first === null || timer.at < first.at) first = timer;
      if (first === null) return false;
      timers.delete(first);
      elapsed = Math.max(elapsed, first.at);
      first.fire();
      return true;
    },
    elapsed: () => elapsed,
    step(ms) {
      offset += ms;
    },
    pending: () => timers.size,
  };
}
