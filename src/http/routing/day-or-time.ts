import { invalid } from "../../core/errors.ts";
import { DAY_OR_TIME_EXPECTED, parseDay, parseTime } from "../../core/time/date-times.ts";
import { DAY_MS } from "../../core/time/units.ts";

/**
 * Reads an end of a range of time, milliseconds. A day at either end counts as a whole. Null if the text is left out.
 * @throws AppError 422 if it is neither a day nor a time
 */
export function rangeEnd(name: "from" | "to", text: string | undefined): number | null {
  if (text === undefined) return null;
  const day = parseDay(text);
  if (day !== null) return name === "to" ? day + DAY_MS : day;
  const at = parseTime(text);
  if (at === null) throw invalid(name, DAY_OR_TIME_EXPECTED);
  return at;
}

/** Returns the time that a query names, in milliseconds. */
export function timeOf(param: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const at = parseDay(text) ?? parseTime(text);
  if (at === null) throw invalid(param, DAY_OR_TIME_EXPECTED);
  return at;
}
