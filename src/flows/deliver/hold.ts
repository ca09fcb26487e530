import type { Store } from "../../store/engine/client.ts";
import { HELD_FOR, HOLD_MS, holdRecipient, isHeldFor } from "../../store/messages/held-recipients.ts";
import {
  type TriedRecipient,
  type WaitingRecipient,
  waitingRecipient,
} from "../../store/messages/recipients.ts";
import type { RetryPolicy } from "./verdict.ts";

export interface ReadDueDeps extends Store {
  retry: RetryPolicy;
  /** True if no message leaves this machine. */
  capture: boolean;
}

/** Refusal of a recipient whose From domain was deleted. A send after that is refused with the same reason. */
export const NOT_VERIFIED = HELD_FOR.unverified;

/**
 * Refusal of a captured message after the delivery mode was changed. It was taken from an address that the project may not send from.
 */
export const CAPTURE_ONLY = "capture_only";

/** Refusal of a message whose broadcast was canceled before its turn. */
const CANCELED = "canceled";

/** A recipient that is due. */
export interface Due extends WaitingRecipient {
  /** Why its message does not go out, or null if it does. */
  refusal: string | null;
  /** When it was read. */
  readAt: number;
}

/** Reads a recipient. Returns null if it is not due, is held, or is claimed by another process. */
export async function readDue(deps: ReadDueDeps, messageId: string, ord: number): Promise<Due | null> {
  const now = deps.clock.now();
  const waiting = await waitingRecipient(deps.db, messageId, ord, now);
  if (waiting === null) return null;
  const { recipient } = waiting;
  const refusal = waiting.testMode && !deps.capture ? CAPTURE_ONLY : refusalOf(waiting);
  if (refusal !== null && isHeld(refusal, heldFor(recipient, now), deps.retry)) {
    await deps.db.write([holdRecipient(recipient, refusal, now + HOLD_MS, now)]);
    return null;
  }
  return { ...waiting, refusal, readAt: now };
}

/** Returns the reason that now refuses a recipient. It may have changed while the message waited. */
function refusalOf(waiting: WaitingRecipient): string | null {
  const { suppressed, unsubscribed, suspended, unverified, testMode, broadcast } = waiting;
  if (suppressed) return "suppressed";
  if (unsubscribed) return "unsubscribed";
  if (broadcast === "canceled") return CANCELED;
  if (suspended) return HELD_FOR.suspended;
  if (broadcast === "paused") return HELD_FOR.paused;
  return unverified && !testMode ? NOT_VERIFIED : null;
}

/** Returns whether a recipient is put off. A pause has no limit, because people end it. */
function isHeld(refusal: string, heldMs: number, { giveUpMs }: RetryPolicy): boolean {
  return isHeldFor(refusal) && (refusal === HELD_FOR.paused || heldMs < giveUpMs);
}

/** Milliseconds for which a recipient has been held. Holding makes no event, so the last event was before it. */
function heldFor({ lastEventAt }: TriedRecipient, now: number): number {
  return now - (lastEventAt ?? now);
}
