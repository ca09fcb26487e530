import { systemClock } from "../../src/clock.ts";
import type { Clock } from "../../src/core/clock.ts";
import { DAY_MS } from "../../src/core/time-units.ts";

/** The machine's clock, put to noon UTC of its day: what is counted by the day falls into one, whenever the tests run. */
export function noonClock(): Clock {
  const now = systemClock.now();
  const ahead = Math.floor(now / DAY_MS) * DAY_MS + DAY_MS / 2 - now;
  return { now: () => systemClock.now() + ahead, after: systemClock.after };
}
