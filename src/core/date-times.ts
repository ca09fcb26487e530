import { MINUTE_MS, SECOND_MS } from "./time-units.ts";

/** What is said of a text that should be a date-time, and is none. */
export const NO_TIME = "Not an ISO 8601 date-time with a zone.";
/** The same where a day would do as well. */
export const NO_DAY_OR_TIME = "Not an ISO 8601 day, nor a date-time with a zone.";

/** RFC 3339 date-time, with a zone. No hour is 24: the one behind 23 is the next day's first. */
const DATE_TIME = /^\d{4}-\d{2}-\d{2}[Tt](?!24)\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?(?:[Zz]|[+-]\d{2}:\d{2})$/;
/** What stands before a second that only a leap has, and behind it. */
const LEAP_SECOND = /^(.{16}):60(.*)$/;
const DAY = /^\d{4}-\d{2}-\d{2}$/;
const DAY_CHARS = 10;
/** 0000-01-01T00:00:00.000Z, the first millisecond of those that RFC 3339 can name. */
export const FIRST_TIME = -62_167_219_200_000;
/** 9999-12-31T23:59:59.999Z, the last of them. */
const LAST_TIME = 253_402_300_799_999;

/**
 * Milliseconds of an RFC 3339 date-time; null where the text is none, names a day that its month has not, or is in UTC a time
 * of no year with four digits (RFC 3339 §1): we could not show it.
 */
export function parseTime(text: string): number | null {
  if (!DATE_TIME.test(text) || parseDay(text.slice(0, DAY_CHARS)) === null) return null;
  const at = parseLeapSecond(text) ?? Date.parse(text);
  return at >= FIRST_TIME && at <= LAST_TIME ? at : null;
}

/**
 * The 61st second that the last minute of a month may have in UTC (RFC 3339 §5.7). Milliseconds since the epoch have none for
 * it, as in POSIX: it is the first of the next month. Null where the text names no such second.
 */
function parseLeapSecond(text: string): number | null {
  const [, before, behind] = LEAP_SECOND.exec(text) ?? [];
  if (before === undefined) return null;
  const at = Date.parse(`${before}:59${behind}`) + SECOND_MS;
  if (Number.isNaN(at)) return null;
  const minute = new Date(Math.floor(at / MINUTE_MS) * MINUTE_MS);
  return minute.toISOString().endsWith("01T00:00:00.000Z") ? at : null;
}

/** Milliseconds of the UTC midnight with which a day as `2026-11-22` begins; null where the text is none. */
export function parseDay(text: string): number | null {
  const at = DAY.test(text) ? Date.parse(`${text}T00:00:00Z`) : Number.NaN;
  // `Date.parse` takes 30 February for 2 March.
  return !Number.isNaN(at) && new Date(at).toISOString().startsWith(text) ? at : null;
}
