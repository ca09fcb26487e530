import type { Db, Guard, Statement } from "../engine/client.ts";
import { FANNED_OUT } from "../fan-outs.ts";
import { OVER, type Stretch } from "../retention.ts";

/**
 * The statement by which messages let go of all contents that they and their attachments name. In its write it comes
 * before those that empty the columns, or delete the messages.
 * @param now milliseconds
 */
export function releaseContents(ids: readonly string[], now: number): Statement {
  const list = "(SELECT value FROM json_each(?2))";
  return {
    sql: `UPDATE contents SET refs = max(0, refs - used.times), created_at = ?1 FROM (
        SELECT key, count(*) AS times FROM (
          SELECT body AS key FROM message_content WHERE message_id IN ${list}
          UNION ALL SELECT raw FROM message_content WHERE message_id IN ${list}
          UNION ALL SELECT content FROM attachments WHERE message_id IN ${list})
        WHERE key IS NOT NULL GROUP BY key) AS used
      WHERE contents.key = used.key`,
    args: [now, JSON.stringify(ids)],
  };
}

/**
 * Whether the contents of a message `m` may go, by a time as `OVER` has it: not while a webhook is still to hear what came in.
 * Retries go on for more than a day, and it would be told of a mail without a word in it.
 */
const MAY_LET_GO = `${OVER}
  AND (m.direction = 'outbound' OR NOT EXISTS (SELECT 1 FROM webhook_deliveries d
      WHERE d.message_id = m.id AND d.status = 'pending' AND d.type = 'inbound_received')
    AND ${FANNED_OUT})`;

/** A message that has its content, and whether that may go. */
export interface KeptContent {
  id: string;
  mayGo: boolean;
}

/** Messages of a stretch that have their contents, oldest first, with whether those may go that are older than `before` (ms). */
export async function keptContents(db: Db, stretch: Stretch, before: number): Promise<KeptContent[]> {
  const rows = await db.all<{ id: string; may_go: number }>(
    `SELECT m.id, ${MAY_LET_GO} AS may_go
      FROM message_content c INDEXED BY message_content_kept CROSS JOIN messages m ON m.id = c.message_id
      WHERE c.let_go_at IS NULL AND c.message_id > ? AND c.message_id < ? ORDER BY c.message_id LIMIT ?`,
    [before, stretch.after, stretch.below, stretch.limit],
  );
  return rows.map((row) => ({ id: row.id, mayGo: row.may_go === 1 }));
}

/** Holds while all the messages have their contents, and those may go. */
export function keptGuard(ids: readonly string[], before: number): Guard {
  return {
    sql: `(SELECT count(*) FROM json_each(?) j CROSS JOIN messages m ON m.id = j.value
        JOIN message_content c ON c.message_id = m.id WHERE c.let_go_at IS NULL AND ${MAY_LET_GO}) = ?`,
    args: [JSON.stringify(ids), before, ids.length],
  };
}

/** Statements by which messages lose their contents, and what tells of them: a template's data, a thread's preview. */
export function letGo(ids: readonly string[], now: number): Statement[] {
  const list = JSON.stringify(ids);
  return [
    releaseContents(ids, now),
    {
      sql: `UPDATE message_content SET body = NULL, inline_body = NULL, raw = NULL, trace = NULL, data = NULL, let_go_at = ?
        WHERE message_id IN (SELECT value FROM json_each(?))`,
      args: [now, list],
    },
    {
      sql: `UPDATE attachments SET content = NULL WHERE content IS NOT NULL
        AND message_id IN (SELECT value FROM json_each(?))`,
      args: [list],
    },
    {
      sql: `UPDATE threads SET preview = '' WHERE id IN (
          SELECT m.thread_id FROM json_each(?1) j CROSS JOIN messages m ON m.id = j.value)
        AND last_message_id IN (SELECT value FROM json_each(?1))`,
      args: [list],
    },
  ];
}

/** Whether a message of the project has lost its content to its age. */
export async function isLetGo(db: Db, senderId: string, id: string): Promise<boolean> {
  const row = await db.first<{ let_go_at: number | null }>(
    `SELECT c.let_go_at FROM message_content c JOIN messages m ON m.id = c.message_id
      WHERE c.message_id = ? AND m.sender_id = ?`,
    [id, senderId],
  );
  return row !== null && row.let_go_at !== null;
}
