import type { RecipientStatus } from "../../core/messages/states.ts";
import { idCeiling } from "../../core/ids.ts";
import type { Db } from "../engine/client.ts";

/** A message of a broadcast. Times in milliseconds. */
export interface BroadcastMessage {
  id: string;
  email: string;
  status: RecipientStatus;
  reason: string | null;
  /** True if a person has opened it, or clicked. */
  opened: boolean;
  clicked: boolean;
  lastEventAt: number | null;
}

type Row = Omit<BroadcastMessage, "opened" | "clicked"> & { opened: number; clicked: number };

/** Returns at most `take` messages of a broadcast of the project, newest first, with ids below `after`. */
export async function listBroadcastMessages(
  db: Db,
  senderId: string,
  broadcastId: string,
  after: string | null,
  take: number,
): Promise<BroadcastMessage[]> {
  const rows = await db.all<Row>(
    `SELECT r.message_id AS id, r.email, r.status, r.reason, COALESCE(e.opens, 0) > 0 AS opened, COALESCE(e.clicks, 0) > 0 AS clicked,
        r.last_event_at AS lastEventAt
      FROM broadcast_messages b JOIN recipients r ON r.message_id = b.message_id AND r.sender_id = ?
        LEFT JOIN engagement e ON e.message_id = r.message_id AND e.ord = r.ord
      WHERE b.broadcast_id = ? AND b.message_id < ? ORDER BY b.message_id DESC LIMIT ?`,
    [senderId, broadcastId, after ?? idCeiling("msg"), take],
  );
  return rows.map((row) => ({ ...row, opened: row.opened === 1, clicked: row.clicked === 1 }));
}
