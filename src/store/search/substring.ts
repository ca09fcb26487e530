import type { Value } from "../engine/client.ts";

/** A condition with its parameters. */
export interface Condition {
  sql: string;
  args: Value[];
}

/**
 * Holds where one of the columns contains the text as it is, in any case. LIKE folds ASCII only, so the text is also
 * looked for all lower and all upper: `émile` finds `Émile`. `%` and `_` stand for themselves.
 */
export function containsText(columns: readonly string[], text: string): Condition {
  const patterns = [...new Set([text, text.toLowerCase(), text.toUpperCase()])].map(
    (variant) => `%${variant.replace(/[\\%_]/g, "\\$&")}%`,
  );
  const tests = columns.flatMap((column) => patterns.map(() => `${column} LIKE ? ESCAPE '\\'`));
  return { sql: `(${tests.join(" OR ")})`, args: columns.flatMap(() => patterns) };
}
