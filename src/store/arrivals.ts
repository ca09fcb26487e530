import type { Db } from "./client.ts";

/** A mail that an inbox has taken. */
export interface EarlierArrival {
  messageId: string;
  threadId: string;
}

/** The mails with a Message-ID that an inbox of the project has taken since then, newest first. `since` in milliseconds. */
export async function arrivalsOf(
  db: Db,
  inbox: { id: string; senderId: string },
  rfcMessageId: string,
  since: number,
  limit: number,
): Promise<EarlierArrival[]> {
  const rows = await db.all<{ id: string; thread_id: string }>(
    // The plus signs keep the planner on the index of the inbox's Message-IDs.
    `SELECT id, thread_id FROM messages
      WHERE inbox_id = ? AND rfc_message_id = ? AND +sender_id = ? AND direction = 'inbound'
        AND thread_id IS NOT NULL AND created_at > ?
      ORDER BY +id DESC LIMIT ?`,
    [inbox.id, rfcMessageId, inbox.senderId, since, limit],
  );
  return rows.map((row) => ({ messageId: row.id, threadId: row.thread_id }));
}
