import type { Db } from "./engine/client.ts";
import { INBOXES_AT_A_TIME, STANDS } from "./inboxes.ts";
import { readInSteps } from "./search/steps.ts";

/** Rows of each kind that one write of a removal changes: the rest of the service runs in between (some ten milliseconds). */
export const ROWS_PER_REMOVAL = 500;

/**
 * Deletes an inbox that never received mail, and its threads. Of those, which are of mail sent from it, there may be many, so
 * they go bit by bit; but the inbox is nobody's from the first write on, so that no mail comes to one that has lost threads
 * already. Returns false where there is none such, and changes nothing then.
 */
export async function deleteInbox(db: Db, senderId: string, id: string): Promise<boolean> {
  const [marked] = await db.write([
    {
      // The address is free for another inbox at once, and leads nobody here any more.
      sql: "UPDATE inboxes SET address = id WHERE sender_id = ? AND id = ? AND received_count = 0",
      args: [senderId, id],
    },
  ]);
  if (marked?.changes !== 1) return false;
  await removeInbox(db, id);
  return true;
}

/** Removes an inbox that `deleteInbox` has marked, with all that names it. Any number of callers may do it at a time. */
export async function removeInbox(db: Db, id: string): Promise<void> {
  const limited = [id, ROWS_PER_REMOVAL];
  for (;;) {
    const written = await db.write([
      {
        // Messages stay: of both ids there is nothing to be read any more.
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
        sql: `DELETE FROM inboxes WHERE id = ?1 AND NOT (${STANDS})
          AND NOT EXISTS (SELECT 1 FROM messages WHERE inbox_id = ?1)
          AND NOT EXISTS (SELECT 1 FROM thread_references WHERE inbox_id = ?1)
          AND NOT EXISTS (SELECT 1 FROM threads WHERE inbox_id = ?1)`,
        args: [id],
      },
    ]);
    if (written.at(-1)?.changes === 1 || written.every(({ changes }) => changes === 0)) return;
  }
}

/** Inboxes that are marked still: whoever was removing them has ended. */
export async function markedInboxes(db: Db): Promise<string[]> {
  const rows = await readInSteps<{ id: string; marked: number }>(
    INBOXES_AT_A_TIME,
    Number.POSITIVE_INFINITY,
    (last, limit) =>
      db.all(`SELECT id, NOT (${STANDS}) AS marked FROM inboxes WHERE id > ? ORDER BY id LIMIT ?`, [
        last?.id ?? "",
        limit,
      ]),
  );
  return rows.filter(({ marked }) => marked === 1).map(({ id }) => id);
}
