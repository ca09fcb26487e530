import { newId } from "../../core/ids.ts";
import { DAY_MS } from "../../core/time-units.ts";
import type { Guard, Statement } from "../../store/engine/client.ts";
import { suppress } from "../../store/suppressions.ts";

/** How long a soft bounce suppresses an address, milliseconds; a hard one and a complaint do so for good. */
const SOFT_SUPPRESSION_MS = 7 * DAY_MS;

export interface SuppressionCause {
  senderId: string;
  /** The address's key: all lower case. */
  email: string;
  messageId: string;
  /** null: a complaint. */
  bounceType: "hard" | "soft" | null;
}

/** The entry that a bounce or a complaint makes, where the guard holds. `now` in milliseconds. */
export function suppressFor(cause: SuppressionCause, guard: Guard, now: number): Statement {
  const { bounceType } = cause;
  return suppress(
    {
      ...cause,
      id: newId("sup", now),
      reason: bounceType === null ? "complaint" : "bounce",
      expiresAt: bounceType === "soft" ? now + SOFT_SUPPRESSION_MS : null,
      createdAt: now,
    },
    guard,
  );
}
