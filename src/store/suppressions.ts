import type { Db, Guard, Statement } from "./client.ts";

export type SuppressionReason = "bounce" | "complaint" | "manual";

/** An address a project does not send to. */
export interface NewSuppression {
  id: string;
  senderId: string;
  /** The address's key: all lower case, domain in A-labels. */
  email: string;
  reason: SuppressionReason;
  bounceType: "hard" | "soft" | null;
  messageId: string | null;
  /** Milliseconds; null: for good. */
  expiresAt: number | null;
  createdAt: number;
}

/** Which of the address keys the project suppresses at `now`. */
export async function suppressedAmong(
  db: Db,
  senderId: string,
  emails: readonly string[],
  now: number,
): Promise<Set<string>> {
  const rows = await db.all<{ email: string }>(
    `SELECT email FROM suppressions WHERE sender_id = ? AND email IN (SELECT value FROM json_each(?))
      AND (expires_at IS NULL OR expires_at > ?)`,
    [senderId, JSON.stringify(emails), now],
  );
  return new Set(rows.map((row) => row.email));
}

/**
 * Adds an address, or makes an entry that stands longer-lasting: a hard bounce or complaint replaces a soft bounce
 * that expires; nothing shortens an entry.
 */
export function suppress(entry: NewSuppression, guard?: Guard): Statement {
  return {
    sql: `INSERT INTO suppressions (id, sender_id, email, reason, bounce_type, message_id, expires_at, created_at)
      SELECT ?, ?, ?, ?, ?, ?, ?, ? WHERE ${guard?.sql ?? "1"}
      ON CONFLICT (sender_id, email) DO UPDATE SET reason = excluded.reason, bounce_type = excluded.bounce_type,
        message_id = excluded.message_id, expires_at = excluded.expires_at
      WHERE suppressions.expires_at IS NOT NULL
        AND (excluded.expires_at IS NULL OR excluded.expires_at > suppressions.expires_at)`,
    args: [
      entry.id,
      entry.senderId,
      entry.email,
      entry.reason,
      entry.bounceType,
      entry.messageId,
      entry.expiresAt,
      entry.createdAt,
      ...(guard?.args ?? []),
    ],
  };
}
