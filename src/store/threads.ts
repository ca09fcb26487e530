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

/** One thread of the project; null where it has none of that id. */
export async function getThread(db: Db, senderId: string, id: string): Promise<Thread | null> {
  const row = await db.first<ThreadRow>(
    `SELECT id, inbox_id, sender_id, subject, preview, participants, message_count, has_attachments,
      last_message_id, last_message_at, last_inbound_at, created_at, updated_at
      FROM threads WHERE id = ? AND sender_id = ?`,
    [id, senderId],
  );
  if (row === null) return null;
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

/** The thread of the newest message of the inbox whose Message-ID is among `rfcMessageIds`; null where there is none. */
export async function findThread(
  db: Db,
  senderId: string,
  inboxId: string,
  rfcMessageIds: readonly string[],
): Promise<string | null> {
  if (rfcMessageIds.length === 0) return null;
  const row = await db.first<{ thread_id: string }>(
    `SELECT thread_id FROM messages
      WHERE inbox_id = ? AND sender_id = ? AND rfc_message_id IN (SELECT value FROM json_each(?)) AND thread_id IS NOT NULL
      ORDER BY id DESC LIMIT 1`,
    [inboxId, senderId, JSON.stringify(rfcMessageIds)],
  );
  return row?.thread_id ?? null;
}
