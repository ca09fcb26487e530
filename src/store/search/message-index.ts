import type { Db } from "../engine/client.ts";
import { isBroken, requireGuard } from "../engine/guards.ts";
import { changeOfIndex, type Entering, SEARCHED_COLUMNS, type SearchedRow } from "./index-entries.ts";
import { positionAfter } from "./positions.ts";
import type { TermTable } from "./term-queries.ts";

/**
 * Adds to the index in one write: new messages, and those whose subject has changed, at most `most` of each. Returns
 * the larger of the two numbers. If one of them changes at the same time, or another process adds it, nothing is
 * added.
 */
export async function indexWaiting(db: Db, most: number): Promise<number> {
  const changed = await db.all<SearchedRow>(
    `SELECT ${SEARCHED_COLUMNS} FROM messages_changed CROSS JOIN messages ON id = message_id LIMIT ?`,
    [most],
  );
  const waiting = await waitingMessages(db, most);
  if (changed.length + waiting.length === 0) return 0;
  const again = changed.flatMap((row) => (row.position === null ? [] : [{ row, place: row.position }]));
  const { guard, statements } = await changeOfIndex(db, [...waiting, ...again], []);
  try {
    await db.write([
      requireGuard("changed_since_read", guard),
      {
        sql: `UPDATE messages SET position = value ->> 1 FROM json_each(?) WHERE messages.id = value ->> 0`,
        args: [JSON.stringify(waiting.map(({ row, place }) => [row.id, place]))],
      },
      {
        sql: "DELETE FROM messages_changed WHERE message_id IN (SELECT value FROM json_each(?))",
        args: [JSON.stringify(changed.map(({ id }) => id))],
      },
      ...statements,
    ]);
  } catch (error) {
    if (!isBroken(error, "changed_since_read")) throw error;
  }
  return Math.max(waiting.length, changed.length);
}

async function waitingMessages(db: Db, most: number): Promise<Entering[]> {
  const rows = await db.all<SearchedRow & { created_at: number }>(
    `SELECT ${SEARCHED_COLUMNS}, created_at FROM messages INDEXED BY messages_unindexed
      WHERE position IS NULL LIMIT ?`,
    [most],
  );
  if (rows.length === 0) return [];
  const newest = await db.first<{ position: number }>(
    `SELECT position FROM messages INDEXED BY messages_by_position
      WHERE position IS NOT NULL ORDER BY position DESC LIMIT 1`,
  );
  let last = newest?.position ?? 0;
  return rows
    .sort((a, b) => (a.id < b.id ? -1 : 1))
    .map((row) => {
      const place = positionAfter(last, row.id, row.created_at);
      last = Math.max(last, place);
      return { row, place };
    });
}

/**
 * Merges segments of one level, about `pages` pages of them in one write, because a search opens each segment for each
 * of its terms. Returns true if there was something to merge: only then FTS5 changes two rows or more
 * (https://www.sqlite.org/fts5.html#the_merge_command).
 */
export async function mergeSegments(
  db: Db,
  pages: number,
  table: TermTable = "message_terms",
): Promise<boolean> {
  const changes = { sql: "SELECT total_changes() AS count", args: [] };
  const [before, , after] = await db.write([
    changes,
    { sql: `INSERT INTO ${table} (${table}, rank) VALUES ('merge', ?)`, args: [pages] },
    changes,
  ]);
  const count = (written: typeof before): number => Number(written?.rows[0]?.["count"]);
  return count(after) - count(before) >= 2;
}
