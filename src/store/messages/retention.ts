import type { IdRange } from "../../core/ids.ts";
import { MOVING } from "../../core/messages/states.ts";
import { DAY_MS } from "../../core/time/units.ts";
import type { Db, Guard, Statement, Value } from "../engine/client.ts";
import { FANNED_OUT } from "../webhooks/fan-outs.ts";
import { MAX_THREAD_REFERENCES } from "../threads/threads.ts";

/** A message of the range. */
export interface OldMessage {
  id: string;
  threadId: string | null;
  mayGo: boolean;
  /** Its events and attempts, which are deleted with it; 0 if it may not be deleted. */
  rows: number;
}

const MOVING_LIST = [...MOVING].map((status) => `'${status}'`).join(", ");

/** The columns of a project's own retention, in days. */
export type RetentionColumn = "content_days" | "event_days";

/** The moment that a retention counts from, and the days of the installation. */
export interface Age {
  /** Milliseconds. */
  now: number;
  /** Null: for good, unless a project has its own days. */
  days: number | null;
}

/** SQL for the time before which rows of a project are old. Parameters as `ageArgs` gives them. */
function cutoff(days: RetentionColumn, senderId: string): string {
  return `(? - ${DAY_MS} * COALESCE((SELECT s.${days} FROM senders s WHERE s.id = ${senderId}), ?))`;
}

/** Returns the parameters of a condition about age. */
export function ageArgs({ now, days }: Age): [number, number | null] {
  return [now, days];
}

/** Returns the shortest retention of any project, or that of the installation if it is shorter; null: all is kept for good. */
export async function shortestDays(
  db: Db,
  column: RetentionColumn,
  days: number | null,
): Promise<number | null> {
  const row = await db.first<{ least: number | null }>(
    `SELECT min(${column}) AS least FROM senders WHERE ${column} IS NOT NULL`,
  );
  const known = [days, row?.least ?? null].filter((one) => one !== null);
  return known.length === 0 ? null : Math.min(...known);
}

/** The condition that no recipient of a message `m` is in progress. */
export const AT_REST = `NOT EXISTS (SELECT 1 FROM recipients r WHERE r.message_id = m.id AND r.status IN (${MOVING_LIST}))`;

/**
 * Returns the condition that a message `m` has passed its retention, and has no recipient in progress. Its age counts from
 * when it was first sent, or was scheduled for: mail that waited for long is not old yet.
 */
export function over(column: RetentionColumn): string {
  return `COALESCE(m.sent_at, m.scheduled_at, m.created_at) < ${cutoff(column, "m.sender_id")} AND ${AT_REST}`;
}

/** The condition that no webhook still waits for the events of a message `m`. */
const PUSHED = `NOT EXISTS (SELECT 1 FROM webhook_deliveries d WHERE d.message_id = m.id AND d.status = 'pending')
  AND ${FANNED_OUT}`;

/** The condition that an old message and all of its rows may be deleted. */
const MAY_GO = `${over("event_days")} AND ${PUSHED}`;

/**
 * Returns the messages of a range, oldest first. `mayGo` is true for those that have passed their retention and may be
 * deleted.
 */
export async function oldMessages(db: Db, range: IdRange, age: Age): Promise<OldMessage[]> {
  const rows = await db.all<{ id: string; thread_id: string | null; may_go: number; rows: number }>(
    `SELECT id, thread_id, may_go, CASE may_go WHEN 1 THEN
        (SELECT count(*) FROM events e WHERE e.message_id = o.id)
        + (SELECT count(*) FROM attempts a WHERE a.message_id = o.id) ELSE 0 END AS rows
      FROM (SELECT m.id, m.thread_id, ${MAY_GO} AS may_go FROM messages m
        WHERE m.id > ? AND m.id < ? ORDER BY m.id LIMIT ?) o ORDER BY id`,
    [...ageArgs(age), range.after, range.below, range.limit],
  );
  return rows.map((row) => ({
    id: row.id,
    threadId: row.thread_id,
    mayGo: row.may_go === 1,
    rows: row.rows,
  }));
}

/** Holds while all the messages exist and may be deleted for their age. */
export function mayGoGuard(ids: readonly string[], age: Age): Guard {
  return allOf(ids, MAY_GO, ageArgs(age));
}

