import type { Db, Guard, Statement } from "../engine/client.ts";

/** Reason of a recipient whose message waits for an approval. Its status is `accepted`. */
export const AWAITING_APPROVAL = "awaiting_approval";
/** Reason of a recipient whose time has come after the key that answers for its message was revoked. Its status is `accepted`. */
export const KEY_REVOKED = "key_revoked";
/** Reason of a recipient whose message was not approved in time. */
export const APPROVAL_EXPIRED = "approval_expired";
/** Time for an approval, milliseconds. At its end the recipient is due, and fails. */
export const APPROVAL_MS = 7 * 24 * 60 * 60 * 1000;

/** Returns whether a recipient with that reason waits for an approval of its message. */
export function waitsForApproval(reason: string | null): boolean {
  return reason === AWAITING_APPROVAL || reason === KEY_REVOKED;
}

/** SQL that holds for a recipient whose message waits for an approval. */
export const WAITS = `reason IN ('${AWAITING_APPROVAL}', '${KEY_REVOKED}') AND status = 'accepted'`;

/** Holds while the project's message waits for an approval by another key than the one that answers for it. */
export function awaitingGuard(senderId: string, messageId: string, approver: string): Guard {
  return {
    sql: `(EXISTS (SELECT 1 FROM messages WHERE id = ? AND sender_id = ? AND key_id IS NOT ?)
      AND EXISTS (SELECT 1 FROM recipients WHERE message_id = ? AND ${WAITS}))`,
    args: [messageId, senderId, approver, messageId],
  };
}

/**
 * Returns the statements that let the waiting recipients of a message go. The approver's key answers for it from then on.
 * @param scheduledAt the later time at which they go, milliseconds; null: now
 * @param approver null: the command line
 */
export function approveRecipients(
  messageId: string,
  approver: string | null,
  scheduledAt: number | null,
  now: number,
): Statement[] {
  return [
    {
      sql: `UPDATE recipients SET status = ?, reason = NULL, due_at = ?, last_event_at = ?
        WHERE message_id = ? AND ${WAITS}`,
      args: [scheduledAt === null ? "queued" : "accepted", scheduledAt ?? now, now, messageId],
    },
    { sql: "UPDATE messages SET key_id = ? WHERE id = ?", args: [approver, messageId] },
  ];
}

/** Returns the due messages whose key was revoked. */
export async function ofRevokedKeys(db: Db, messageIds: readonly string[]): Promise<Set<string>> {
  if (messageIds.length === 0) return new Set();
  const rows = await db.all<{ id: string }>(
    `SELECT m.id FROM json_each(?) wanted JOIN messages m ON m.id = wanted.value
      JOIN api_keys k ON k.id = m.key_id WHERE k.revoked_at IS NOT NULL`,
    [JSON.stringify(messageIds)],
  );
  return new Set(rows.map(({ id }) => id));
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
      AND EXISTS (SELECT 1 FROM recipients WHERE message_id = m.id AND ${WAITS})`,
    [JSON.stringify(messageIds), senderId],
  );
  return new Set(rows.map(({ id }) => id));
}
