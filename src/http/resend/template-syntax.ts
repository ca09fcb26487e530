import { MAX_BODY_PART_BYTES } from "../../core/messages/send-rules.ts";
import { invalid } from "../../core/errors.ts";

/** The value of a variable that a send does not give. */
export type Fallback = string | number | null;

/** A variable of a Resend template, as the client declares it. */
export interface TemplateVariable {
  key: string;
  type: "string" | "number";
  fallback: Fallback;
}

/** A placeholder of Resend's: `{{{NAME}}}`. Names are letters, digits and `_`. */
const THEIRS = /\{\{\{\s*([A-Za-z_][A-Za-z0-9_]{0,63})\s*\}\}\}/g;
/** The placeholder that `toLiquid` makes. Its fallback has a limit, because the engine keeps a state for each character. */
const OURS =
  /\{\{ ([A-Za-z_][A-Za-z0-9_]{0,63})(?: \| default: ("(?:[^"\\]|\\.){0,10000}"|-?\d+(?:\.\d+)?))? \| raw \}\}/g;

/**
 * Converts Resend's placeholders to Liquid's. Resend does not escape values, so `raw` leaves them as they are. A
 * fallback becomes the `default` of each placeholder.
 * @throws AppError 422 as soon as the fallbacks make it too long
 */
export function toLiquid(param: string, text: string, fallbacks: ReadonlyMap<string, Fallback>): string {
  const defaults = new Map(
    [...fallbacks].map(([key, fallback]) => [
      key,
      fallback === null ? "" : ` | default: ${JSON.stringify(fallback)}`,
    ]),
  );
  let chars = text.length;
  return text.replace(THEIRS, (theirs, key: string) => {
    const ours = `{{ ${key}${defaults.get(key) ?? ""} | raw }}`;
    chars += ours.length - theirs.length;
    if (chars > MAX_BODY_PART_BYTES)
      throw invalid(
        param,
        `must have at most ${MAX_BODY_PART_BYTES} bytes with a fallback at each placeholder.`,
      );
    return ours;
  });
}

/** Converts Liquid's placeholders to Resend's. */
export function fromLiquid(text: string): string {
  return text.replace(OURS, (_all, key: string) => `{{{${key}}}}`);
}

/** Returns the variables that the template's parts use, with their fallbacks. */
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
