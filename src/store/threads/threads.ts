import { splitAddress } from "../../core/addresses.ts";
import { isAsciiText, firstChars } from "../../core/text.ts";
import { idCeiling, idFloor } from "../../core/ids.ts";
import { DELETED_AFTER_MS, type Folder } from "../../core/messages/mailbox.ts";
import { MAX_SUBJECT_CHARS } from "../../core/messages/send-item.ts";
import type { Db, Statement } from "../engine/client.ts";
import { flag, inverseFlag, json, plain, table } from "../engine/columns.ts";
import { reorderableText, rowsStatement, rowsText } from "../sql/rows-text.ts";
import { standingInbox } from "./inboxes.ts";
import { foldCase } from "../matching/folding.ts";
import { addressPatterns } from "../matching/same-address.ts";

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
  /** False if an inbound message has arrived since the client marked the thread as read. */
  read: boolean;
  archived: boolean;
  labels: readonly string[];
  /** A member of the account. */
  assigneeId: string | null;
  folder: Folder;
  /** The time at which the thread leaves its folder: a snoozed one comes back, others are deleted. Null: it stays. */
  folderUntil: number | null;
  createdAt: number;
  updatedAt: number;
}

/** The changes that one message makes to its thread. */
export interface ThreadStep {
  threadId: string;
  inboxId: string;
  senderId: string;
  messageId: string;
  subject: string;
  preview: string;
  /** Addresses that take part in it, without the inbox. They are read only until the thread shows enough. */
  participants: Iterable<string>;
  hasAttachments: boolean;
  inbound: boolean;
  at: number;
}

/**
 * Maximum number of addresses that a thread shows: a message with thousands of recipients must not grow the row
 * without bound.
 */
export const MAX_PARTICIPANTS = 50;
/**
 * Maximum characters of an address that is shown. A header may have longer ones, which mail cannot be sent to.
 */
const MAX_PARTICIPANT_CHARS = 320;

/**
 * Returns the statement that makes a thread with its first message, or updates it with the next one. Participants stay
 * in the order in which they came, each once in any case. A message older than the last one does not become the last
 * and sets no time back. It changes nothing in another project's thread. If the inbox is gone, the write is undone
 * with the guard `inbox_deleted`.
 */
export function stepThread(step: ThreadStep): Statement {
  const participants = participantsShown(step.participants);
  const args = [
    step.threadId,
    step.senderId,
    step.inboxId,
    firstChars(step.subject, MAX_SUBJECT_CHARS),
    step.preview,
    JSON.stringify(participants),
    Number(step.hasAttachments),
    step.messageId,
    step.at,
    step.inbound ? step.at : null,
  ];
  const forms = participants.map(formsOf);
  if (forms.every(({ length }) => length === 0)) return rowsStatement(STEP, args);
  return rowsStatement(STEP_BEYOND_ASCII, [...args, JSON.stringify(forms)]);
}

/**
 * Returns the patterns of a participant beyond ASCII. Undeliverable addresses have none and are compared as
 * written. A stranger may name fifty, and each would be compared with all of the thread's.
 */
function formsOf(email: string): string[] {
  return isAsciiText(email) || splitAddress(email) === null ? [] : addressPatterns(email);
}

const COLUMNS_STEPPED = `id, sender_id, inbox_id, subject, preview, participants, message_count,
    has_attachments, last_message_id, last_message_at, last_inbound_at, created_at, updated_at, unread`;
const ROW_STEPPED = `(?1, ?2, ${standingInbox("?3")}, ?4, ?5, ?6, 1, ?7, ?8, ?9, ?10, ?9, ?9, ?10 IS NOT NULL)`;

/**
 * The condition that the message is the thread's last. If different processes stored two in one millisecond, the later
 * id is last, as in every list.
 */
const IS_LAST =
  "(excluded.last_message_at, excluded.last_message_id) >= (last_message_at, COALESCE(last_message_id, ''))";

/**
 * The folder after a message. An answer ends a snooze, any message takes the thread out of the trash, and spam stays spam for
 * another thirty days.
 */
const STAYS_PUT = "folder = 'spam' OR (folder = 'snoozed' AND excluded.unread = 0)";
const UNTIL = `CASE WHEN folder = 'spam' THEN max(folder_until, excluded.updated_at + ${DELETED_AFTER_MS})
      WHEN ${STAYS_PUT} THEN folder_until END`;

/**
 * Returns the update of an existing thread. @param isNew the condition that the thread does not show a participant
 * (`value`) yet
 */
