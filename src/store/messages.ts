import type { Mailbox } from "../core/addresses.ts";
import type { MessageStatus } from "../core/states.ts";
import { storedMailbox } from "./mailbox.ts";
import { insertAttachment, type NewAttachment } from "./attachments.ts";
import type { Db, Statement } from "./client.ts";

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
  size: number;
  testMode: boolean;
  trackOpens: boolean;
  trackClicks: boolean;
  unsubscribeLink: boolean;
  createdAt: number;
}

/** What stands beside a message: bodies, headers, and for inbound mail the bytes as received. */
export interface MessageContent {
  html: string | null;
  text: string | null;
  headers: Record<string, string>;
  data: Record<string, unknown> | null;
  envelope: Record<string, unknown> | null;
  auth: Record<string, unknown> | null;
  /** Of received mail, its new part; given as null, it is all of the text. */
  replyText: string | null;
  /** Whether html and text are what the message's template became. */
  rendered: boolean;
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

/** Stores what lists show and search of a message. It waits for the index: `indexWaiting` enters it. */
export function insertListed(message: Message): Statement {
  return {
    sql: `INSERT INTO messages (${MESSAGE_COLUMNS})
        VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    args: [
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
      message.createdAt,
    ],
  };
}

/**
 * Statements that store a message with its content and attachments.
 * @param raw the bytes as received
 * @param contentOf the message that keeps bodies, headers and bytes of the same mail already
 */
export function insertMessage(
  message: Message,
  content: MessageContent,
  attachments: readonly NewAttachment[],
  raw: Uint8Array | null,
  contentOf: string | null = null,
): Statement[] {
  return [
    insertListed(message),
    {
      sql: `INSERT INTO message_content (message_id, content_of, html, text, headers, data, envelope, auth, reply_text, raw)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
      args: [
        message.id,
        contentOf,
        contentOf === null ? content.html : null,
        contentOf === null ? content.text : null,
        contentOf === null ? JSON.stringify(content.headers) : "{}",
        content.data === null ? null : JSON.stringify(content.data),
        content.envelope === null ? null : JSON.stringify(content.envelope),
        content.auth === null ? null : JSON.stringify(content.auth),
        contentOf === null ? content.replyText : null,
        contentOf === null ? raw : null,
      ],
    },
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

interface ContentRow {
  html: string | null;
  text: string | null;
  headers: string;
  data: string | null;
  envelope: string | null;
  auth: string | null;
  reply_text: string | null;
  rendered: number;
  direction: Direction;
}

/** Bodies, headers and inbound facts of a message of the project; null where it has none of that id. */
export async function getContent(db: Db, senderId: string, id: string): Promise<MessageContent | null> {
  const row = await db.first<ContentRow>(
    `SELECT s.html, s.text, s.headers, c.data, c.envelope, c.auth, s.reply_text, c.rendered, m.direction
      FROM message_content c JOIN messages m ON m.id = c.message_id
        JOIN message_content s ON s.message_id = COALESCE(c.content_of, c.message_id)
      WHERE c.message_id = ? AND m.sender_id = ?`,
    [id, senderId],
  );
  if (row === null) return null;
  return {
    html: row.html,
    text: row.text,
    headers: JSON.parse(row.headers),
    data: row.data === null ? null : JSON.parse(row.data),
    envelope: row.envelope === null ? null : JSON.parse(row.envelope),
    auth: row.auth === null ? null : JSON.parse(row.auth),
    // Most received mail quotes nothing: its reply text is all of its text, and is not kept twice.
    replyText: row.direction === "inbound" ? (row.reply_text ?? row.text?.trim() ?? null) : null,
    rendered: row.rendered === 1,
  };
}

/** The bytes of an inbound message of the project as they came in; null where there are none. */
export async function getRaw(db: Db, senderId: string, id: string): Promise<Uint8Array | null> {
  const row = await db.first<{ raw: ArrayBuffer | null }>(
    `SELECT s.raw FROM message_content c JOIN messages m ON m.id = c.message_id
        JOIN message_content s ON s.message_id = COALESCE(c.content_of, c.message_id)
      WHERE c.message_id = ? AND m.sender_id = ?`,
    [id, senderId],
  );
  return row?.raw == null ? null : new Uint8Array(row.raw);
}

/** Keeps what a message's template became, the first time. Where that changes the subject, it waits for the index anew. */
export function keepRendered(
  senderId: string,
  messageId: string,
  rendered: { subject: string; html: string | null; text: string | null },
): Statement[] {
  return [
    {
      sql: `UPDATE messages SET subject = ?, position = CASE WHEN subject = ? THEN position END
        WHERE id = ? AND sender_id = ?
          AND EXISTS (SELECT 1 FROM message_content WHERE message_id = ? AND rendered = 0)`,
      args: [rendered.subject, rendered.subject, messageId, senderId, messageId],
    },
    {
      sql: "UPDATE message_content SET html = ?, text = ?, rendered = 1 WHERE message_id = ? AND rendered = 0",
      args: [rendered.html, rendered.text, messageId],
    },
  ];
}

/** Keeps the bytes of an outbound message as composed, the first time: what `capture` would have sent. */
export function keepComposed(messageId: string, raw: Uint8Array): Statement {
  return {
    sql: "UPDATE message_content SET raw = ? WHERE message_id = ? AND raw IS NULL",
    args: [raw, messageId],
  };
}
