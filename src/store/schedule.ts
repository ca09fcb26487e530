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

/** Moves a scheduled recipient into the queue. Changes nothing where it was canceled or moved meanwhile. */
export function queueScheduled(messageId: string, ord: number, now: number): Statement {
  return {
    sql: `UPDATE recipients SET status = 'queued', last_event_at = ?
      WHERE message_id = ? AND ord = ? AND status = 'accepted' AND due_at <= ?`,
    args: [now, messageId, ord, now],
  };
}

/** Holds while a scheduled recipient waits and its time has come: what `queueScheduled` changes. */
export function scheduledGuard(messageId: string, ord: number, now: number): Guard {
  return {
    sql: "EXISTS (SELECT 1 FROM recipients WHERE message_id = ? AND ord = ? AND status = 'accepted' AND due_at <= ?)",
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

/**
 * Lets what waits for a delay (retries, pushes, checks of domains) begin its wait anew where the clock has been put back
 * since: the last thing that happened to it lies in the future, and it would wait for the clock to come there again.
 * Scheduled mail waits for the clock.
 */
export function restartWaits(now: number): Statement[] {
  return [
    {
      sql: `UPDATE recipients SET due_at = ? + MAX(0, due_at - last_event_at), last_event_at = ?
        WHERE due_at > ? AND status <> 'accepted' AND last_event_at > ?
          AND NOT EXISTS (SELECT 1 FROM messages WHERE id = recipients.message_id AND scheduled_at > ?)`,
      args: [now, now, now, now, now],
    },
    {
      sql: `UPDATE webhook_deliveries SET due_at = ? + MAX(0, due_at - COALESCE(last_attempt_at, created_at))
        WHERE due_at > ? AND COALESCE(last_attempt_at, created_at) > ?`,
      args: [now, now, now],
    },
    {
      sql: `UPDATE domains SET next_check_at = ? + MAX(0, next_check_at - COALESCE(checked_at, created_at))
        WHERE next_check_at > ? AND COALESCE(checked_at, created_at) > ?`,
      args: [now, now, now],
    },
  ];
}
