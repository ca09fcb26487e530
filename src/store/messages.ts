import type { Mailbox } from "../core/addresses.ts";
import type { MessageStatus } from "../core/states.ts";
import { storedMailbox } from "./mailbox.ts";
import { insertAttachment, type NewAttachment } from "./attachments.ts";
import { ConstraintError, type Db, type Guard, type Statement, type Value } from "./engine/client.ts";
import { numbered, type RowsText, rowsStatement, rowsText } from "./engine/rows-text.ts";
import type { NewContent } from "./contents/content-bytes.ts";
import { takeContent } from "./contents/contents.ts";

export type Direction = "inbound" | "outbound";

export interface Tag {
  name: string;
  value: string;
}

/** A message as lists and workers need it, without its content. Times are milliseconds. */
export interface Message {
  id: string;
  senderId: string;
  direction: Direction;
  status: MessageStatus;
  from: Mailbox;
  to: Mailbox[];
  cc: Mailbox[];
  bcc: Mailbox[];
  replyTo: Mailbox[];
  subject: string;
  tags: Tag[];
  /** Header Message-ID, with angle brackets. */
  rfcMessageId: string | null;
  inReplyTo: string | null;
  threadId: string | null;
  inboxId: string | null;
  templateId: string | null;
  scheduledAt: number | null;
  sentAt: number | null;
  /** Octets: of a received mail its bytes and our trace fields, of a sent one its bodies and attachments. */
  size: number;
  testMode: boolean;
  trackOpens: boolean;
  trackClicks: boolean;
  unsubscribeLink: boolean;
  createdAt: number;
}

/** What stands beside a message: bodies, headers, and what is known of how it came. */
export interface MessageContent {
  html: string | null;
  text: string | null;
  headers: Record<string, string>;
  data: Record<string, unknown> | null;
  envelope: Record<string, unknown> | null;
  auth: Record<string, unknown> | null;
  /** Of received mail, its new part. */
  replyText: string | null;
  /** Whether html and text are what the message's template became. */
  rendered: boolean;
  /** The fields that we put in front of a received mail, where `headers` does not have them. */
  trace: string | null;
}

/** The same on its way into the store. */
export interface NewMessageContent {
  /** Html and text, and of received mail its header fields; null where there are none. */
  body: NewContent | null;
  /** The fields that a send asks for. */
  headers?: Record<string, string>;
  data?: Record<string, unknown> | null;
  envelope?: Record<string, unknown> | null;
  auth?: Record<string, unknown> | null;
  trace?: string | null;
  /** A received mail as it came, below `trace`. */
  raw?: NewContent | null;
}

interface MessageRow {
  id: string;
  sender_id: string;
  direction: Direction;
  status: MessageStatus;
  from_email: string;
  from_name: string | null;
  to_list: string;
  cc_list: string;
  bcc_list: string;
  reply_to_list: string;
  subject: string;
  tags: string;
  rfc_message_id: string | null;
  in_reply_to: string | null;
  thread_id: string | null;
  inbox_id: string | null;
  template_id: string | null;
  scheduled_at: number | null;
  sent_at: number | null;
  size: number;
  test_mode: number;
  track_opens: number;
  track_clicks: number;
  unsubscribe_link: number;
  created_at: number;
}

const MESSAGE_COLUMNS = `id, sender_id, direction, status, from_email, from_name, to_list, cc_list, bcc_list,
  reply_to_list, subject, tags, rfc_message_id, in_reply_to, thread_id, inbox_id, template_id, scheduled_at,
  sent_at, size, test_mode, track_opens, track_clicks, unsubscribe_link, created_at`;

function toMessage(row: MessageRow): Message {
  return {
    id: row.id,
    senderId: row.sender_id,
    direction: row.direction,
    status: row.status,
    from: storedMailbox(row.from_email, row.from_name),
    to: JSON.parse(row.to_list),
    cc: JSON.parse(row.cc_list),
    bcc: JSON.parse(row.bcc_list),
    replyTo: JSON.parse(row.reply_to_list),
    subject: row.subject,
    tags: JSON.parse(row.tags),
    rfcMessageId: row.rfc_message_id,
    inReplyTo: row.in_reply_to,
    threadId: row.thread_id,
    inboxId: row.inbox_id,
    templateId: row.template_id,
    scheduledAt: row.scheduled_at,
    sentAt: row.sent_at,
    size: row.size,
    testMode: row.test_mode === 1,
    trackOpens: row.track_opens === 1,
    trackClicks: row.track_clicks === 1,
    unsubscribeLink: row.unsubscribe_link === 1,
    createdAt: row.created_at,
  };
}

