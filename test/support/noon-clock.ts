import { systemClock } from "../../src/clock.ts";
import type { Clock } from "../../src/core/time/clock.ts";
import { DAY_MS } from "../../src/core/time/units.ts";

/** The machine's clock, set to noon UTC of its day, so that no test crosses the end of a day. */
export function noonClock(): Clock {
  const now = systemClock.now();
  const ahead = Math.floor(now / DAY_MS) * DAY_MS + DAY_MS / 2 - now;
  return { ...systemClock, now: () => systemClock.now() + ahead };
}