function moved(isNew: string): string {
  return ` ON CONFLICT (id) DO UPDATE SET
    subject = CASE subject WHEN '' THEN excluded.subject ELSE subject END,
    preview = CASE WHEN ${IS_LAST} THEN excluded.preview ELSE preview END,
    participants = (SELECT json_group_array(value) FROM (
      SELECT value, 0 AS late, key FROM json_each(threads.participants)
      UNION ALL SELECT value, 1, key FROM json_each(excluded.participants) WHERE ${isNew}
      ORDER BY late, key LIMIT ${MAX_PARTICIPANTS})),
    message_count = message_count + 1,
    has_attachments = max(has_attachments, excluded.has_attachments),
    last_message_id = CASE WHEN ${IS_LAST} THEN excluded.last_message_id ELSE last_message_id END,
    last_message_at = max(last_message_at, excluded.last_message_at),
    last_inbound_at = COALESCE(max(last_inbound_at, excluded.last_inbound_at), last_inbound_at, excluded.last_inbound_at),
    updated_at = max(updated_at, excluded.updated_at),
    unread = max(unread, excluded.unread),
    archived = CASE excluded.unread WHEN 1 THEN 0 ELSE archived END,
    folder = CASE WHEN ${STAYS_PUT} THEN folder ELSE 'inbox' END,
    folder_until = ${UNTIL}
  WHERE threads.sender_id = excluded.sender_id`;
}

/** `lower` knows the case of ASCII only, which is enough for most messages. */
const IS_NEW = "lower(value) NOT IN (SELECT lower(value) FROM json_each(threads.participants))";
const STEP = rowsText("threads", COLUMNS_STEPPED, ROW_STEPPED, { after: moved(IS_NEW) });
/** The text for addresses beyond ASCII. The patterns of each participant are a list after the row's own parameters. */
const STEP_BEYOND_ASCII = reorderableText(
  "threads",
  `INSERT INTO threads (${COLUMNS_STEPPED}) VALUES ${ROW_STEPPED}${moved(
    `${IS_NEW} AND NOT EXISTS (SELECT 1 FROM json_each(?11, '$[' || json_each.key || ']') form,
          json_each(threads.participants) there WHERE there.value GLOB form.value)`,
  )}`,
);

function participantsShown(participants: Iterable<string>): string[] {
  const shown = new Map<string, string>();
  for (const email of participants) {
    const key = foldCase(email);
    if (email.length <= MAX_PARTICIPANT_CHARS && !shown.has(key)) shown.set(key, email);
    if (shown.size === MAX_PARTICIPANTS) break;
  }
  return [...shown.values()];
}

export const THREADS = table<Thread>("threads", {
  id: plain("id"),
  inboxId: plain("inbox_id"),
  senderId: plain("sender_id"),
  subject: plain("subject"),
  preview: plain("preview"),
  participants: json("participants"),
  messageCount: plain("message_count"),
  hasAttachments: flag("has_attachments"),
  lastMessageId: plain("last_message_id"),
  lastMessageAt: plain("last_message_at"),
  lastInboundAt: plain("last_inbound_at"),
  read: inverseFlag("unread"),
  archived: flag("archived"),
  labels: json("labels"),
  // A removed member is taken off in steps. Until then, and after a transfer, the id is read as nobody.
  assigneeId: {
    ...plain("assignee_id"),
    columns: ["(SELECT id FROM members WHERE members.id = threads.assignee_id) AS assignee_id"],
  },
  folder: plain("folder"),
  folderUntil: plain("folder_until"),
  createdAt: plain("created_at"),
  updatedAt: plain("updated_at"),
});

/** Returns a thread of the project; null if it has none with that id. */
export function getThread(db: Db, senderId: string, id: string): Promise<Thread | null> {
  return THREADS.first(db, "WHERE id = ? AND sender_id = ?", [id, senderId]);
}

/** Returns ids of a thread's messages, newest first: at most `limit` below `before`. */
export async function listThreadMessageIds(
  db: Db,
  senderId: string,
  threadId: string,
  before: string | null,
  limit: number,
): Promise<string[]> {
  const rows = await db.all<{ id: string }>(
    "SELECT id FROM messages WHERE thread_id = ? AND sender_id = ? AND id < ? ORDER BY id DESC LIMIT ?",
    [threadId, senderId, before ?? idCeiling("msg"), limit],
  );
  return rows.map((row) => row.id);
}

