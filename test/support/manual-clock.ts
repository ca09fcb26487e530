import type { Clock } from "../../src/core/clock.ts";

export interface ManualClock extends Clock {
  /** Moves time on and fires what has become due, in order. */
  advance(ms: number): void;
  /** Puts the clock forward or back by hand: timers run on as if nothing had happened, as the system's do. */
  step(ms: number): void;
  /** Resolves once a timer of just that delay is set, or has been. */
  armed(delayMs: number): Promise<void>;
  /** Timers not yet fired or cancelled. */
  pending(): number;
}

interface Timer {
  at: number;
  fire: () => void;
}

/** A clock that stands still until it is moved. */
export function manualClock(start = 1_750_000_000_000): ManualClock {
  let now = start;
  const delays = new Set<number>();
  const waiting = new Map<number, () => void>();
  const timers = new Set<Timer>();
  return {
    now: () => now,
    after(delayMs, fire) {
      const timer = { at: now + delayMs, fire };
      timers.add(timer);
      delays.add(delayMs);
      waiting.get(delayMs)?.();
      return () => void timers.delete(timer);
    },
    advance(ms) {
      const end = now + ms;
      for (;;) {
        let next: Timer | null = null;
        for (const timer of timers) if (timer.at <= end && timer.at < (next?.at ?? Infinity)) next = timer;
        if (next === null) break;
        timers.delete(next);
        now = Math.max(now, next.at);
        next.fire();
      }
      now = end;
    },
    step(ms) {
      now += ms;
      for (const timer of timers) timer.at += ms;
    },
    armed: (delayMs) =>
      delays.has(delayMs) ? Promise.resolve() : new Promise((resolve) => waiting.set(delayMs, resolve)),
    pending: () => timers.size,
  };
}
