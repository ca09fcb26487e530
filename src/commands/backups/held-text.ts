import type { Held } from "../../store/messages/held-by-restore.ts";

/** Says what a restore holds. */
export function heldText({ recipients, pushes, firstDueAt, lastDueAt }: Held): string {
  if (firstDueAt === null || lastDueAt === null) return "Nothing is held.";
  const [first, last] = [firstDueAt, lastDueAt].map((at) => new Date(at).toISOString());
  return `Held: ${recipients} recipients and ${pushes} webhook pushes, due from ${first} to ${last}.`;
}
