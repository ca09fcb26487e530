import { type Clock, MAX_TIMER_MS } from "./core/time/clock.ts";

/** Keeps the process alive, because the clock's timers do not. Returns a function that stops it. */
export function keepAlive(): () => void {
  const timer = setInterval(() => undefined, MAX_TIMER_MS);
  return () => clearInterval(timer);
}

/** The machine's clock. No other code reads the system's time. */
export const systemClock: Clock = {
  now: () => Date.now(),
  elapsed: () => Math.trunc(performance.now()),
  after(delayMs, fire) {
    const timer = setTimeout(fire, Math.min(Math.max(delayMs, 0), MAX_TIMER_MS));
    timer.unref();
    return () => clearTimeout(timer);
  },
};
