import type { Clock } from "../../src/core/time/clock.ts";

export interface ManualClock extends Clock {
  /** Advances time and fires the timers that become due, in order. */
  advance(ms: number): void;
  /** Sets the wall clock forward or back. Timers keep their remaining time, as the system's timers do. */
  step(ms: number): void;
  /** Lets time pass in which the process stands still, so that timers fire that much later. */
  stall(ms: number): void;
  /** Resolves once a timer with exactly that delay is or was set. */
  armed(delayMs: number): Promise<void>;
  /**
   * Resolves when as many timers of exactly that delay are pending as ever were at one time. Every loop with that
   * pause is then waiting, so none of them misses the next advance.
   */
  rested(delayMs: number): Promise<void>;
  /** Timers not yet fired or cancelled. */
  pending(): number;
}

interface Timer {
  at: number;
  delayMs: number;
  fire: () => void;
}

/** A clock that stands still until it is moved. */
export function manualClock(start = 1_750_000_000_000): ManualClock {
  let elapsed = 0;
  let offset = start;
  const delays = new Set<number>();
  const waiting = new Map<number, () => void>();
  const timers = new Set<Timer>();
  /** By delay: the highest number of pending timers, and the callers that wait for that number. */
  const most = new Map<number, number>();
  let resting: { delayMs: number; resolve: () => void }[] = [];
  const rests = (delayMs: number): boolean => {
    let set = 0;
    for (const timer of timers) if (timer.delayMs === delayMs) set++;
    if (set > (most.get(delayMs) ?? 0)) most.set(delayMs, set);
    return set > 0 && set === most.get(delayMs);
  };
  return {
    now: () => offset + elapsed,
    elapsed: () => elapsed,
    after(delayMs, fire) {
      const timer = { at: elapsed + delayMs, delayMs, fire };
      timers.add(timer);
      if (rests(delayMs)) {
        for (const one of resting) if (one.delayMs === delayMs) one.resolve();
        resting = resting.filter((one) => one.delayMs !== delayMs);
      }
      delays.add(delayMs);
      waiting.get(delayMs)?.();
      return () => void timers.delete(timer);
    },
    advance(ms) {
      const end = elapsed + ms;
      for (;;) {
        let next: Timer | null = null;
        for (const timer of timers) if (timer.at <= end && timer.at < (next?.at ?? Infinity)) next = timer;
        if (next === null) break;
        timers.delete(next);
        elapsed = Math.max(elapsed, next.at);
        next.fire();
      }
      elapsed = end;
    },
    step(ms) {
      offset += ms;
    },
    stall(ms) {
      elapsed += ms;
      for (const timer of timers) timer.at += ms;
    },
    armed: (delayMs) =>
      delays.has(delayMs) ? Promise.resolve() : new Promise((resolve) => waiting.set(delayMs, resolve)),
    rested: (delayMs) =>
      rests(delayMs) ? Promise.resolve() : new Promise((resolve) => resting.push({ delayMs, resolve })),
    pending: () => timers.size,
  };
}
