import { allows } from "../../core/scopes.ts";
import type { Answer } from "./answer.ts";
import type { Route } from "./route.ts";

/** Fields that confirm a change to a key that may not read what it changed. */
const CONFIRMING: ReadonlySet<string> = new Set(["id", "status", "warnings"]);

/**
 * Returns the answer as a key with those scopes may see it. The right to change something is not the right to read it. An answer to
 * a creation (201) says no more than its request. Stored answers pass here as well.
 */
export function shownTo({ shows }: Pick<Route, "shows">, scopes: readonly string[], answer: Answer): Answer {
  const { status, body } = answer;
  if (shows === undefined || allows(scopes, shows) || status === 201) return answer;
  if (typeof body !== "object" || body === null) return answer;
  return {
    ...answer,
    body: Object.fromEntries(Object.entries(body).filter(([name]) => CONFIRMING.has(name))),
  };
}

/** Returns the sentence about that for the API document; "" if the route's answer is the same for every key. */
export function shownText({ shows }: Pick<Route, "shows">): string {
  return shows === undefined
    ? ""
    : `If the key lacks \`${shows}\`, the answer confirms the change with the \`id\` alone.`;
}
