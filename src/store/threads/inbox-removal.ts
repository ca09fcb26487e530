import type { Db } from "../engine/client.ts";
import { INBOXES_AT_A_TIME, INBOX_EXISTS } from "./inboxes.ts";
import { readInSteps } from "../matching/steps.ts";

/**
 * Rows of each kind that one write of a removal changes, in about ten milliseconds. Other requests are served between
 * writes.
 */
export const ROWS_PER_REMOVAL = 500;

/**
 * Deletes an inbox that never received mail, and its threads. There may be many threads, of messages sent from it, so
 * they are deleted in steps. The first write hides the inbox, so that it gets no mail while it loses threads.
 * @returns false if there is no such inbox; nothing is changed then
 */
export async function deleteInbox(db: Db, senderId: string, id: string): Promise<boolean> {
  const [marked] = await db.write([
    {
      // The address is free for another inbox at once.
      sql: "UPDATE inboxes SET address = id WHERE sender_id = ? AND id = ? AND received_count = 0",
      args: [senderId, id],
    },
  ]);
  if (marked?.changes !== 1) return false;
  await removeInbox(db, id);
  return true;
}

/**
 * Removes an inbox that `deleteInbox` has marked, and everything that names it. Several callers may do it at the same
 * time.
 */
export async function removeInbox(db: Db, id: string): Promise<void> {
  const limited = [id, ROWS_PER_REMOVAL];
  for (;;) {
    const written = await db.write([
      {
        // Messages stay, without the ids of what is deleted.
        sql: `UPDATE messages SET inbox_id = NULL, thread_id = NULL WHERE id IN
          (SELECT id FROM messages WHERE inbox_id = ? LIMIT ?)`,
        args: limited,
      },
      {
        sql: `DELETE FROM thread_references WHERE (inbox_id, rfc_message_id) IN
          (SELECT inbox_id, rfc_message_id FROM thread_references WHERE inbox_id = ? LIMIT ?)`,
        args: limited,
      },
      {
        sql: "DELETE FROM threads WHERE id IN (SELECT id FROM threads WHERE inbox_id = ? LIMIT ?)",
        args: limited,
      },
      {
        sql: `DELETE FROM inboxes WHERE id = ?1 AND NOT (${INBOX_EXISTS})
          AND NOT EXISTS (SELECT 1 FROM messages WHERE inbox_id = ?1)
          AND NOT EXISTS (SELECT 1 FROM thread_references WHERE inbox_id = ?1)
          AND NOT EXISTS (SELECT 1 FROM threads WHERE inbox_id = ?1)`,
        args: [id],
      },
    ]);
    if (written.at(-1)?.changes === 1 || written.every(({ changes }) => changes === 0)) return;
  }
}

/** Returns the inboxes that are still marked: the process that removed them has ended. */
export async function markedInboxes(db: Db): Promise<string[]> {
  const rows = await readInSteps<{ id: string; marked: number }>(
    INBOXES_AT_A_TIME,
    Number.POSITIVE_INFINITY,
    (last, limit) =>
      db.all(`SELECT id, NOT (${INBOX_EXISTS}) AS marked FROM inboxes WHERE id > ? ORDER BY id LIMIT ?`, [
        last?.id ?? "",
        limit,
      ]),
  );
  return rows.filter(({ marked }) => marked === 1).map(({ id }) => id);
}
