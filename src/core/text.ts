/**
 * Returns whether a string is ASCII only. Comparing its length with that in UTF-8 takes a twentieth of the time of
 * a pattern.
 */
export function isAsciiText(text: string): boolean {
  return Buffer.byteLength(text) === text.length;
}

/**
 * Returns the first `most` UTF-16 units of a string. If the cut splits a surrogate pair, its half becomes U+FFFD,
 * so that the text can be stored and sent.
 */
export function firstChars(text: string, most: number): string {
  return text.slice(0, most).toWellFormed();
}

/**
 * An escaped backslash, or half of a surrogate pair. JSON.stringify escapes halves, and leaves whole pairs as they
 * are.
 */
const BACKSLASHES_OR_HALF = /\\(?:\\|ud[89a-f][0-9a-f]{2})/g;

/**
 * Returns a value as JSON with every half of a surrogate pair in its strings and keys replaced. libSQL ends the whole process if a
 * row has invalid UTF-8, and SQLite makes that of a half when it reads the string out of the JSON.
 */
export function wellFormedJson(value: unknown): string {
  const json = JSON.stringify(value);
  return hasHalf(json) ? withoutHalves(json) : json;
}

/**
 * Returns the value with every half of a surrogate pair in its strings and keys replaced. Many readers refuse a
 * JSON answer that contains one, because it is not Unicode text.
 */
export function wellFormed<Value extends object>(value: Value): Value {
  const json = JSON.stringify(value);
  return hasHalf(json) ? JSON.parse(withoutHalves(json)) : value;
}

/** Returns false for most JSON without half of a pair. */
function hasHalf(json: string): boolean {
  return json.includes("\\ud");
}

function withoutHalves(json: string): string {
  return json.replace(BACKSLASHES_OR_HALF, (found) => (found === "\\\\" ? found : "\ufffd"));
}

/**
 * Maximum number of lines of one SMTP conversation that are stored. A limit keeps many failing hosts from filling
 * the record.
 */
export const MAX_TRANSCRIPT_LINES = 200;

const NOTICE = /^\* (\d+) lines left out$/;

/**
 * Returns the line that replaces the given lines of a conversation. A line that is such a notice counts as the lines
 * it replaced.
 */
export function omittedLinesNotice(lines: readonly string[]): string {
  const count = lines.reduce((sum, line) => sum + Number(NOTICE.exec(line)?.[1] ?? 1), 0);
  return `* ${count} lines left out`;
}

/**
 * Returns a name as lower-case Latin letters and digits with hyphens between them. Returns "" if it has no letter or
 * digit.
 */
export function slugOf(name: string, maxChars: number): string {
  return name
    .normalize("NFKD")
    .toLowerCase()
    .replace(/\p{M}+/gu, "")
    .replace(/[^a-z0-9]+/g, "-")
    .replace(/^-/, "")
    .slice(0, maxChars)
    .replace(/-$/, "");
}