/** Holds while all the messages exist, and nothing is done for them. It does not ask for their age. */
export function atRestGuard(ids: readonly string[]): Guard {
  return allOf(ids, `${AT_REST} AND ${PUSHED}`, []);
}

function allOf(ids: readonly string[], condition: string, args: readonly Value[]): Guard {
  return {
    sql: `(SELECT count(*) FROM json_each(?) j CROSS JOIN messages m ON m.id = j.value WHERE ${condition}) = ?`,
    args: [JSON.stringify(ids), ...args, ids.length],
  };
}

/** A message to delete before its time. */
export interface GoingMessage {
  id: string;
  threadId: string | null;
  /** True if a recipient is in progress. */
  isMoving: boolean;
}

const GOING = `SELECT m.id, m.thread_id, NOT ${AT_REST} AS moving FROM messages m`;

function going(row: { id: string; thread_id: string | null; moving: number }): GoingMessage {
  return { id: row.id, threadId: row.thread_id, isMoving: row.moving === 1 };
}

/** Returns the project's message of that id, to delete it; null if there is none. */
export async function goingMessage(db: Db, senderId: string, id: string): Promise<GoingMessage | null> {
  const row = await db.first<Parameters<typeof going>[0]>(`${GOING} WHERE m.id = ? AND m.sender_id = ?`, [
    id,
    senderId,
  ]);
  return row === null ? null : going(row);
}

/** Returns at most `limit` messages of the project's thread, those in progress first. */
export async function goingInThread(
  db: Db,
  senderId: string,
  threadId: string,
  limit: number,
): Promise<GoingMessage[]> {
  const sql = `${GOING} WHERE m.thread_id = ? AND m.sender_id = ? ORDER BY moving DESC LIMIT ?`;
  return (await db.all<Parameters<typeof going>[0]>(sql, [threadId, senderId, limit])).map(going);
}

/** Returns the statement that deletes the log and the waiting pushes of messages. */
export function deleteDeliveriesOf(ids: readonly string[]): Statement {
  return {
    sql: "DELETE FROM webhook_deliveries WHERE message_id IN (SELECT value FROM json_each(?))",
    args: [JSON.stringify(ids)],
  };
}

/**
 * Returns the statement that deletes messages and their rows. Contents, threads and the search index have separate
 * statements.
 */
export function deleteMessages(ids: readonly string[]): Statement {
  return {
    sql: "DELETE FROM messages WHERE id IN (SELECT value FROM json_each(?))",
    args: [JSON.stringify(ids)],
  };
}

/** A thread whose last message is deleted, with the message that becomes its last. */
export interface Shortened {
  threadId: string;
  senderId: string;
  lastMessageId: string;
  nextMessageId: string;
}

/** Returns the threads that lose their last message, and keep others, if these messages are deleted. */
export async function shortenedThreads(
  db: Db,
  threadIds: readonly string[],
  ids: readonly string[],
): Promise<Shortened[]> {
  if (threadIds.length === 0) return [];
  const rows = await db.all<{ id: string; sender_id: string; last: string; next: string }>(
    `SELECT id, sender_id, last, next FROM (
        SELECT t.id, t.sender_id, t.last_message_id AS last,
          (SELECT m.id FROM messages m WHERE m.thread_id = t.id AND m.id NOT IN (SELECT value FROM json_each(?1))
            ORDER BY m.id DESC LIMIT 1) AS next
        FROM threads t
        WHERE t.id IN (SELECT value FROM json_each(?2)) AND t.last_message_id IN (SELECT value FROM json_each(?1)))
      WHERE next IS NOT NULL`,
    [JSON.stringify(ids), JSON.stringify(threadIds)],
  );
  return rows.map((row) => ({
    threadId: row.id,
    senderId: row.sender_id,
    lastMessageId: row.last,
    nextMessageId: row.next,
  }));
}

/** Holds while the messages that become the last of their threads exist: another process may have deleted one. */
export function leftGuard(shortened: readonly Shortened[]): Guard {
  const ids = [...new Set(shortened.map(({ nextMessageId }) => nextMessageId))];
  return {
    sql: "(SELECT count(*) FROM messages WHERE id IN (SELECT value FROM json_each(?))) = ?",
    args: [JSON.stringify(ids), ids.length],
  };
}

/**
 * Returns the statement that sets the new last message of a thread. It changes nothing if a newer message has arrived.
 */
