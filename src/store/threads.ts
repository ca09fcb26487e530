import { splitAddress } from "../core/addresses.ts";
import { isAsciiText } from "../core/ascii.ts";
import { firstChars } from "../core/first-chars.ts";
import { idCeiling, idFloor } from "../core/ids.ts";
import { MAX_SUBJECT_CHARS } from "../core/send-item.ts";
import type { Db, Guard, Statement } from "./engine/client.ts";
import { movableText, rowsStatement, rowsText } from "./engine/rows-text.ts";
import { standingInbox } from "./inboxes.ts";
import { foldCase } from "./search/folding.ts";
import { addressPatterns } from "./search/same-address.ts";

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
  /** Addresses that take part in it, without the inbox; asked for as long as one more is shown. */
  participants: Iterable<string>;
  hasAttachments: boolean;
  inbound: boolean;
  at: number;
}

/** Addresses a thread shows at most: a mail with thousands of recipients must not grow the row without bound. */
export const MAX_PARTICIPANTS = 50;
/** Characters of an address that is shown; a header may hold longer ones, which no mail can be sent to. */
const MAX_PARTICIPANT_CHARS = 320;

/**
 * Makes the thread with its first message, or moves it on by one. Participants stay in the order in which they came,
 * each once in any case. A mail from before the last one, which was longer on its way here, does not become the last and
 * puts no time back. Changes nothing in another project's thread. Breaks NOT NULL where the inbox is gone (`isInboxGone`).
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
 * The patterns of a participant beyond ASCII. What no mail can be sent to has none, and is told apart as it is written: a
 * stranger may name fifty such texts of any letters, of which each would be compared with all of the thread's.
 */
function formsOf(email: string): string[] {
  return isAsciiText(email) || splitAddress(email) === null ? [] : addressPatterns(email);
}

const COLUMNS_STEPPED = `id, sender_id, inbox_id, subject, preview, participants, message_count,
    has_attachments, last_message_id, last_message_at, last_inbound_at, created_at, updated_at`;
const ROW_STEPPED = `(?1, ?2, ${standingInbox("?3")}, ?4, ?5, ?6, 1, ?7, ?8, ?9, ?10, ?9, ?9)`;

/** Of two messages of one millisecond, which different processes may have stored, the last is that of the later id, as in every list. */
const IS_LAST =
  "(excluded.last_message_at, excluded.last_message_id) >= (last_message_at, COALESCE(last_message_id, ''))";

