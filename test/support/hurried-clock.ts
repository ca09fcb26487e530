import { systemClock } from "../../src/clock.ts";
import type { Clock } from "../../src/core/clock.ts";

/** Runs ahead of the system's clock, so that a test need not wait as long as a mail would. */
export function hurried(times: number): Clock {
  const start = systemClock.now();
  return {
    now: () => start + (systemClock.now() - start) * times,
    after: (delayMs, fire) => systemClock.after(delayMs / times, fire),
  };
}