/**
 * Returns the id of the message that a reply to the thread answers: the last inbound one, or the last one; null if the
 * thread has no messages.
 */
export async function lastMessageId(db: Db, senderId: string, threadId: string): Promise<string | null> {
  const thread = await getThread(db, senderId, threadId);
  if (thread === null) return null;
  const last = (condition: string, below: string) =>
    db.first<{ id: string }>(
      `SELECT id FROM messages WHERE thread_id = ? AND sender_id = ? AND id < ? ${condition} ORDER BY id DESC LIMIT 1`,
      [threadId, senderId, below],
    );
  // The thread's row has the time of the last inbound message, so thousands of our replies after it are not read.
  const { lastInboundAt } = thread;
  const inbound =
    lastInboundAt === null
      ? null
      : await last("AND direction = 'inbound'", idFloor("msg", lastInboundAt + 1));
  return (inbound ?? (await last("", idCeiling("msg"))))?.id ?? null;
}

/**
 * The query for the thread that Message-IDs (?3, a JSON list) lead to in an inbox (?1) of a project (?2). If there are
 * several threads, the last id wins: callers put the nearest parent last. An id leads to the thread of the first
 * message that carries it, because a later one may be forged to divert replies. If no message carries it, it leads to
 * the thread of the first message that named it.
 */
export const THREAD_OF_IDS =
  // Rowids follow the order of insertion, so the first of any number of messages with one id is found at once. The
  // plus sign keeps the planner from reading the project's messages in that order.
  `SELECT thread_id FROM (
      SELECT named.key AS place, COALESCE(
        (SELECT m.thread_id FROM messages m WHERE m.inbox_id = ?1 AND m.rfc_message_id = named.value
            AND +m.sender_id = ?2 AND m.thread_id IS NOT NULL ORDER BY m.rowid LIMIT 1),
        (SELECT r.thread_id FROM thread_references r WHERE r.inbox_id = ?1 AND r.rfc_message_id = named.value
            AND r.sender_id = ?2)) AS thread_id
        FROM json_each(?3) named)
    WHERE thread_id IS NOT NULL ORDER BY place DESC LIMIT 1`;

/** Returns the thread that Message-IDs lead to in an inbox, the nearest parent last; null if they lead to none. */
export async function findThread(
  db: Db,
  senderId: string,
  inboxId: string,
  rfcMessageIds: readonly string[],
): Promise<string | null> {
  if (rfcMessageIds.length === 0) return null;
  const args = [inboxId, senderId, JSON.stringify(rfcMessageIds)];
  const row = await db.first<{ thread_id: string }>(THREAD_OF_IDS, args);
  return row?.thread_id ?? null;
}

/** A thread with its inbox and project. */
export interface ThreadPlace {
  senderId: string;
  inboxId: string;
  threadId: string;
}

/** Maximum number of ids remembered for one message, the nearest ones: a message may name any number. */
export const MAX_REMEMBERED_REFERENCES = 20;

/**
 * Maximum number of ids remembered for a thread. A sender could keep a thread alive, while its messages are deleted
 * by retention, and fill the table. Messages also name the thread's first messages, so these ids are enough.
 */
export const MAX_THREAD_REFERENCES = 1000;

/**
 * Returns the statement that remembers the Message-IDs that a message names, nearest parent last, if no message of the
 * inbox has them. Messages with those ids, and others that name them, then join the thread. An id keeps its first
 * thread.
 */
export function rememberReferences(place: ThreadPlace, rfcMessageIds: readonly string[]): Statement[] {
  if (rfcMessageIds.length === 0) return [];
  const { senderId, inboxId, threadId } = place;
  const nearest = rfcMessageIds.slice(-MAX_REMEMBERED_REFERENCES);
  return [rowsStatement(REMEMBER, [inboxId, senderId, threadId, JSON.stringify(nearest)])];
}

const REMEMBER = reorderableText(
  "thread_references",
  `INSERT INTO thread_references (inbox_id, rfc_message_id, sender_id, thread_id)
    SELECT ?1, value, ?2, ?3 FROM json_each(?4)
      WHERE NOT EXISTS (SELECT 1 FROM messages WHERE inbox_id = ?1 AND rfc_message_id = value)
        AND (SELECT count(*) FROM (SELECT 1 FROM thread_references WHERE thread_id = ?3
          LIMIT ${MAX_THREAD_REFERENCES})) < ${MAX_THREAD_REFERENCES}
    ON CONFLICT DO NOTHING`,
);