/** What becomes of a thread that is there. `isNew`: of a participant named (`value`), whether the thread shows him not. */
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
    updated_at = max(updated_at, excluded.updated_at)
  WHERE threads.sender_id = excluded.sender_id`;
}

/** `lower` knows the case of ASCII alone, which is enough for most mails. */
const IS_NEW = "lower(value) NOT IN (SELECT lower(value) FROM json_each(threads.participants))";
const STEP = rowsText("threads", COLUMNS_STEPPED, ROW_STEPPED, { after: moved(IS_NEW) });
/** Where addresses beyond ASCII take part: the patterns of each participant are in the list behind the row's own parameters. */
const STEP_BEYOND_ASCII = movableText(
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

/** A row of the table. */
export interface ThreadRow {
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

/** Its columns. */
export const THREAD_COLUMNS = `id, inbox_id, sender_id, subject, preview, participants, message_count, has_attachments,
  last_message_id, last_message_at, last_inbound_at, created_at, updated_at`;

/** The thread that a row is. */
export function toThread(row: ThreadRow): Thread {
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
  const row = await db.first<ThreadRow>(
    `SELECT ${THREAD_COLUMNS} FROM threads WHERE id = ? AND sender_id = ?`,
    [id, senderId],
  );
  return row === null ? null : toThread(row);
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
    "SELECT id FROM messages WHERE thread_id = ? AND sender_id = ? AND id < ? ORDER BY id DESC LIMIT ?",
    [threadId, senderId, before ?? idCeiling("msg"), limit],
  );
  return rows.map((row) => row.id);
}

/** Id of the message that an answer to the thread answers: the last inbound one, else the last; null without messages. */
export async function lastMessageId(db: Db, senderId: string, threadId: string): Promise<string | null> {
  const thread = await getThread(db, senderId, threadId);
  if (thread === null) return null;
  const last = (condition: string, below: string) =>
    db.first<{ id: string }>(
      `SELECT id FROM messages WHERE thread_id = ? AND sender_id = ? AND id < ? ${condition} ORDER BY id DESC LIMIT 1`,
      [threadId, senderId, below],
    );
  // The thread knows when that was: a row of thousands of answers of ours is not looked through for it.
  const { lastInboundAt } = thread;
  const inbound =
    lastInboundAt === null
      ? null
      : await last("AND direction = 'inbound'", idFloor("msg", lastInboundAt + 1));
  return (inbound ?? (await last("", idCeiling("msg"))))?.id ?? null;
}

/** Ids of a stretch of time: from `floor` on, below `ceiling`. */
export interface Span {
  floor: string;
  ceiling: string;
}

const SENT = `SELECT count(*) FROM messages
  WHERE thread_id = ? AND sender_id = ? AND id >= ? AND id < ? AND direction = 'outbound'`;

/** How many messages the project has sent in a thread in the time of a span. */
export async function countSent(db: Db, senderId: string, threadId: string, span: Span): Promise<number> {
  const args = [threadId, senderId, span.floor, span.ceiling];
  return (await db.first<{ n: number }>(`SELECT (${SENT}) AS n`, args))?.n ?? 0;
}

/** Holds while the project has sent fewer than `most` messages in a thread in the time of a span. */
export function fewSentGuard(senderId: string, threadId: string, span: Span, most: number): Guard {
  return { sql: `(${SENT}) < ?`, args: [threadId, senderId, span.floor, span.ceiling, most] };
}

/**
 * The query for the thread that Message-IDs (?3, a JSON list) lead to in an inbox (?1) of a project (?2). Of several
 * threads the one of the last id wins: callers put the nearest parent last. An id leads to the thread of the first
 * message that carries it, for a later one may be a forgery that is to draw the answers away; without one, to the thread
 * of the first that named it.
 */
export const THREAD_OF_IDS =
  // By rowid, which is the order of insertion, the first of any number of mails with one id is found at once. The plus
  // sign keeps the planner from walking the project's messages for that order's sake.
  `SELECT thread_id FROM (
      SELECT named.key AS place, COALESCE(
        (SELECT m.thread_id FROM messages m WHERE m.inbox_id = ?1 AND m.rfc_message_id = named.value
            AND +m.sender_id = ?2 AND m.thread_id IS NOT NULL ORDER BY m.rowid LIMIT 1),
        (SELECT r.thread_id FROM thread_references r WHERE r.inbox_id = ?1 AND r.rfc_message_id = named.value
            AND r.sender_id = ?2)) AS thread_id
        FROM json_each(?3) named)
    WHERE thread_id IS NOT NULL ORDER BY place DESC LIMIT 1`;

/** The thread that Message-IDs lead to in an inbox, the nearest parent last; null where they lead nowhere. */
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

/** A message's place in an inbox. */
export interface ThreadPlace {
  senderId: string;
  inboxId: string;
  threadId: string;
}

/** Ids that one message has remembered, the nearest ones: a mail may name as many as it likes. */
export const MAX_REMEMBERED_REFERENCES = 20;

/**
 * Ids that a thread has remembered at most: its messages may go by retention while it lives on, and whoever keeps it alive would fill
 * the table. A mail names the thread's first messages, too, so it joins without more.
 */
export const MAX_THREAD_REFERENCES = 1000;

/**
 * The write that remembers the Message-IDs that a message names, nearest parent last, where no message of the inbox has
 * them: the mail named, and others that name it, are to join the thread. An id named before stays with its first thread.
 */
export function rememberReferences(place: ThreadPlace, rfcMessageIds: readonly string[]): Statement[] {
  if (rfcMessageIds.length === 0) return [];
  const { senderId, inboxId, threadId } = place;
  const nearest = rfcMessageIds.slice(-MAX_REMEMBERED_REFERENCES);
  return [rowsStatement(REMEMBER, [inboxId, senderId, threadId, JSON.stringify(nearest)])];
}

const REMEMBER = movableText(
  "thread_references",
  `INSERT INTO thread_references (inbox_id, rfc_message_id, sender_id, thread_id)
    SELECT ?1, value, ?2, ?3 FROM json_each(?4)
      WHERE NOT EXISTS (SELECT 1 FROM messages WHERE inbox_id = ?1 AND rfc_message_id = value)
        AND (SELECT count(*) FROM (SELECT 1 FROM thread_references WHERE thread_id = ?3
          LIMIT ${MAX_THREAD_REFERENCES})) < ${MAX_THREAD_REFERENCES}
    ON CONFLICT DO NOTHING`,
);
