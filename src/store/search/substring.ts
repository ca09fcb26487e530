import { isAsciiText } from "../../core/ascii.ts";
import type { Value } from "../engine/client.ts";

/** A condition with its parameters. */
export interface Condition {
  sql: string;
  args: Value[];
}

/** Letters that are one where case does not count, though no change of case leads from each to each. */
const KIN = ["iIıİ", "kK\u212a", "sSſ", "åÅ\u212b", "βΒϐ", "θΘϑϴ", "μΜµ", "σΣς", "ωΩ\u2126"];

/** Letters that another case writes with several, by what these are in lower case. */
const WRITTEN_OUT: Readonly<Record<string, string>> = {
  ...{ ß: "ss", ẞ: "ss", ﬀ: "ff", ﬁ: "fi", ﬂ: "fl", ﬃ: "ffi", ﬄ: "ffl", ﬅ: "st", ﬆ: "st" },
};

/** An i with a dot of its own: what `İ` is in lower case. In the one form of it that Unicode has, an i has a dot anyway. */
const DOTTED = /([iI])\u0307/g;

/**
 * Holds where one of the columns contains the text as it is, in any case: `привет` finds `Привет Мир`. Nor does it count how
 * Unicode spells an accent, whose i has a dot (`istanbul`, `İstanbul`) and whether `ß` or `ss` is written. The characters that
 * LIKE and GLOB read as patterns stand for themselves.
 */
export function containsText(columns: readonly string[], text: string): Condition {
  // As it is typed, and in both ways of Unicode to write accents: names that come from a Mac's files have them apart.
  const forms = new Set([text, text.normalize("NFC"), text.normalize("NFD")].map(spelledOut));
  const match = matchOf([...forms]);
  const tests = columns.map((column) => match.test(column));
  return { sql: `(${tests.join(" OR ")})`, args: columns.flatMap(() => match.patterns) };
}

interface Match {
  test: (column: string) => string;
  patterns: string[];
}

/** LIKE folds the case of ASCII, and is several times as fast. GLOB looks at what is beyond ASCII. */
function matchOf(forms: readonly string[]): Match {
  const [first = ""] = forms;
  if (forms.length > 1 || !isAsciiText(first)) return globMatch(forms);
  const like = { test: (column: string) => `${column} LIKE ? ESCAPE '\\'`, patterns: [likePattern(first)] };
  if (!mayBeBeyondAscii(first)) return like;
  const glob = globMatch(forms);
  return {
    test: (column) => `(${like.test(column)} OR ${glob.test(column)})`,
    patterns: [...like.patterns, ...glob.patterns],
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
  };
}

/** The text with one letter for all its kin, and those that another case writes with several as they are then. */
function spelledOut(text: string): string {
  return Array.from(text.replace(DOTTED, "$1"), (char) => WRITTEN_OUT[char] ?? kinOf(char)?.[0] ?? char).join(
    "",
  );
}

/** The column's text spelled out, as far as that may let it contain the form. */
function spelledOutBy(form: string, column: string): string {
  const lower = form.toLowerCase();
  const written = Object.entries(WRITTEN_OUT).filter(([, letters]) => lower.includes(letters));
  const dotted = lower.includes("i") ? [["i\u0307", "i"] as const, ["I\u0307", "I"] as const] : [];
  return [...dotted, ...written].reduce((sql, [from, to]) => `REPLACE(${sql}, '${from}', '${to}')`, column);
}

/** Whether a text in ASCII may stand in one that is not. */
function mayBeBeyondAscii(text: string): boolean {
  return (
    Array.from(text).some(kinOf) ||
    Object.values(WRITTEN_OUT).some((part) => text.toLowerCase().includes(part))
  );
}

function kinOf(char: string): string | undefined {
  return KIN.find((letters) => letters.includes(char));
}

/** A character in each of its cases. */
function inAnyCase(char: string): string {
  const [upper, lower] = [char.toUpperCase(), char.toLowerCase()];
  const forms = [char, upper, lower, upper.toLowerCase(), lower.toUpperCase(), ...(kinOf(char) ?? "")];
  const single = [...new Set(forms)].filter((form) => Array.from(form).length === 1);
  return single.length > 1 || "*?[".includes(char) ? `[${single.join("")}]` : char;
}
