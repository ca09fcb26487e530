import type { DraftSummary } from "../api/types.ts";
import { me } from "./session.ts";

/** Returns whether a member or an author is the reader. */
export function isMe(id: string | null): boolean {
  return id !== null && id === me.value?.key.id;
}

/** Returns the name of the author of a draft or note; their type if they have none. */
export function authorName({ name, type }: DraftSummary["author"]): string {
  return name ?? type;
}
