import text from "./notices.txt" with { type: "text" };
import { patternGroups } from "./reply-phrases.ts";

/** A statement of mail systems and programs, which `notices.txt` has in many languages. */
export type Statement = "failure-subject" | "failure-text" | "automatic-subject";

let groups: ReadonlyMap<string, readonly RegExp[]> | null = null;

/** Returns whether the words make a statement, in any language. */
export function makes(statement: Statement, said: string): boolean {
  groups ??= new Map(patternGroups(text, "i").map(({ head, patterns }) => [head, patterns]));
  return groups.get(`[${statement}]`)?.some((pattern) => pattern.test(said)) ?? false;
}

/** Prefixes that mail programs put before the subject of a message that is answered or forwarded. */
export const ANSWER =
  /^(?:re|aw|antw|sv|vs|vl|vb|fwd?|wg|tr|rv|r|i|enc|res|odp|pd|ynt|ilt|doorst|továbbítás|отв|пересл|回复|答复|转发|回覆|轉寄|答覆|返信|転送|회신|전달)(?:\[\d{1,3}\])? ?[:：]/i;
