import type { Db, Guard, Statement } from "../engine/client.ts";

/** Reason of a recipient whose message waits for an approval. Its status is `accepted`. */
export const AWAITING_APPROVAL = "awaiting_approval";
/** Reason of a recipient whose message was not approved in time. */
export const APPROVAL_EXPIRED = "approval_expired";
/** Time for an approval, milliseconds. At its end the recipient is due, and fails. */
export const APPROVAL_MS = 7 * 24 * 60 * 60 * 1000;

/** Holds while the project's message waits for an approval by another key than the one that made it. */
export function awaitingGuard(senderId: string, messageId: string, approver: string): Guard {
  return {
    sql: `(EXISTS (SELECT 1 FROM messages WHERE id = ? AND sender_id = ? AND approval_key <> ?)
      AND EXISTS (SELECT 1 FROM recipients WHERE message_id = ? AND reason = ? AND status = 'accepted'))`,
    args: [messageId, senderId, approver, messageId, AWAITING_APPROVAL],
  };
}

/**
 * Returns the statement that lets the waiting recipients of a message go.
 * @param scheduledAt the later time at which they go, milliseconds; null: now
 */
export function approveRecipients(messageId: string, scheduledAt: number | null, now: number): Statement {
  return {
    sql: `UPDATE recipients SET status = ?, reason = NULL, due_at = ?, last_event_at = ?
      WHERE message_id = ? AND reason = ? AND status = 'accepted'`,
    args: [
      ...[scheduledAt === null ? "queued" : "accepted", scheduledAt ?? now, now],
      ...[messageId, AWAITING_APPROVAL],
    ],
  };
}

/** Returns the ids of those of the project's messages that wait for an approval. */
export async function awaitingApproval(
  db: Db,
  senderId: string,
  messageIds: readonly string[],
): Promise<Set<string>> {
  if (messageIds.length === 0) return new Set();
  const rows = await db.all<{ id: string }>(
    `SELECT m.id FROM json_each(?) wanted JOIN messages m ON m.id = wanted.value WHERE m.sender_id = ?
      AND EXISTS (SELECT 1 FROM recipients r WHERE r.message_id = m.id AND r.reason = ? AND r.status = 'accepted')`,
    [JSON.stringify(messageIds), senderId, AWAITING_APPROVAL],
  );
  return new Set(rows.map(({ id }) => id));
}
