import { HOLD_MS, extendHolds, isHeldFor } from "../../store/messages/held-recipients.ts";
import type { Store } from "../../store/engine/client.ts";
import type { DueRecipient } from "../../store/messages/due-recipients.ts";

/** Recipients postponed in one write, which takes about five milliseconds. */
const HELD_PER_WRITE = 250;

export interface HeldDeps extends Store {
  /** Time for which a message is held or tried, milliseconds. */
  giveUpMs: number;
}

/** Postpones the due recipients that are still held. Returns the others in their order. */
export async function postponeHeld(
  { db, clock, giveUpMs }: HeldDeps,
  due: readonly DueRecipient[],
): Promise<readonly DueRecipient[]> {
  const held = due.filter(({ reason }) => isHeldFor(reason));
  if (held.length === 0) return due;
  const keyOf = ({ messageId, ord }: Pick<DueRecipient, "messageId" | "ord">) => `${messageId}.${ord}`;
  const postponed = new Set<string>();
  for (let from = 0; from < held.length; from += HELD_PER_WRITE) {
    const now = clock.now();
    const hold = { now, dueAt: now + HOLD_MS, since: now - giveUpMs };
    for (const place of await extendHolds(db, held.slice(from, from + HELD_PER_WRITE), hold))
      postponed.add(keyOf(place));
  }
  return due.filter((recipient) => !postponed.has(keyOf(recipient)));
}
