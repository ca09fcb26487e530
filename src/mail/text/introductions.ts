import {
  ADDRESS,
  ADDRESS_AT_END,
  DATED,
  FULL_DATE,
  INTRODUCTIONS,
  OPEN_INTRODUCTIONS,
  TIMED,
  YEAR,
} from "./quote-signs.ts";

/** Maximum characters of a line that may begin a quoted message. This limits the cost of each pattern. */
export const MAX_INTRO_CHARS = 300;
/** Maximum number of lines over which mail programs break an introduction such as "On … wrote:". */
const MAX_INTRO_LINES = 3;
/** Maximum number of empty lines between an introduction and the lines it introduces. */
const MAX_GAP_LINES = 3;
/** Characters that a line has if its next word did not fit. */
const WRAPPED_CHARS = 60;

/** A mark before "From " does not quote: relays add it to keep mailbox files readable (RFC 4155). */
export function isQuoted(line: string): boolean {
  return line.startsWith(">") && !line.startsWith(">From ");
}

/**
 * Returns the first line of the introduction that ends with the line `end`, or -1 if none ends there. A line above a
 * whole introduction is the author's own, so the shortest one counts.
 */
export function introductionStart(lines: readonly string[], end: number): number {
  const quotes = quotesBelow(lines, end + 1);
  let loose = -1;
  let said = "";
  for (let at = end; at > end - MAX_INTRO_LINES; at--) {
    const line = (lines[at] ?? "").trim();
    if (line === "" || (isQuoted(line) && !(at === end && closesAddress(lines, at)))) break;
    said = at === end ? line : joinedLines(line, said);
    if (said.length > MAX_INTRO_CHARS) break;
    const whole = at === end || isSign(line);
    if (!whole || !(DATED.test(said) || (quotes && /\d/.test(said)))) continue;
    if (INTRODUCTIONS.some((pattern) => pattern.test(said)) && !endsSentence(lines, at, end)) return at;
    if (loose < 0 && isLoose(said, at === end, quotes)) loose = at;
  }
  return loose < 0 ? -1 : wrappedStart(lines, loose, end);
}

function quotesBelow(lines: readonly string[], from: number): boolean {
  const below = lines.slice(from, from + MAX_GAP_LINES + 1);
  return isQuoted(below.find((line) => line.trim() !== "") ?? "");
}

/** Gmail breaks a line before the bracket that ends an address: `>:` or `> wrote:`. */
function closesAddress(lines: readonly string[], at: number): boolean {
  return isOpen(lines[at - 1] ?? "") && /^> ?[^>@]{0,40}[:：]$/.test((lines[at] ?? "").trim());
}

function isOpen(line: string): boolean {
  return line.lastIndexOf("<") > line.lastIndexOf(">");
}

function joinedLines(line: string, below: string): string {
  return below.startsWith(">") ? `${line}${below}` : `${line} ${below}`;
}

/** Returns whether a line may begin an introduction that continues in the next one. */
function isSign(line: string): boolean {
  return ADDRESS.test(line) || TIMED.test(line) || FULL_DATE.test(line) || YEAR.test(line) || isOpen(line);
}

/** Returns whether the first of several lines is a sentence above an introduction that begins with its author. */
function endsSentence(lines: readonly string[], at: number, end: number): boolean {
  if (at === end) return false;
  return /[.!?]$/.test((lines[at] ?? "").trim()) && !/^<|^>/.test((lines[at + 1] ?? "").trim());
}

/** @param single whether it has one line */
function isLoose(said: string, single: boolean, quotes: boolean): boolean {
  if (OPEN_INTRODUCTIONS.some((pattern) => pattern.test(said))) return true;
  if (ADDRESS_AT_END.test(said) && (quotes || TIMED.test(said))) return true;
  // In any language: a line right above quoted ones that names an author or a moment.
  if (!quotes) return false;
  if (!single) return ADDRESS.test(said) && TIMED.test(said);
  return ADDRESS.test(said) || FULL_DATE.test(said) || (TIMED.test(said) && YEAR.test(said));
}

/** Returns the first line of an introduction of which the lines from `at` on are enough to know it. */
function wrappedStart(lines: readonly string[], at: number, end: number): number {
  let start = at;
  while (start > 0 && start > end - MAX_INTRO_LINES + 1) {
    const above = (lines[start - 1] ?? "").trim();
    const said = (lines[start] ?? "").trim();
    if (above === "" || isQuoted(above) || !isBroken(above, said)) break;
    start--;
  }
  return start;
}

/** Returns whether a program broke the line here: within an address, or between the date and the author. */
function isBroken(above: string, below: string): boolean {
  if (isOpen(above)) return true;
  const dated = TIMED.test(above) || FULL_DATE.test(above);
  if (/^</.test(below)) return dated || above.length >= WRAPPED_CHARS;
  const known = TIMED.test(below) || FULL_DATE.test(below) || YEAR.test(below);
  const word = /^\S+/.exec(below)?.[0] ?? "";
  return dated && !known && !/[.!?:;]$/.test(above) && above.length + word.length >= WRAPPED_CHARS;
}
