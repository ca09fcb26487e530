import { newId } from "../../core/ids.ts";
import { DAY_MS } from "../../core/time/units.ts";
import type { RecipientStatus } from "../../core/messages/states.ts";
import type { Db, Guard, Statement } from "../../store/engine/client.ts";
import { CAME_BACK, disableAfterBounces, forwardingRule } from "../../store/rules/rule-effects.ts";
import { suppress } from "../../store/projects/suppressions.ts";

/**
 * Time for which a soft bounce suppresses an address, milliseconds. A hard bounce and a complaint suppress it for good.
 */
const SOFT_SUPPRESSION_MS = 7 * DAY_MS;

export interface SuppressionCause {
  senderId: string;
  /** The address in lower case. */
  email: string;
  messageId: string;
  /** Null for a complaint. */
  bounceType: "hard" | "soft" | null;
}

/**
 * Returns the statement that suppresses an address after a bounce or a complaint, if the guard holds. `now` in
 * milliseconds.
 */
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

/**
 * Returns the statements that disable the rule by which a message was forwarded, if its last forwards all came back. They belong at the
 * end of the write that gives the recipient its status.
 */
export async function stopForwarding(
  db: Db,
  { messageId, senderId }: { messageId: string; senderId: string },
  status: RecipientStatus,
  now: number,
): Promise<Statement[]> {
  if (!CAME_BACK.has(status)) return [];
  const rule = await forwardingRule(db, messageId);
  return rule === null ? [] : disableAfterBounces({ ...rule, senderId, noticeId: newId("ntc", now), now });
}
