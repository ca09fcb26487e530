import type { Member } from "../../api/types.ts";

/** Roles with what they may do, as a choice. */
export const ROLE_OPTIONS: readonly { value: string; text: string }[] = [
  { value: "owner", text: "Owner: everything" },
  { value: "developer", text: "Developer: everything but projects and people" },
  { value: "support", text: "Support: messages, threads, contacts and suppressions" },
  { value: "viewer", text: "Viewer: reads only" },
];

/** Returns the state of a member as a dot with its word. */
export function stateOf({ status }: Member): { tone: "good" | "quiet"; word: string } {
  if (status === "active") return { tone: "good", word: "Active" };
  return { tone: "quiet", word: status === "invited" ? "Invited" : "Disabled" };
}
