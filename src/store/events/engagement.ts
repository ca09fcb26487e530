import type { RecipientStatus } from "../../core/messages/states.ts";
import type { Db, Guard, Statement } from "../engine/client.ts";

/**
 * Maximum number of events of one kind recorded for a recipient: anyone with a link could fill the database with
 * visits.
 */
export const MAX_RECORDED = 100;

/** The kinds of visits that are counted. */
export type EngagementCounter = "opens" | "machine_opens" | "clicks" | "machine_clicks";

/** A recipient of a tracking link. Times are milliseconds. */
export interface EngagedRecipient {
  senderId: string;
  email: string;
  status: RecipientStatus;
  lastEventAt: number | null;
  counts: Readonly<Record<EngagementCounter, number>>;
}

type EngagedRow = Record<EngagementCounter, number | null> & {
  sender_id: string;
  email: string;
  status: RecipientStatus;
  last_event_at: number | null;
};

/** Returns the recipient that a link names, of any project, because links name no project; null if it is gone. */
export async function engagedRecipient(
  db: Db,
  messageId: string,
  ord: number,
): Promise<EngagedRecipient | null> {
  const row = await db.first<EngagedRow>(
    `SELECT r.sender_id, r.email, r.status, r.last_event_at, e.opens, e.machine_opens, e.clicks, e.machine_clicks
      FROM recipients r LEFT JOIN engagement e ON e.message_id = r.message_id AND e.ord = r.ord
      WHERE r.message_id = ? AND r.ord = ?`,
    [messageId, ord],
  );
  if (row === null) return null;
  const { sender_id: senderId, email, status, last_event_at: lastEventAt } = row;
  const counts = {
    opens: row.opens ?? 0,
    machine_opens: row.machine_opens ?? 0,
    clicks: row.clicks ?? 0,
    machine_clicks: row.machine_clicks ?? 0,
  };
  return { senderId, email, status, lastEventAt, counts };
}

/** Holds while fewer events of the kind are recorded than may be. */
export function belowLimitGuard(messageId: string, ord: number, counter: EngagementCounter): Guard {
  return {
    sql: `NOT EXISTS (SELECT 1 FROM engagement WHERE message_id = ? AND ord = ? AND ${counter} >= ?)`,
    args: [messageId, ord, MAX_RECORDED],
  };
}

/** Holds while no open is recorded, so that the next one is the first. */
export function firstOpenGuard(messageId: string, ord: number): Guard {
  return {
    sql: "NOT EXISTS (SELECT 1 FROM engagement WHERE message_id = ? AND ord = ? AND opens + machine_opens > 0)",
    args: [messageId, ord],
  };
}

/** Holds if an open is recorded and fewer of the kind than may be. */
export function laterOpenGuard(messageId: string, ord: number, counter: EngagementCounter): Guard {
  return {
    sql: `EXISTS (SELECT 1 FROM engagement WHERE message_id = ? AND ord = ? AND opens + machine_opens > 0 AND ${counter} < ?)`,
    args: [messageId, ord, MAX_RECORDED],
  };
}

/**
 * Returns the statement that counts one more. It must follow the statements with the guards above, because it changes
 * what they check.
 */
export function countEngagement(messageId: string, ord: number, counter: EngagementCounter): Statement {
  return {
    sql: `INSERT INTO engagement (message_id, ord, ${counter}) VALUES (?, ?, 1)
      ON CONFLICT (message_id, ord) DO UPDATE SET ${counter} = ${counter} + 1 WHERE ${counter} < ?`,
    args: [messageId, ord, MAX_RECORDED],
  };
}
