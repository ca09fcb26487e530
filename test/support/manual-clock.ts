import type { Clock } from "../../src/core/clock.ts";

export interface ManualClock extends Clock {
  /** Moves time on and fires what has become due, in order. */
  advance(ms: number): void;
  /** Puts the clock forward or back by hand: timers run on as if nothing had happened, as the system's do. */
  step(ms: number): void;
  /** Resolves once a timer of just that delay is set, or has been. */
  armed(delayMs: number): Promise<void>;
  /**
   * Resolves when as many timers of just that delay are set as ever have been at a time: what goes round with that pause rests,
   * none of it in the midst of a turn, which would not see the time that is to pass.
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
  let now = start;
  const delays = new Set<number>();
  const waiting = new Map<number, () => void>();
  const timers = new Set<Timer>();
  /** By delay, how many have been set at a time, and who waits for as many. */
  const most = new Map<number, number>();
  let resting: { delayMs: number; resolve: () => void }[] = [];
  const rests = (delayMs: number): boolean => {
    let set = 0;
    for (const timer of timers) if (timer.delayMs === delayMs) set++;
    if (set > (most.get(delayMs) ?? 0)) most.set(delayMs, set);
    return set > 0 && set === most.get(delayMs);
  };
  return {
    now: () => now,
    after(delayMs, fire) {
      const timer = { at: now + delayMs, delayMs, fire };
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
    rested: (delayMs) =>
      rests(delayMs) ? Promise.resolve() : new Promise((resolve) => resting.push({ delayMs, resolve })),
    pending: () => timers.size,
  };
}
