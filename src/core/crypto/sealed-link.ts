import type { Key } from "./key-ring.ts";
import { seal, unsealOrNull } from "./secretbox.ts";

/** Longest token that is opened, characters. */
const MAX_TOKEN_CHARS = 1000;

/**
 * Returns the token of a link that lets its holder do one thing until a time. The content is in the token, and in no table.
 * @param kind the thing, so that no link does another
 * @param until milliseconds
 */
export function sealLink(key: Key, kind: string, content: readonly unknown[], until: number): string {
  return seal(key, JSON.stringify([kind, ...content, until]));
}

/** Returns the content of a link of that kind; null if it was not made here, or its time is over. */
export function openLink(key: Key, kind: string, token: string, now: number): unknown[] | null {
  const plain = token.length > MAX_TOKEN_CHARS ? null : unsealOrNull(key, token);
  if (plain === null) return null;
  const [found, ...content] = JSON.parse(plain);
  const until = content.pop();
  return found === kind && until > now ? content : null;
}
