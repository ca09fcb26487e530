import { dayText, minuteText } from "./time.ts";

/** A time until which a thread can be snoozed. */
export interface SnoozeTime {
  name: string;
  /** Milliseconds. */
  at: number;
  /** The time in words: `Mon 2 Mar, 08:00`. */
  hint: string;
}

/** The hour at which a day begins and an evening, local time. */
const MORNING = 8;
const EVENING = 18;
const HOUR = 3_600_000;
const DAYS = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];
const MONDAY = 1;

/** Returns the times that are offered, from the nearest to the farthest. @param now milliseconds */
export function snoozeTimes(now: number): SnoozeTime[] {
  const today = new Date(now);
  const untilMonday = (MONDAY - today.getDay() + 7) % 7 || 7;
  const evening = dayAt(today, 0, EVENING);
  return [
    { name: "In 3 hours", at: now + 3 * HOUR },
    ...(evening - now > 3 * HOUR ? [{ name: "This evening", at: evening }] : []),
    { name: "Tomorrow", at: dayAt(today, 1, MORNING) },
    ...(untilMonday > 1 && untilMonday < 7
      ? [{ name: "Next Monday", at: dayAt(today, untilMonday, MORNING) }]
      : []),
    { name: "In a week", at: dayAt(today, 7, MORNING) },
    { name: "In 30 days", at: dayAt(today, 30, MORNING) },
  ].map((time) => ({ ...time, hint: hintOf(time.at) }));
}

function dayAt(from: Date, days: number, hour: number): number {
  return new Date(from.getFullYear(), from.getMonth(), from.getDate() + days, hour).getTime();
}

function hintOf(at: number): string {
  return `${DAYS[new Date(at).getDay()]} ${dayText(at)}, ${minuteText(at)}`;
}
