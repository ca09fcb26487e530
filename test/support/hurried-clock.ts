import { join } from "node:path";
import { systemClock } from "../../src/clock.ts";
import type { Clock } from "../../src/core/time/clock.ts";

/** Runs faster than the system's clock, so that a test does not wait as long as a real retry would. */
export function hurried(times: number): Clock {
  const start = systemClock.now();
  const elapsed = systemClock.elapsed();
  return {
    now: () => start + (systemClock.now() - start) * times,
    elapsed: () => elapsed + (systemClock.elapsed() - elapsed) * times,
    after: (delayMs, fire) => systemClock.after(delayMs / times, fire),
  };
}

/** Makes a process of the service hurry: the script that it runs first. */
export const HURRIED_PROCESS = join(import.meta.dir, "hurried-process.ts");

/** Settings of processes whose time passes that many times as fast from now on. */
export function hurriedEnv(times: number): Record<string, string> {
  return { HURRIED_FROM: String(systemClock.now()), HURRIED_TIMES: String(times) };
}
