import type { IdRange } from "../../core/ids.ts";
import type { Db, Guard, Statement } from "../engine/client.ts";
import { FANNED_OUT } from "../webhooks/fan-outs.ts";
import { type Age, ageArgs, AT_REST, over } from "./retention.ts";

/**
 * Returns the statement that removes the references of messages and their attachments to contents. In its write it must come
 * before the statements that clear the columns, or delete the messages.
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
 * The condition that no webhook needs the contents of a message `m`. A received message keeps them until its webhooks are
 * delivered, because their retries last longer than a day and the payload shows the content.
 */
const SHOWN = `(m.direction = 'outbound' OR NOT EXISTS (SELECT 1 FROM webhook_deliveries d
      WHERE d.message_id = m.id AND d.status = 'pending' AND d.type = 'inbound_received')
    AND ${FANNED_OUT})`;

/** The condition that the contents of a message `m` may be removed for their age. */
const MAY_REMOVE = `${over("content_days")} AND ${SHOWN}`;

/** Lists messages of a range whose sends wanted their contents to go. Those without a recipient in progress are removable. */
export async function endingContents(db: Db, range: IdRange): Promise<MessageWithContent[]> {
  const rows = await db.all<{ id: string; is_removable: number }>(
    `SELECT m.id, ${AT_REST} AS is_removable FROM messages m INDEXED BY messages_content_ends
      WHERE m.content_ends = 1 AND m.id > ? AND m.id < ? ORDER BY m.id LIMIT ?`,
    [range.after, range.below, range.limit],
  );
  return rows.map((row) => ({ id: row.id, isRemovable: row.is_removable === 1 }));
}

/** Holds while the contents of all the messages end, and no recipient is in progress. */
export function contentEndsGuard(ids: readonly string[]): Guard {
  return {
    sql: `(SELECT count(*) FROM json_each(?) j CROSS JOIN messages m ON m.id = j.value
        WHERE m.content_ends = 1 AND ${AT_REST}) = ?`,
    args: [JSON.stringify(ids), ids.length],
  };
}

export interface MessageWithContent {
  id: string;
  isRemovable: boolean;
}

/** Lists messages of a range with their contents, oldest first. Those that have passed their retention may be removable. */
export async function messagesWithContent(db: Db, range: IdRange, age: Age): Promise<MessageWithContent[]> {
  const rows = await db.all<{ id: string; is_removable: number }>(
    `SELECT m.id, ${MAY_REMOVE} AS is_removable
      FROM message_content c INDEXED BY message_content_present CROSS JOIN messages m ON m.id = c.message_id
      WHERE c.content_removed_at IS NULL AND c.message_id > ? AND c.message_id < ? ORDER BY c.message_id LIMIT ?`,
    [...ageArgs(age), range.after, range.below, range.limit],
  );
  return rows.map((row) => ({ id: row.id, isRemovable: row.is_removable === 1 }));
}

/** Returns the guard that all the messages still have their contents, and that these may be removed. */
export function withContentGuard(ids: readonly string[], age: Age): Guard {
  return {
    sql: `(SELECT count(*) FROM json_each(?) j CROSS JOIN messages m ON m.id = j.value
        JOIN message_content c ON c.message_id = m.id WHERE c.content_removed_at IS NULL AND ${MAY_REMOVE}) = ?`,
    args: [JSON.stringify(ids), ...ageArgs(age), ids.length],
  };
}

/**
 * Returns the statements that remove messages' contents, with template data and thread previews, which show parts of them.
 * @param leftAt when the contents count as left by their last message, milliseconds. If left out, `now`
 */
export function removeContents(
  ids: readonly string[],
  { now, leftAt = now }: { now: number; leftAt?: number },
): Statement[] {
  const list = JSON.stringify(ids);
  return [
    releaseContents(ids, leftAt),
    {
      sql: `UPDATE messages SET content_ends = 0, row_octets = MAX(0, row_octets - (
          SELECT COALESCE(octet_length(c.data), 0) + COALESCE(octet_length(c.trace), 0)
          FROM message_content c WHERE c.message_id = messages.id))
        WHERE id IN (SELECT value FROM json_each(?))`,
      args: [list],
    },
    {
      sql: `UPDATE message_content SET body = NULL, raw = NULL, trace = NULL, data = NULL, content_removed_at = ?
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

/** Returns true if retention has removed the contents of a message of the project. */
export async function isContentRemoved(db: Db, senderId: string, id: string): Promise<boolean> {
  const row = await db.first<{ content_removed_at: number | null }>(
    `SELECT c.content_removed_at FROM message_content c JOIN messages m ON m.id = c.message_id
      WHERE c.message_id = ? AND m.sender_id = ?`,
    [id, senderId],
  );
  return row !== null && row.content_removed_at !== null;
}
