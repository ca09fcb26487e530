import { isAsciiText } from "../../core/ascii.ts";
import type { Value } from "../engine/client.ts";
import { kinOf, spelledOut, WRITTEN_OUT } from "./folding.ts";

/** A condition with its parameters. */
export interface Condition {
  sql: string;
  args: Value[];
}

/** A condition on texts, which take time by their size and that of the text looked for. */
export interface TextCondition extends Condition {
  /** Octets that it looks at in a row, in SQL. SQLite tells them without reading the texts. */
  octets: string;
  /** Of these as many as are looked at in one go: the rest of the service runs in between (five to ten milliseconds). */
  octetsInOneGo: number;
}

/** Characters compared in one go where each of a text is the beginning of all that is looked for but its end. */
const COMPARED_IN_ONE_GO = 4_000_000;
/** What GLOB takes for an octet besides, in characters compared: spelling it out reads it a dozen times. */
const SPELLING_OUT = 16;

/**
 * Holds where one of the columns contains the text, but for what does not count (`fold`): `привет` finds `Привет Мир`. The
 * characters that LIKE and GLOB read as patterns stand for themselves.
 */
export function containsText(columns: readonly string[], text: string): TextCondition {
  // As it is typed, and in both ways of Unicode to write accents: names that come from a Mac's files have them apart.
  const forms = new Set([text, text.normalize("NFC"), text.normalize("NFD")].map(spelledOut));
  const match = matchOf([...forms]);
  const tests = columns.map((column) => match.test(column));
  return {
    sql: `(${tests.join(" OR ")})`,
    args: columns.flatMap(() => match.patterns),
    octets: columns.map((column) => `COALESCE(OCTET_LENGTH(${column}), 0)`).join(" + "),
    octetsInOneGo: Math.ceil(COMPARED_IN_ONE_GO / match.effort),
  };
}

interface Match {
  test: (column: string) => string;
  patterns: string[];
  /** Characters compared for each octet of a column at most. */
  effort: number;
}

/** LIKE folds the case of ASCII, and is several times as fast. GLOB looks at what is beyond ASCII. */
function matchOf(forms: readonly string[]): Match {
  const [first = ""] = forms;
  if (forms.length > 1 || !isAsciiText(first)) return globMatch(forms);
  const like = {
    test: (column: string) => `${column} LIKE ? ESCAPE '\\'`,
    patterns: [likePattern(first)],
    effort: 1 + first.length,
  };
  if (!mayBeBeyondAscii(first)) return like;
  const glob = globMatch(forms);
  return {
    test: (column) => `(${like.test(column)} OR ${glob.test(column)})`,
    patterns: [...like.patterns, ...glob.patterns],
    effort: like.effort + glob.effort,
  };
}

function likePattern(text: string): string {
  return `%${text.replace(/[\\%_]/g, "\\$&")}%`;
}

/** GLOB folds nothing, but can be told for each character in which forms it may stand. */
function globMatch(forms: readonly string[]): Match {
  return {
    test(column) {
      const tests = forms.map((form) => `${spelledOutBy(form, column)} GLOB ?`);
      // Most columns are ASCII, and this is soon seen.
      return `(LENGTH(CAST(${column} AS BLOB)) > LENGTH(${column}) AND (${tests.join(" OR ")}))`;
    },
    patterns: forms.map((form) => `*${Array.from(form, inAnyCase).join("")}*`),
    effort: forms.reduce((sum, form) => sum + SPELLING_OUT + form.length, 0),
  };
}

/** The column's text spelled out, as far as that may let it contain the form. */
function spelledOutBy(form: string, column: string): string {
  const lower = form.toLowerCase();
  const written = Object.entries(WRITTEN_OUT).filter(([, letters]) => mayShare(letters, lower));
  const dotted = lower.includes("i") ? [["i\u0307", "i"] as const, ["I\u0307", "I"] as const] : [];
  return [...dotted, ...written].reduce((sql, [from, to]) => `REPLACE(${sql}, '${from}', '${to}')`, column);
}

/** Whether a text in ASCII may stand in one that is not. */
function mayBeBeyondAscii(text: string): boolean {
  const lower = text.toLowerCase();
  return (
    Array.from(text).some(kinOf) || Object.values(WRITTEN_OUT).some((letters) => mayShare(letters, lower))
  );
}

/** Whether where a text stands there may be the letters, too, or some of them at either end of it. */
function mayShare(letters: string, text: string): boolean {
  return (
    text.includes(letters) ||
    letters.includes(text) ||
    Array.from(letters).some(
      (_, at) => at > 0 && (text.startsWith(letters.slice(at)) || text.endsWith(letters.slice(0, at))),
    )
  );
}

/** A character in each of its cases. */
function inAnyCase(char: string): string {
  const [upper, lower] = [char.toUpperCase(), char.toLowerCase()];
  const forms = [char, upper, lower, upper.toLowerCase(), lower.toUpperCase(), ...(kinOf(char) ?? "")];
  const single = [...new Set(forms)].filter((form) => Array.from(form).length === 1);
  return single.length > 1 || "*?[".includes(char) ? `[${single.join("")}]` : char;
}
