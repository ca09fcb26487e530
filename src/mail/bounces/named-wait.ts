import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from "../../core/time/units.ts";

/** The wait that a reply asks for. */
export interface NamedWait {
  ms: number;
  /**
   * True if the reply names the wait itself, "try again in 5 minutes". False if it only names the period of a limit,
   * "50 messages per hour".
   */
  exact: boolean;
}

/** Longest wait that is taken from a reply, milliseconds. A lane must not be closed for weeks by a number in a reply. */
const MAX_NAMED_MS = DAY_MS;
/** Wait after a daily limit, milliseconds: such limits slide, or count from midnight in some time zone. */
const DAILY_MS = 4 * HOUR_MS;

const UNIT = "(s|secs?|seconds?|m|mins?|minutes?|h|hrs?|hours?|d|days?)";
const WAIT_WORDS =
  "(?:again|back|retry|retries|wait|waiting|later|delay|delayed|deferred|gr[ae]ylist(?:ed|ing)|for|timeout|resend)";
/** Words and numbers of a wait: "try again in 300 seconds", "greylisted for 5 minutes", "retry timeout: 300 s". */
const NAMED = new RegExp(`\\b${WAIT_WORDS}\\b[^.;\\d]{0,30}(\\d{1,6}) ?${UNIT}\\b`);
/** What milter-greylist writes: "come back in 00:05:00". */
const CLOCK = /\b(?:again|back|retry|wait)\b[^.;\d]{0,20}(\d{1,3}):(\d\d):(\d\d)\b/;
/** A number before the word: "300 seconds remaining". */
const REMAINING = new RegExp(`\\b(\\d{1,6}) ?${UNIT} (?:remaining|left|before|to go)\\b`);
/** Waits in words: "wait an hour", "try again in a few hours". */
const IN_WORDS =
  /\b(?:again|back|retry|wait)\b[^.;\d]{0,20}\b(an|one|a|a few|few|some|several) (minutes?|hours?|days?)\b/;
/** The period of a limit: "this hour", "per day", "in 15 minutes". */
const PERIOD =
  /\b(?:per|this|each|every|an|last|past|next|within|in) (?:(\d{1,4}) ?)?(minutes?|hours?|days?)\b|\b(hourly|daily)\b/;

const UNIT_MS: Readonly<Record<string, number>> = { s: SECOND_MS, m: MINUTE_MS, h: HOUR_MS, d: DAY_MS };

/**
 * Returns the wait that a reply names, or null if it names none.
 * @param plain the reply in lower case, with single spaces
 */
export function namedWait(plain: string): NamedWait | null {
  const ms = exactMs(plain);
  if (ms !== null) return { ms: Math.min(ms, MAX_NAMED_MS), exact: true };
  const [, count, unit, adverb] = PERIOD.exec(plain) ?? [];
  if (unit === undefined && adverb === undefined) return null;
  const period = Number(count ?? 1) * unitMs(unit ?? (adverb === "hourly" ? "h" : "d"));
  return { ms: period >= DAY_MS ? DAILY_MS : period, exact: false };
}

function exactMs(plain: string): number | null {
  const [, hours, minutes, seconds] = CLOCK.exec(plain) ?? [];
  if (hours !== undefined)
    return Number(hours) * HOUR_MS + Number(minutes) * MINUTE_MS + Number(seconds) * SECOND_MS;
  const [, count, unit] = NAMED.exec(plain) ?? REMAINING.exec(plain) ?? [];
  if (unit !== undefined) return Number(count) * unitMs(unit);
  const [, amount, word] = IN_WORDS.exec(plain) ?? [];
  if (word === undefined) return null;
  return (/few|some|several/.test(amount ?? "") ? 3 : 1) * unitMs(word);
}

function unitMs(unit: string): number {
  return UNIT_MS[unit.charAt(0)] ?? 0;
}
