import { type Clock, MAX_TIMER_MS } from "./core/clock.ts";

/** Keeps the process alive although all timers of the clock let it end; the returned function stops that. */
export function keepAlive(): () => void {
  const timer = setInterval(() => undefined, MAX_TIMER_MS);
  return () => clearInterval(timer);
}

/** The machine's clock: the one place that asks the system for the time. */
export const systemClock: Clock = {
  now: () => Date.now(),
  after(delayMs, fire) {
    const timer = setTimeout(fire, Math.min(Math.max(delayMs, 0), MAX_TIMER_MS));
    timer.unref();
    return () => clearTimeout(timer);
  },
};
