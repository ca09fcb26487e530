import type { Clock } from "../../core/clock.ts";
import type { Db } from "../../store/engine/client.ts";
import { HELD_FOR, HOLD_MS, holdRecipient, isHeldFor } from "../../store/held-recipients.ts";
import { type TriedRecipient, type WaitingRecipient, waitingRecipient } from "../../store/recipients.ts";
import type { RetryPolicy } from "./verdict.ts";

export interface TakeUpDeps {
  db: Db;
  clock: Clock;
  retry: RetryPolicy;
}

/** Why a recipient is refused whose mail's From domain was deleted, as a send is that comes after it. */
export const NOT_VERIFIED = HELD_FOR.unverified;

/** A recipient that is due. */
export interface Due extends WaitingRecipient {
  /** Why its mail does not go out after all; null where it does. */
  refusal: string | null;
  /** When it was read. */
  readAt: number;
}

/** Reads the recipient. Null: not due, put off, or somebody else has it. */
export async function takeUp(deps: TakeUpDeps, messageId: string, ord: number): Promise<Due | null> {
  const now = deps.clock.now();
  const waiting = await waitingRecipient(deps.db, messageId, ord, now);
  if (waiting === null) return null;
  const { recipient } = waiting;
  const refusal = refusalOf(waiting);
  if (refusal !== null && isHeldFor(refusal) && heldFor(recipient, now) < deps.retry.giveUpMs) {
    await deps.db.write([holdRecipient(recipient, refusal, now + HOLD_MS, now)]);
    return null;
  }
  return { ...waiting, refusal, readAt: now };
}

/** What may have changed while the mail waited for its time or for another try. */
function refusalOf({ suppressed, unsubscribed, suspended, unverified }: WaitingRecipient): string | null {
  if (suppressed) return "suppressed";
  if (unsubscribed) return "unsubscribed";
  if (suspended) return HELD_FOR.suspended;
  return unverified ? NOT_VERIFIED : null;
}

/** Milliseconds for which a recipient has been held: being put off is no event, so the last one came before that. */
function heldFor({ lastEventAt }: TriedRecipient, now: number): number {
  return now - (lastEventAt ?? now);
}
