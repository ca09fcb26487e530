import type { RecipientStatus } from "../core/states.ts";
import type { Db, Guard, Statement } from "./engine/client.ts";

/** Events of one kind recorded of one recipient at most: whoever has a link could fill the database with visits. */
export const MAX_RECORDED = 100;

/** What is counted. */
export type EngagementCounter = "opens" | "machine_opens" | "clicks" | "machine_clicks";

/** A recipient as a visit finds it. Times are milliseconds. */
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

/** The recipient that a link names, of whichever project; null where it is gone. For links, which name no project. */
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

/** Holds while fewer of the kind are recorded than may be. */
export function roomGuard(messageId: string, ord: number, counter: EngagementCounter): Guard {
  return {
    sql: `NOT EXISTS (SELECT 1 FROM engagement WHERE message_id = ? AND ord = ? AND ${counter} >= ?)`,
    args: [messageId, ord, MAX_RECORDED],
  };
}

/** Holds while no open is recorded: what makes one the first. */
export function firstOpenGuard(messageId: string, ord: number): Guard {
  return {
    sql: "NOT EXISTS (SELECT 1 FROM engagement WHERE message_id = ? AND ord = ? AND opens + machine_opens > 0)",
    args: [messageId, ord],
  };
}

/** Holds once an open is recorded and there is room for another of the kind. */
export function laterOpenGuard(messageId: string, ord: number, counter: EngagementCounter): Guard {
  return {
    sql: `EXISTS (SELECT 1 FROM engagement WHERE message_id = ? AND ord = ? AND opens + machine_opens > 0 AND ${counter} < ?)`,
    args: [messageId, ord, MAX_RECORDED],
  };
}

/** Counts one more. Goes behind what its guards are for: it is what they look at. */
export function countEngagement(messageId: string, ord: number, counter: EngagementCounter): Statement {
  return {
    sql: `INSERT INTO engagement (message_id, ord, ${counter}) VALUES (?, ?, 1)
      ON CONFLICT (message_id, ord) DO UPDATE SET ${counter} = ${counter} + 1 WHERE ${counter} < ?`,
    args: [messageId, ord, MAX_RECORDED],
  };
}
