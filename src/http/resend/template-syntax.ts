/** A variable of a Resend template, as the client declares it. */
export interface TemplateVariable {
  key: string;
  type: "string" | "number";
  fallback: string | number | null;
}

/** A placeholder of Resend's: `{{{NAME}}}`. Names are letters, digits and `_`. */
const THEIRS = /\{\{\{\s*([A-Za-z_][A-Za-z0-9_]{0,63})\s*\}\}\}/g;
/** The placeholder that `toLiquid` makes. */
const OURS =
  /\{\{ ([A-Za-z_][A-Za-z0-9_]{0,63})(?: \| default: ("(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?))? \| raw \}\}/g;

/**
 * Returns a text with Resend's placeholders as Liquid's. Resend does not escape values, so `raw` leaves them as they are.
 * A fallback becomes the `default` of each placeholder.
 */
export function toLiquid(text: string, variables: ReadonlyMap<string, TemplateVariable>): string {
  return text.replace(THEIRS, (_all, key: string) => {
    const fallback = variables.get(key)?.fallback ?? null;
    return `{{ ${key}${fallback === null ? "" : ` | default: ${JSON.stringify(fallback)}`} | raw }}`;
  });
}

/** Returns a text with its placeholders as Resend's. */
export function fromLiquid(text: string): string {
  return text.replace(OURS, (_all, key: string) => `{{{${key}}}}`);
}

/** Returns the variables that the texts use, with their fallbacks. */
export function variablesIn(texts: readonly (string | null)[], names: readonly string[]): TemplateVariable[] {
  const fallbacks = new Map<string, string | number>();
  for (const text of texts)
    for (const [, key = "", given] of (text ?? "").matchAll(OURS))
      if (given !== undefined) fallbacks.set(key, JSON.parse(given));
  return names.map((key) => {
    const fallback = fallbacks.get(key) ?? null;
    return { key, type: typeof fallback === "number" ? "number" : "string", fallback };
  });
}
