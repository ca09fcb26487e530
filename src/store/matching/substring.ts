import { withALabels } from "../../core/addresses.ts";
import { isAsciiText } from "../../core/text.ts";
import type { Value } from "../engine/client.ts";
import { kinOf, spelledOut, WRITTEN_OUT } from "./folding.ts";

export interface Condition {
  sql: string;
  args: Value[];
}

/** Returns the condition that all hold. */
export function allOf(conditions: readonly Condition[]): Condition {
  if (conditions.length === 0) return { sql: "1", args: [] };
  return {
    sql: conditions.map(({ sql }) => sql).join(" AND "),
    args: conditions.flatMap(({ args }) => args),
  };
}

/** A condition on strings. Its time depends on their size and on the searched text. */
export interface TextCondition extends Condition {
  /** SQL for the bytes that it compares in a row. SQLite knows them without reading the strings. */
  octets: string;
  /** Bytes compared at a time, in five to ten milliseconds. Other requests are served in between. */
  octetsInOneGo: number;
}

/** Characters compared at a time in the worst case: each character of the text begins a near match. */
const COMPARED_IN_ONE_GO = 4_000_000;
/** The cost of spelling out a byte for GLOB, in characters compared: it is read a dozen times. */
const SPELLING_OUT = 16;

/**
 * Returns the condition that one of the columns contains the text, by the rule of `fold`: `привет` finds `Привет Мир`.
 * Special characters of LIKE and GLOB match themselves.
 */
export function containsText(columns: readonly string[], text: string): TextCondition {
  // As typed, and in both Unicode forms of accents: names from a Mac's files have them decomposed.
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

/** Returns `containsText` of the columns. In those that hold addresses, `bücher` also finds `ana@xn--bcher-kva.example`. */
export function containsTextOrDomain(
  columns: readonly string[],
  addresses: readonly string[],
  text: string,
): TextCondition {
  const asTyped = containsText(columns, text);
  const stored = addresses.length === 0 ? null : withALabels(text);
  if (stored === null) return asTyped;
  const asStored = containsText(addresses, stored);
  return {
    sql: `(${asTyped.sql} OR ${asStored.sql})`,
    args: [...asTyped.args, ...asStored.args],
    octets: asTyped.octets,
    octetsInOneGo: Math.ceil(1 / (1 / asTyped.octetsInOneGo + 1 / asStored.octetsInOneGo)),
  };
}

interface Match {
  test: (column: string) => string;
  patterns: string[];
  /** Characters compared for each byte of a column at most. */
  effort: number;
}

/** LIKE folds the case of ASCII and is several times as fast. GLOB handles the rest. */
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

/** GLOB folds nothing, but a pattern can list the forms of each character. */
function globMatch(forms: readonly string[]): Match {
  return {
    test(column) {
      const tests = forms.map((form) => `${spelledOutBy(form, column)} GLOB ?`);
      // Columns are usually ASCII, which this detects fast.
      return `(LENGTH(CAST(${column} AS BLOB)) > LENGTH(${column}) AND (${tests.join(" OR ")}))`;
    },
    patterns: forms.map((form) => `*${Array.from(form, inAnyCase).join("")}*`),
    effort: forms.reduce((sum, form) => sum + SPELLING_OUT + form.length, 0),
  };
}

/** Returns SQL for the column's text with letters spelled out that could make it contain the form. */
function spelledOutBy(form: string, column: string): string {
  const lower = form.toLowerCase();
  const written = Object.entries(WRITTEN_OUT).filter(([, letters]) => mayShare(letters, lower));
  const dotted = lower.includes("i") ? [["i\u0307", "i"] as const, ["I\u0307", "I"] as const] : [];
  return [...dotted, ...written].reduce((sql, [from, to]) => `REPLACE(${sql}, '${from}', '${to}')`, column);
}

/** Returns true if an ASCII string may match one that is not ASCII. */
function mayBeBeyondAscii(text: string): boolean {
  const lower = text.toLowerCase();
  return (
    Array.from(text).some(kinOf) || Object.values(WRITTEN_OUT).some((letters) => mayShare(letters, lower))
  );
}

/** Returns true if the written-out letters may be part of a match of the text, as a whole or at either end. */
function mayShare(letters: string, text: string): boolean {
  return (
    text.includes(letters) ||
    letters.includes(text) ||
    Array.from(letters).some(
      (_, at) => at > 0 && (text.startsWith(letters.slice(at)) || text.endsWith(letters.slice(0, at))),
    )
  );
}

/** Returns a pattern for a character in each of its cases. */
function inAnyCase(char: string): string {
  const [upper, lower] = [char.toUpperCase(), char.toLowerCase()];
  const forms = [char, upper, lower, upper.toLowerCase(), lower.toUpperCase(), ...(kinOf(char) ?? "")];
  const single = [...new Set(forms)].filter((form) => Array.from(form).length === 1);
  return single.length > 1 || "*?[".includes(char) ? `[${single.join("")}]` : char;
}
