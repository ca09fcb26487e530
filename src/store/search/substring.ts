import { isAsciiText } from "../../core/ascii.ts";
import type { Value } from "../engine/client.ts";

/** A condition with its parameters. */
export interface Condition {
  sql: string;
  args: Value[];
}

/**
 * Holds where one of the columns contains the text as it is, in any case: `привет` finds `Привет Мир`. The characters
 * that LIKE and GLOB read as patterns stand for themselves.
 */
export function containsText(columns: readonly string[], text: string): Condition {
  const { operator, pattern } = isAsciiText(text) ? likeText(text) : globText(text);
  const tests = columns.map((column) => `${column} ${operator}`);
  return { sql: `(${tests.join(" OR ")})`, args: columns.map(() => pattern) };
}

interface Match {
  operator: string;
  pattern: string;
}

/** LIKE folds the case of ASCII, and is the faster of the two. */
function likeText(text: string): Match {
  return { operator: "LIKE ? ESCAPE '\\'", pattern: `%${text.replace(/[\\%_]/g, "\\$&")}%` };
}

/** GLOB folds nothing, but can be told for each character in which forms it may stand. */
function globText(text: string): Match {
  return { operator: "GLOB ?", pattern: `*${Array.from(text, inAnyCase).join("")}*` };
}

/** A character in each of its cases. Where a case takes several characters (`ß`, `SS`), that one is left out. */
function inAnyCase(char: string): string {
  const [upper, lower] = [char.toUpperCase(), char.toLowerCase()];
  // Through the other case and back: a Greek sigma has two small forms.
  const forms = [char, upper, lower, upper.toLowerCase(), lower.toUpperCase()];
  const single = [...new Set(forms)].filter((form) => Array.from(form).length === 1);
  return single.length > 1 || "*?[".includes(char) ? `[${single.join("")}]` : char;
}
