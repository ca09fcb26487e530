import { MINUTE_MS, SECOND_MS } from "./units.ts";

/** Error message for a string that is not a date-time. */
export const TIME_EXPECTED = 'must be an ISO 8601 date-time with a zone, such as "2026-01-31T09:30:00Z".';
/** Error message for a string that is neither a day nor a date-time. */
export const DAY_OR_TIME_EXPECTED =
  'must be an ISO 8601 day or a date-time with a zone, such as "2026-01-31" or "2026-01-31T09:30:00Z".';

/** RFC 3339 date-time with a zone. The hour 24 is refused, because it is the first hour of the next day. */
const DATE_TIME = /^\d{4}-\d{2}-\d{2}[Tt](?!24)\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?(?:[Zz]|[+-]\d{2}:\d{2})$/;
/** The text before and after a leap second. */
const LEAP_SECOND = /^(.{16}):60(.*)$/;
const DAY = /^\d{4}-\d{2}-\d{2}$/;
const DAY_CHARS = 10;
/** 0000-01-01T00:00:00.000Z, the first millisecond that RFC 3339 can name. */
export const FIRST_TIME = -62_167_219_200_000;
/** 9999-12-31T23:59:59.999Z, the last millisecond that RFC 3339 can name. */
const LAST_TIME = 253_402_300_799_999;

/**
 * Parses an RFC 3339 date-time to milliseconds. Returns null if it is not one, or if its month does not have that
 * day. A year in UTC without four digits (RFC 3339 §1) is null too, because we could not show it.
 */
export function parseTime(text: string): number | null {
  if (!DATE_TIME.test(text) || parseDay(text.slice(0, DAY_CHARS)) === null) return null;
  const at = parseLeapSecond(text) ?? Date.parse(text);
  return at >= FIRST_TIME && at <= LAST_TIME ? at : null;
}

/**
 * Parses a leap second, which the last minute of a month may have in UTC (RFC 3339 §5.7). Milliseconds since the
 * epoch do not count it, as in POSIX, so the result is the first second of the next month. Returns null if the text
 * has none.
 */
function parseLeapSecond(text: string): number | null {
  const [, before, rest] = LEAP_SECOND.exec(text) ?? [];
  if (before === undefined) return null;
  const at = Date.parse(`${before}:59${rest}`) + SECOND_MS;
  if (Number.isNaN(at)) return null;
  const minute = new Date(Math.floor(at / MINUTE_MS) * MINUTE_MS);
  return minute.toISOString().endsWith("01T00:00:00.000Z") ? at : null;
}

/** Parses a day such as `2026-11-22` to the milliseconds of its UTC midnight. Returns null if the text is not a day. */
export function parseDay(text: string): number | null {
  const at = DAY.test(text) ? Date.parse(`${text}T00:00:00Z`) : Number.NaN;
  // `Date.parse` reads 30 February as 2 March.
  return !Number.isNaN(at) && new Date(at).toISOString().startsWith(text) ? at : null;
}
