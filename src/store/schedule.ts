import type { Db, Guard, Statement } from "./engine/client.ts";
import { type Recipient, RECIPIENT_COLUMNS, type RecipientRow, toRecipient } from "./recipients.ts";

/** Scheduled recipients whose time has come, with what their `queued` event needs. */
export async function dueScheduled(db: Db, now: number, limit: number): Promise<Recipient[]> {
  const rows = await db.all<RecipientRow>(
    `SELECT ${RECIPIENT_COLUMNS} FROM recipients WHERE due_at <= ? AND status = 'accepted' ORDER BY due_at LIMIT ?`,
    [now, limit],
  );
  return rows.map(toRecipient);
}

const TIME_HAS_COME = "message_id = ? AND ord = ? AND status = 'accepted' AND due_at <= ?";

/** Moves a scheduled recipient into the queue. Changes nothing where it was canceled or moved meanwhile. */
export function queueScheduled(messageId: string, ord: number, now: number): Statement {
  return {
    sql: `UPDATE recipients SET status = 'queued', last_event_at = ?
      WHERE ${TIME_HAS_COME}`,
    args: [now, messageId, ord, now],
  };
}

/** Holds while a scheduled recipient waits and its time has come: what `queueScheduled` changes. */
export function scheduledGuard(messageId: string, ord: number, now: number): Guard {
  return {
    sql: `EXISTS (SELECT 1 FROM recipients WHERE ${TIME_HAS_COME})`,
    args: [messageId, ord, now],
  };
}

/** Holds while the project's message waits for its time: what a cancel and a reschedule change. */
export function scheduledMessageGuard(senderId: string, messageId: string): Guard {
  return {
    // Of a message whose time has come some recipients may have gone while others still wait for the sweep.
    sql: `(EXISTS (SELECT 1 FROM messages WHERE id = ? AND sender_id = ? AND status = 'accepted')
      AND NOT EXISTS (SELECT 1 FROM recipients WHERE message_id = ? AND attempts > 0))`,
    args: [messageId, senderId, messageId],
  };
}

/** Ends the waiting recipients of a scheduled message as failed. */
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

/** Moves the waiting recipients of a scheduled message to another time, and the message with them. */
export function moveSchedule(senderId: string, messageId: string, scheduledAt: number): Statement[] {
  const guard = scheduledMessageGuard(senderId, messageId);
  return [
    {
      sql: `UPDATE recipients SET due_at = ? WHERE message_id = ? AND status = 'accepted' AND ${guard.sql}`,
      args: [scheduledAt, messageId, ...guard.args],
    },
    {
      sql: `UPDATE messages SET scheduled_at = ? WHERE id = ? AND ${guard.sql}`,
      args: [scheduledAt, messageId, ...guard.args],
    },
  ];
}
