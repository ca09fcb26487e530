import { invalid } from "../../core/errors.ts";
import { parseTime } from "../../core/time/date-times.ts";

/**
 * Maximum characters of a time or of words for one. The library takes quadratic time for strings such as `1/1/1/`.
 */
export const MAX_WORDS_CHARS = 100;

const EXPECTED =
  'must be an ISO 8601 time with a zone, such as "2026-01-31T09:30:00Z", or English words such as "in 1 hour" or "tomorrow at 9am" (UTC). Each word must belong to the time.';

/** A preposition that the library leaves out of what it has read. */
const PREPOSITION = /^(?:in|on|at)\s+/i;
/** Words that the library reads as if they were not there: `last friday` becomes the next one, and `before 9am` becomes 9am. */
const MISREAD = /\b(?:last|past|previous)\b|\b(?:before|after)\s+(?:\d|noon|midnight)/i;

/**
 * Returns the ISO 8601 time of a text such as `in 1 min` or `tomorrow at 9am` (UTC).
 * @param now milliseconds
 * @throws AppError 422 unless the whole text is one time, because an ignored word would change it
 */
export async function timeOf(text: string, now: number): Promise<string> {
  if (parseTime(text) !== null) return text;
  const words = text.trim().replaceAll(/\s+/g, " ");
  if (words.length > MAX_WORDS_CHARS || MISREAD.test(words)) throw invalid("scheduledAt", EXPECTED);
  // Loaded when it is needed, because most processes never see such a text.
  const { parse } = await import("chrono-node/en");
  const [found, ...others] = parse(words, { instant: new Date(now), timezone: 0 }, { forwardDate: true });
  const isWhole =
    found !== undefined &&
    others.length === 0 &&
    !found.end &&
    words.slice(found.index) === found.text &&
    words.slice(0, found.index).replace(PREPOSITION, "") === "";
  if (!isWhole) throw invalid("scheduledAt", EXPECTED);
  return found.start.date().toISOString();
}
