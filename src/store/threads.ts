import type { Db, Statement } from "./client.ts";

/** A conversation of one inbox. Times are milliseconds. */
export interface Thread {
  id: string;
  inboxId: string;
  senderId: string;
  subject: string;
  preview: string;
  participants: string[];
  messageCount: number;
  hasAttachments: boolean;
  lastMessageId: string | null;
  lastMessageAt: number;
  lastInboundAt: number | null;
  createdAt: number;
  updatedAt: number;
}

/** One message as it moves its thread. */
export interface ThreadStep {
  threadId: string;
  inboxId: string;
  senderId: string;
  messageId: string;
  subject: string;
  preview: string;
  /** Addresses that take part in it, without the inbox. */
  participants: readonly string[];
  hasAttachments: boolean;
  inbound: boolean;
  at: number;
}

/** Addresses a thread shows at most: a mail with thousands of recipients must not grow the row without bound. */
const MAX_PARTICIPANTS = 50;

/** Makes the thread with its first message, or moves it on by one. Changes nothing in another project's thread. */
export function stepThread(step: ThreadStep): Statement {
  const participants = JSON.stringify([...new Set(step.participants)].slice(0, MAX_PARTICIPANTS));
  const lastInbound = step.inbound ? step.at : null;
  return {
    sql: `INSERT INTO threads (id, sender_id, inbox_id, subject, preview, participants, message_count,
        has_attachments, last_message_id, last_message_at, last_inbound_at, created_at, updated_at)
      VALUES (?, ?, ?, ?, ?, ?, 1, ?, ?, ?, ?, ?, ?)
      ON CONFLICT (id) DO UPDATE SET
        preview = excluded.preview,
        participants = (SELECT json_group_array(value) FROM (
          SELECT value FROM json_each(threads.participants)
          UNION SELECT value FROM json_each(excluded.participants) LIMIT ${MAX_PARTICIPANTS})),
        message_count = message_count + 1,
        has_attachments = max(has_attachments, excluded.has_attachments),
        last_message_id = excluded.last_message_id,
        last_message_at = max(last_message_at, excluded.last_message_at),
        last_inbound_at = COALESCE(excluded.last_inbound_at, last_inbound_at),
        updated_at = excluded.updated_at
      WHERE threads.sender_id = excluded.sender_id`,
    args: [
      step.threadId,
      step.senderId,
      step.inboxId,
      step.subject,
      step.preview,
      participants,
      Number(step.hasAttachments),
      step.messageId,
      step.at,
      lastInbound,
      step.at,
      step.at,
    ],
  };
}

interface ThreadRow {
  id: string;
  inbox_id: string;
  sender_id: string;
  subject: string;
  preview: string;
  participants: string;
  message_count: number;
  has_attachments: number;
  last_message_id: string | null;
  last_message_at: number;
  last_inbound_at: number | null;
  created_at: number;
  updated_at: number;
}

const COLUMNS = `id, inbox_id, sender_id, subject, preview, participants, message_count, has_attachments,
  last_message_id, last_message_at, last_inbound_at, created_at, updated_at`;

function toThread(row: ThreadRow): Thread {
  return {
    id: row.id,
    inboxId: row.inbox_id,
    senderId: row.sender_id,
    subject: row.subject,
    preview: row.preview,
    participants: JSON.parse(row.participants),
    messageCount: row.message_count,
    hasAttachments: row.has_attachments === 1,
    lastMessageId: row.last_message_id,
    lastMessageAt: row.last_message_at,
    lastInboundAt: row.last_inbound_at,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
  };
}

/** One thread of the project; null where it has none of that id. */
export async function getThread(db: Db, senderId: string, id: string): Promise<Thread | null> {
  const row = await db.first<ThreadRow>(`SELECT ${COLUMNS} FROM threads WHERE id = ? AND sender_id = ?`, [
    id,
    senderId,
  ]);
  return row === null ? null : toThread(row);
}

/** A place in the list of threads by last activity. */
export interface ThreadPosition {
  lastMessageAt: number;
  id: string;
}

/** One page of an inbox's threads, last active first: at most `limit` threads behind `after`. */
export async function listThreads(
  db: Db,
  senderId: string,
  inboxId: string,
  after: ThreadPosition | null,
  limit: number,
): Promise<Thread[]> {
  const rows = await db.all<ThreadRow>(
    `SELECT ${COLUMNS} FROM threads
      WHERE inbox_id = ? AND sender_id = ? AND (last_message_at, id) < (?, ?)
      ORDER BY last_message_at DESC, id DESC LIMIT ?`,
    [inboxId, senderId, after?.lastMessageAt ?? Number.MAX_SAFE_INTEGER, after?.id ?? "", limit],
  );
  return rows.map(toThread);
}

/** Ids of a thread's messages, newest first: at most `limit` below `before`. */
export async function listThreadMessageIds(
  db: Db,
  senderId: string,
  threadId: string,
  before: string | null,
  limit: number,
): Promise<string[]> {
  const rows = await db.all<{ id: string }>(
    // Every id sorts below "msg~".
    "SELECT id FROM messages WHERE thread_id = ? AND sender_id = ? AND id < ? ORDER BY id DESC LIMIT ?",
    [threadId, senderId, before ?? "msg~", limit],
  );
  return rows.map((row) => row.id);
}

/** Id of the thread's last message, inbound ones before all others; null for a thread without messages. */
export async function lastMessageId(db: Db, senderId: string, threadId: string): Promise<string | null> {
  const row = await db.first<{ id: string }>(
    "SELECT id FROM messages WHERE thread_id = ? AND sender_id = ? ORDER BY direction = 'inbound' DESC, id DESC LIMIT 1",
    [threadId, senderId],
  );
  return row?.id ?? null;
}

/** How many messages the project has sent in a thread since an id's time. */
export async function countSentSince(
  db: Db,
  senderId: string,
  threadId: string,
  floor: string,
): Promise<number> {
  const row = await db.first<{ n: number }>(
    "SELECT count(*) AS n FROM messages WHERE thread_id = ? AND sender_id = ? AND id >= ? AND direction = 'outbound'",
    [threadId, senderId, floor],
  );
  return row?.n ?? 0;
}

/** The thread of the newest message of the inbox whose Message-ID is among `rfcMessageIds`; null where there is none. */
export async function findThread(
  db: Db,
  senderId: string,
  inboxId: string,
  rfcMessageIds: readonly string[],
): Promise<string | null> {
  if (rfcMessageIds.length === 0) return null;
  // The plus signs keep the planner from walking all of the project's messages, newest first, for the order's sake.
  const row = await db.first<{ thread_id: string }>(
    `SELECT thread_id FROM messages
      WHERE inbox_id = ? AND +sender_id = ? AND rfc_message_id IN (SELECT value FROM json_each(?)) AND thread_id IS NOT NULL
      ORDER BY +id DESC LIMIT 1`,
    [inboxId, senderId, JSON.stringify(rfcMessageIds)],
  );
  return row?.thread_id ?? null;
}
