import { invalid } from "../../core/errors.ts";
import { parseTime } from "../../core/time/date-times.ts";

/**
 * Maximum characters of a time or of words for one. The library takes quadratic time for strings such as `1/1/1/`.
 */
export const MAX_WORDS_CHARS = 100;

const EXPECTED =
  'must be an ISO 8601 time with a zone, such as "2026-01-31T09:30:00Z", or English words such as "in 1 hour" or "tomorrow at 9am" (UTC). Each word must belong to the time.';
const PAST =
  'is a time in the past. Leave the field out to send now, or give a time with a zone, such as "2026-01-31T09:30:00Z".';
/** Milliseconds that words may be in the past: "now" is read a moment after it was written. */
const PAST_MS = 60_000;
/** Minutes of the largest offset from UTC. */
const MAX_OFFSET = 14 * 60;

/** A preposition that the library leaves out of what it has read. */
const PREPOSITION = /^(?:in|on|at)\s+/i;
/**
 * Words that the library reads as if they were not there: `last friday` becomes the next one, `before 9am` becomes 9am, and
 * `this hour` the next noon.
 */
const MISREAD =
  /\b(?:last|past|previous)\b|\b(?:before|after)\s+(?:\d|noon|midnight)|\bthis\s+(?:minute|hour|week|month|quarter|year)\b/i;

/**
 * Returns the ISO 8601 time of words such as `in 1 min` or `tomorrow at 9am` (UTC).
 * @param now milliseconds
 * @throws AppError 422 unless the whole text is one time, because an ignored word would change it. Words for a past time
 * are refused too: most were misread (`2026-13-01` as 13 January), and they would send at once.
 */
export async function timeOf(text: string, now: number): Promise<string> {
  if (parseTime(text) !== null) return text;
  const words = text.trim().replaceAll(/\s+/g, " ");
  if (words.length > MAX_WORDS_CHARS || MISREAD.test(words)) throw invalid("scheduledAt", EXPECTED);
  // Loaded when it is needed, because most processes never see such words.
  const { parse } = await import("chrono-node/en");
  const [found, ...others] = parse(words, { instant: new Date(now), timezone: 0 }, { forwardDate: true });
  const isWhole =
    found !== undefined &&
    others.length === 0 &&
    !found.end &&
    words.slice(found.index) === found.text &&
    words.slice(0, found.index).replace(PREPOSITION, "") === "" &&
    Math.abs(found.start.get("timezoneOffset") ?? 0) <= MAX_OFFSET;
  if (!isWhole) throw invalid("scheduledAt", EXPECTED);
  const at = found.start.date();
  if (at.getTime() < now - PAST_MS) throw invalid("scheduledAt", PAST);
  return at.toISOString();
}
