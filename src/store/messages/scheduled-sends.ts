import { APPROVAL_EXPIRED, APPROVAL_MS, KEY_REVOKED, waitsForApproval } from "./approvals.ts";
import type { Db, Guard, Statement } from "../engine/client.ts";
import { type Recipient, RECIPIENTS } from "./recipients.ts";

/** Returns scheduled recipients whose time has come, or whose time for an approval is over, with the fields that their `queued` event needs. */
export function dueScheduled(db: Db, now: number, limit: number): Promise<Recipient[]> {
  return RECIPIENTS.all(db, "WHERE due_at <= ? AND status = 'accepted' ORDER BY due_at LIMIT ?", [
    now,
    limit,
  ]);
}

const TIME_HAS_COME = "message_id = ? AND ord = ? AND status = 'accepted' AND due_at <= ? AND reason IS ?";

/**
 * Returns the statement that queues a scheduled recipient, or fails one that was not approved in time. It changes nothing if
 * the recipient was approved, canceled or rescheduled.
 */
export function endWaiting({ messageId, ord, reason }: Recipient, now: number): Statement {
  const isExpired = waitsForApproval(reason);
  return {
    sql: `UPDATE recipients SET status = ?, reason = ?, due_at = iif(?, NULL, due_at), last_event_at = ?
      WHERE ${TIME_HAS_COME}`,
    args: [
      ...(isExpired ? ["failed", APPROVAL_EXPIRED, 1] : ["queued", null, 0]),
      now,
      messageId,
      ord,
      now,
      reason,
    ],
  };
}

/** Returns the statement that holds a scheduled recipient whose key was revoked, until its message is approved. */
export function holdForApproval({ messageId, ord, reason }: Recipient, now: number): Statement {
  return {
    sql: `UPDATE recipients SET reason = ?, due_at = ? WHERE ${TIME_HAS_COME}`,
    args: [KEY_REVOKED, now + APPROVAL_MS, messageId, ord, now, reason],
  };
}

/** Holds while a scheduled recipient waits as it was read and its time has come, so that `endWaiting` changes it. */
export function scheduledGuard({ messageId, ord, reason }: Recipient, now: number): Guard {
  return {
    sql: `EXISTS (SELECT 1 FROM recipients WHERE ${TIME_HAS_COME})`,
    args: [messageId, ord, now, reason],
  };
}

/** Holds while the project's message waits for its time, so that it may be canceled or rescheduled. */
export function scheduledMessageGuard(senderId: string, messageId: string): Guard {
  return {
    // Once the time has come, some recipients may have been tried while others still wait for the sweep.
    sql: `(EXISTS (SELECT 1 FROM messages WHERE id = ? AND sender_id = ? AND status = 'accepted')
      AND NOT EXISTS (SELECT 1 FROM recipients WHERE message_id = ? AND attempts > 0))`,
    args: [messageId, senderId, messageId],
  };
}

/** Returns the statement that fails the waiting recipients of a scheduled message. */
export function cancelRecipients(
  senderId: string,
  messageId: string,
  reason: string,
  now: number,
): Statement {
  const guard = scheduledMessageGuard(senderId, messageId);
  return {
    sql: `UPDATE recipients SET status = 'failed', reason = ?, due_at = NULL, last_event_at = ?
      WHERE message_id = ? AND status = 'accepted' AND ${guard.sql}`,
    args: [reason, now, messageId, ...guard.args],
  };
}

/** Holds while a message waits for its time and not for an approval, which is about that time as well. */
function movableGuard(senderId: string, messageId: string): Guard {
  const { sql, args } = scheduledMessageGuard(senderId, messageId);
  return {
    sql: `(${sql} AND NOT EXISTS (SELECT 1 FROM recipients
      WHERE message_id = ? AND status = 'accepted' AND reason IS NOT NULL))`,
    args: [...args, messageId],
  };
}

/** Returns the statements that move a scheduled message and its waiting recipients to another time. */
export function moveSchedule(senderId: string, messageId: string, scheduledAt: number): Statement[] {
  const guard = movableGuard(senderId, messageId);
  return [
    {
      sql: `UPDATE recipients SET due_at = ?
        WHERE message_id = ? AND status = 'accepted' AND ${guard.sql}`,
      args: [scheduledAt, messageId, ...guard.args],
    },
    {
      sql: `UPDATE messages SET scheduled_at = ? WHERE id = ? AND ${guard.sql}`,
      args: [scheduledAt, messageId, ...guard.args],
    },
  ];
}