/** Those of its row, but the last. */
const VALUES = `?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23, ?24`;
const COLUMNS_BEFORE = 24;
const INSERT = rowsText("messages", MESSAGE_COLUMNS, `(${VALUES}, ?25)`);
/** By the guard's text, of which there are few. */
const GUARDED = new Map<string, RowsText>();

/** The column takes no NULL. A statement of its own for the guard would cost twice as much. */
function guardedText({ sql }: Guard): RowsText {
  const known = GUARDED.get(sql);
  if (known !== undefined) return known;
  const value = numbered(`CASE WHEN ${sql} THEN ? END`, COLUMNS_BEFORE + 1);
  const text = rowsText("messages", MESSAGE_COLUMNS, `(${VALUES}, ${value})`);
  GUARDED.set(sql, text);
  return text;
}

/** Stores what lists show and search of a message. It waits for the index: `indexWaiting` enters it. */
function insertUnlessBarred(message: Message, guard: Guard | null): Statement {
  const args: Value[] = [
    message.id,
    message.senderId,
    message.direction,
    message.status,
    message.from.email,
    message.from.name ?? null,
    JSON.stringify(message.to),
    JSON.stringify(message.cc),
    JSON.stringify(message.bcc),
    JSON.stringify(message.replyTo),
    message.subject,
    JSON.stringify(message.tags),
    message.rfcMessageId,
    message.inReplyTo,
    message.threadId,
    message.inboxId,
    message.templateId,
    message.scheduledAt,
    message.sentAt,
    message.size,
    Number(message.testMode),
    Number(message.trackOpens),
    Number(message.trackClicks),
    Number(message.unsubscribeLink),
  ];
  if (guard === null) return rowsStatement(INSERT, [...args, message.createdAt]);
  const text = guardedText(guard);
  args.push(...guard.args, message.createdAt);
  return guard.apart === true ? rowsStatement(text, args) : { sql: text.sql, args };
}

/** Whether a write was undone since the guard of a message that it stores did not hold. */
export function isMessageBarred(error: unknown): boolean {
  return error instanceof ConstraintError && error.notNull === "messages.created_at";
}

const INSERT_CONTENT = rowsText(
  "message_content",
  "message_id, body, headers, data, envelope, auth, trace, raw",
  "(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
);

/**
 * Statements that store a message with its content and attachments. Large contents have been written ahead.
 * @param guard where it does not hold the whole write is undone, and `isMessageBarred` tells so
 */
export function insertMessage(
  message: Message,
  content: NewMessageContent,
  attachments: readonly NewAttachment[],
  guard: Guard | null = null,
): Statement[] {
  const { body, headers = {}, data = null, envelope = null, auth = null, trace = null, raw = null } = content;
  const contents = [body, raw, ...attachments.map((attachment) => attachment.content)];
  return [
    insertUnlessBarred(message, guard),
    ...contents.flatMap((kept) => (kept === null ? [] : [takeContent(kept, message.createdAt)])),
    rowsStatement(INSERT_CONTENT, [
      message.id,
      body?.key ?? null,
      JSON.stringify(headers),
      data === null ? null : JSON.stringify(data),
      envelope === null ? null : JSON.stringify(envelope),
      auth === null ? null : JSON.stringify(auth),
      trace,
      raw?.key ?? null,
    ]),
    ...attachments.map((attachment, ord) => insertAttachment(message.id, attachment, ord)),
  ];
}

/** One message of the project; null where it has none of that id. */
export async function getMessage(db: Db, senderId: string, id: string): Promise<Message | null> {
  const row = await db.first<MessageRow>(
    `SELECT ${MESSAGE_COLUMNS} FROM messages WHERE id = ? AND sender_id = ?`,
    [id, senderId],
  );
  return row === null ? null : toMessage(row);
}