export function shortenThread(
  { threadId, lastMessageId, nextMessageId }: Shortened,
  preview: string,
): Statement {
  return {
    sql: `UPDATE threads SET last_message_id = ?, preview = ?,
        last_message_at = COALESCE((SELECT created_at FROM messages WHERE id = ?), last_message_at)
      WHERE id = ? AND last_message_id = ?`,
    args: [nextMessageId, preview, nextMessageId, threadId, lastMessageId],
  };
}

/** Returns the statement that subtracts messages from the counts of their threads. It comes before their deletion. */
export function uncountFromThreads(threadIds: readonly string[], ids: readonly string[]): Statement {
  return {
    sql: `UPDATE threads SET message_count = max(0, message_count - (
        SELECT count(*) FROM json_each(?1) j CROSS JOIN messages m ON m.id = j.value WHERE m.thread_id = threads.id))
      WHERE id IN (SELECT value FROM json_each(?2))`,
    args: [JSON.stringify(ids), JSON.stringify(threadIds)],
  };
}

/**
 * Returns the statement that remembers the Message-IDs of messages before they are deleted: replies to them must still
 * find the thread. Only threads that keep messages need this. A thread remembers its first ids, up to its limit.
 */
export function rememberGone(ids: readonly string[]): Statement {
  return {
    sql: `INSERT INTO thread_references (inbox_id, rfc_message_id, sender_id, thread_id)
      SELECT t.inbox_id, m.rfc_message_id, m.sender_id, m.thread_id FROM json_each(?1) j
        CROSS JOIN messages m ON m.id = j.value CROSS JOIN threads t ON t.id = m.thread_id
      WHERE m.rfc_message_id IS NOT NULL AND m.inbox_id = t.inbox_id
        AND EXISTS (SELECT 1 FROM messages o
          WHERE o.thread_id = t.id AND o.id NOT IN (SELECT value FROM json_each(?1)))
        AND (SELECT count(*) FROM (SELECT 1 FROM thread_references r WHERE r.thread_id = t.id
          LIMIT ${MAX_THREAD_REFERENCES})) < ${MAX_THREAD_REFERENCES}
      ORDER BY m.id ON CONFLICT DO NOTHING`,
    args: [JSON.stringify(ids)],
  };
}

/** Returns the statements that delete the threads without messages, with the Message-IDs remembered for them. */
export function deleteEmptied(threadIds: readonly string[]): Statement[] {
  const args = [JSON.stringify(threadIds)];
  return [
    {
      sql: `DELETE FROM thread_references WHERE thread_id IN (SELECT value FROM json_each(?) j
        WHERE NOT EXISTS (SELECT 1 FROM messages m WHERE m.thread_id = j.value))`,
      args,
    },
    {
      sql: `DELETE FROM threads WHERE id IN (SELECT value FROM json_each(?) j
        WHERE NOT EXISTS (SELECT 1 FROM messages m WHERE m.thread_id = j.value))`,
      args,
    },
  ];
}

/** An entry of a delivery log. */
export interface OldDelivery {
  id: string;
  mayGo: boolean;
}

const DELIVERY_OVER = `status <> 'pending'
  AND COALESCE(last_attempt_at, created_at) < ${cutoff("event_days", "webhook_deliveries.sender_id")}`;

/** Returns entries of delivery logs, oldest first. `mayGo` is true for those that ended before their retention. */
export async function oldDeliveries(db: Db, range: IdRange, age: Age): Promise<OldDelivery[]> {
  const rows = await db.all<{ id: string; may_go: number }>(
    `SELECT id, ${DELIVERY_OVER} AS may_go
      FROM webhook_deliveries WHERE id > ? AND id < ? ORDER BY id LIMIT ?`,
    [...ageArgs(age), range.after, range.below, range.limit],
  );
  return rows.map((row) => ({ id: row.id, mayGo: row.may_go === 1 }));
}

/** Returns the statement that deletes log entries that ended before their retention. One that was replayed since stays. */
export function deleteDeliveries(ids: readonly string[], age: Age): Statement {
  return {
    sql: `DELETE FROM webhook_deliveries WHERE id IN (SELECT value FROM json_each(?)) AND ${DELIVERY_OVER}`,
    args: [JSON.stringify(ids), ...ageArgs(age)],
  };
}
