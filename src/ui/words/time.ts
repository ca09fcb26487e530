// Times are put together here, because each of the browser's formats takes milliseconds to make.

const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

function two(value: number): string {
  return String(value).padStart(2, "0");
}

/** Returns a day in the reader's zone, or in UTC: `5 Mar`. */
export function dayText(at: number, zone: "local" | "UTC" = "local"): string {
  const date = new Date(at);
  const [day, month] =
    zone === "UTC" ? [date.getUTCDate(), date.getUTCMonth()] : [date.getDate(), date.getMonth()];
  return `${day} ${MONTHS[month]}`;
}

/** Returns a clock time in the reader's zone: `14:03`. */
export function minuteText(at: number): string {
  const date = new Date(at);
  return `${two(date.getHours())}:${two(date.getMinutes())}`;
}

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
/** Milliseconds. */
export const DAY = 24 * HOUR;
const WEEK = 7 * DAY;

/** Returns how long ago a time is, in as few characters as a column needs: `now`, `12s`, `4m`, `3h`, `2d`, `5 Mar`. */
export function shortAge(at: number, now: number): string {
  const age = now - at;
  if (age < 0) return shortAhead(-age);
  if (age < 2 * SECOND) return "now";
  if (age < MINUTE) return `${Math.floor(age / SECOND)}s`;
  if (age < HOUR) return `${Math.floor(age / MINUTE)}m`;
  if (age < DAY) return `${Math.floor(age / HOUR)}h`;
  if (age < WEEK) return `${Math.floor(age / DAY)}d`;
  return dateText(at, now);
}

function shortAhead(ahead: number): string {
  if (ahead < MINUTE) return "soon";
  if (ahead < HOUR) return `in ${Math.ceil(ahead / MINUTE)}m`;
  if (ahead < DAY) return `in ${Math.ceil(ahead / HOUR)}h`;
  return `in ${Math.ceil(ahead / DAY)}d`;
}

function dateText(at: number, now: number): string {
  const year = new Date(at).getFullYear();
  return year === new Date(now).getFullYear() ? dayText(at) : `${dayText(at)} ${two(year % 100)}`;
}

/** Returns a time in the reader's zone: `5 Mar 2026, 14:03:07`. */
export function localTime(at: number): string {
  return `${dayText(at)} ${new Date(at).getFullYear()}, ${clockTime(at)}`;
}

/** Returns a clock time in the reader's zone, with seconds: `14:03:07`. */
export function clockTime(at: number): string {
  return `${minuteText(at)}:${two(new Date(at).getSeconds())}`;
}

/** Returns a time in UTC for a tooltip: `2026-03-05 13:03:07.120 UTC`. */
export function utcTime(at: number): string {
  return `${new Date(at).toISOString().replace("T", " ").replace("Z", "")} UTC`;
}

/** Returns a span of time in words: `0.4 s`, `12 s`, `3 min`, `2 h 5 min`. */
export function duration(ms: number): string {
  if (ms < SECOND) return `${Math.max(0, Math.round(ms))} ms`;
  if (ms < 10 * SECOND) return `${(ms / SECOND).toFixed(1)} s`;
  if (ms < 2 * MINUTE) return `${Math.round(ms / SECOND)} s`;
  if (ms < HOUR) return `${Math.round(ms / MINUTE)} min`;
  const minutes = Math.round((ms % HOUR) / MINUTE);
  if (ms < 2 * DAY) return `${Math.floor(ms / HOUR)} h${minutes === 0 ? "" : ` ${minutes} min`}`;
  return `${Math.round(ms / DAY)} days`;
}

/** Returns a time as a field of type `datetime-local` takes it: local and to the minute. */
export function localField(at: number): string {
  const local = new Date(at - new Date(at).getTimezoneOffset() * MINUTE);
  return local.toISOString().slice(0, 16);
}
