import { HOLD_MS, holdOn, isHeldFor } from "../../store/held-recipients.ts";
import type { Clock } from "../../core/clock.ts";
import type { Db } from "../../store/engine/client.ts";
import type { DueRecipient } from "../../store/outbox.ts";

/** Recipients put off in one write: some five milliseconds. */
const HELD_AT_A_TIME = 250;

export interface HeldDeps {
  db: Db;
  clock: Clock;
  /** How long a mail is held, as it is tried, milliseconds. */
  giveUpMs: number;
}

/** Puts off what of a page of due recipients is held and stays so. Resolves with the rest, in its order. */
export async function withoutHeld(
  { db, clock, giveUpMs }: HeldDeps,
  due: readonly DueRecipient[],
): Promise<readonly DueRecipient[]> {
  const held = due.filter(({ reason }) => isHeldFor(reason));
  if (held.length === 0) return due;
  const keyOf = ({ messageId, ord }: Pick<DueRecipient, "messageId" | "ord">) => `${messageId}.${ord}`;
  const putOff = new Set<string>();
  for (let from = 0; from < held.length; from += HELD_AT_A_TIME) {
    const now = clock.now();
    const hold = { now, dueAt: now + HOLD_MS, since: now - giveUpMs };
    for (const place of await holdOn(db, held.slice(from, from + HELD_AT_A_TIME), hold))
      putOff.add(keyOf(place));
  }
  return due.filter((recipient) => !putOff.has(keyOf(recipient)));
}
