import type { Issue } from "../errors.ts";
import { parseTime, TIME_EXPECTED } from "./date-times.ts";
import { DAY_MS } from "./units.ts";

/** Returns the time for which a send is scheduled, in milliseconds, or an issue. `now` is in milliseconds. */
export function readSchedule(text: string, maxScheduleDays: number, now: number): number | Issue {
  const param = "scheduledAt";
  const at = parseTime(text);
  if (at === null) return { param, message: TIME_EXPECTED };
  return at > now + maxScheduleDays * DAY_MS
    ? {
        param,
        message: `must be at most ${maxScheduleDays} days in the future.`,
        code: "schedule_out_of_range",
      }
    : at;
}
