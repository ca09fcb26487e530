import type { Mailbox } from "../../core/addresses.ts";
import type { AppliedRule } from "../../core/rules/ruling.ts";
import type { Spam } from "../../core/messages/spam.ts";
import type { Stream } from "../../core/messages/send-item.ts";
import { OPEN_TRACKING } from "../../core/messages/tracking.ts";
import type { SenderFacts, Trust } from "../../core/messages/sender.ts";
import type { Unread } from "../../core/messages/unread.ts";
import type { MessageStatus } from "../../core/messages/states.ts";
import { type EntityOf, flag, json, mailbox, oneOf, plain, table } from "../engine/columns.ts";
import { insertAttachment, type NewAttachment } from "./attachments.ts";
import type { Db, Guard, Statement, Value } from "../engine/client.ts";
import type { RowsText } from "../sql/engine.ts";
import { numbered, rowsStatement, rowsText } from "../sql/rows-text.ts";
import type { NewContent } from "../contents/content-bytes.ts";
import { storeContent } from "../contents/contents.ts";

export type Direction = "inbound" | "outbound";

export interface Tag {
  name: string;
  value: string;
}

const COLUMNS = {
  id: plain<string>("id"),
  senderId: plain<string>("sender_id"),
  direction: plain<Direction>("direction"),
  status: plain<MessageStatus>("status"),
  from: mailbox("from_email", "from_name"),
  to: json<Mailbox[]>("to_list"),
  cc: json<Mailbox[]>("cc_list"),
  bcc: json<Mailbox[]>("bcc_list"),
  replyTo: json<Mailbox[]>("reply_to_list"),
  subject: plain<string>("subject"),
  tags: json<Tag[]>("tags"),
  /** Header Message-ID, with angle brackets. */
  rfcMessageId: plain<string | null>("rfc_message_id"),
  inReplyTo: plain<string | null>("in_reply_to"),
  threadId: plain<string | null>("thread_id"),
  inboxId: plain<string | null>("inbox_id"),
  templateId: plain<string | null>("template_id"),
  /** The key that answers for a send: the one that made it, or the one that approved it. Null: the command line, or no key. */
  keyId: plain<string | null>("key_id"),
  scheduledAt: plain<number | null>("scheduled_at"),
  sentAt: plain<number | null>("sent_at"),
  /** Bytes: a received message with our trace fields, or the bodies and attachments of a sent one. */
  size: plain<number>("size"),
  testMode: flag("test_mode"),
  trackOpens: oneOf("track_opens", OPEN_TRACKING),
  trackClicks: flag("track_clicks"),
  unsubscribeLink: flag("unsubscribe_link"),
  /** The topic that its unsubscribe link leaves. */
  topicId: plain<string | null>("topic_id"),
  stream: plain<Stream>("stream"),
  /** The project's setting when the message was posted, so that a retry is the same message. */
  textFromHtml: flag("text_from_html"),
  /** True until the content has gone that goes once every recipient is final. */
  contentEnds: flag("content_ends"),
  /** How far the sender of a received message is trusted. Null: unknown, or a sent message. */
  trust: plain<Trust | null>("trust"),
  /** The domain in whose name a forward leaves; null: that of its From. */
  viaDomain: plain<string | null>("via_domain"),
  createdAt: plain<number>("created_at"),
};

/** A message as lists and workers need it, without its content. Times are milliseconds. */
export type Message = EntityOf<typeof COLUMNS>;

/** The table of messages. A field that is added to `COLUMNS` is stored and read. */
export const MESSAGES = table<Message>("messages", COLUMNS);

/**
 * SQL for the domain in whose name a message `m` leaves: that of its From, or of the inbox that forwards it. Addresses of ours have one
 * `@` (RFC 5322 §3.2.3 dot-atom).
 */
export const FROM_DOMAIN = "COALESCE(m.via_domain, substr(m.from_email, instr(m.from_email, '@') + 1))";

/**
 * SQL for whether an outbound message was submitted whole. Then `raw` of its content `c` is what was submitted, and
 * `envelope` tells how it came. Other outbound messages have no envelope.
 */
export const IS_WHOLE = "(c.envelope IS NOT NULL)";

/** Fields that only a send sets, as a received message has them. */
export const NOT_SENT = {
  templateId: null,
  keyId: null,
  scheduledAt: null,
  sentAt: null,
  trackOpens: false,
  trackClicks: false,
  unsubscribeLink: false,
  topicId: null,
  stream: "transactional",
  textFromHtml: false,
  contentEnds: false,
  viaDomain: null,
} satisfies Partial<Message>;

/** The findings about a message when it arrived, apart from its authentication. */
export interface Arrived {
  /** The verdict of the spam filter; null if there is none. */
  spam: Spam | null;
  /** The rules that it met, in their order. */
  rules?: readonly AppliedRule[];
  /** Missing in messages from before it was stored. */
  sender?: SenderFacts;
  /** Why something of it was not read; null or left out: all was. */
  unread?: Unread | null;
}

/** The content of a message: bodies, headers, and how it came. */
export interface MessageContent {
  html: string | null;
  text: string | null;
  headers: Record<string, string>;
  data: Record<string, unknown> | null;
  envelope: Record<string, unknown> | null;
  auth: Record<string, unknown> | null;
  arrival: Arrived | null;
  /** The new part of a received message, without what it quotes. */
  replyText: string | null;
  /** True if html and text were rendered from the message's template. */
  rendered: boolean;
  /** Trace fields that we put in front of a received message, if `headers` does not have them. */
  trace: string | null;
}

export interface NewMessageContent {
  /** Html and text, and the header fields of a received message; null if there are none. */
  body: NewContent | null;
  /** Header fields that a send asks for. */
  headers?: Record<string, string>;
  data?: Record<string, unknown> | null;
  /** True if the body is the output of the message's template. */
  rendered?: boolean;
  envelope?: Record<string, unknown> | null;
  auth?: Record<string, unknown> | null;
  /** Null: nothing was found. */
  arrival?: Arrived | null;
  trace?: string | null;
  /** A received message as it came, without `trace`, or a submitted one. */
  raw?: NewContent | null;
}

/** Columns of an INSERT: `row_octets`, then the column that a guard may leave NULL. */
const STORED = [...MESSAGES.names.filter((name) => name !== "created_at"), "row_octets", "created_at"];
const VALUES_BEFORE_GUARD = STORED.length - 1;
const PARAMETERS = STORED.map((_, at) => `?${at + 1}`);
const INSERT = rowsText("messages", STORED.join(", "), `(${PARAMETERS.join(", ")})`);
/** Guarded SQL by the guard's own SQL, of which there are few. */
const GUARDED = new Map<string, RowsText>();

/** Position of a message's `row_octets` among the values of its INSERT. */
export const ROW_OCTETS_AT = STORED.length - 2;

/** Returns the INSERT whose `created_at`, which takes no NULL, is NULL unless the guard holds. */
function guardedText({ sql }: Guard): RowsText {
  const known = GUARDED.get(sql);
  if (known !== undefined) return known;
  const value = numbered(`CASE WHEN ${sql} THEN ? END`, VALUES_BEFORE_GUARD + 1);
  const values = [...PARAMETERS.slice(0, VALUES_BEFORE_GUARD), value];
  const text = rowsText("messages", STORED.join(", "), `(${values.join(", ")})`);
  GUARDED.set(sql, text);
  return text;
}

/** Bytes that the row of a message or recipient counts as, with its events and search terms. Attempts are added as they end. */
export const ROW_OCTETS = 1024;

/**
 * Returns the bytes that the rows of a message count as: a fixed number each, and the bytes of their strings.
 * Captured mail counts in no quota.
 */
function rowOctets({ direction, testMode, to, cc, bcc }: Message, texts: readonly Value[]): number {
  if (direction === "outbound" && testMode) return 0;
  const recipients = direction === "outbound" ? to.length + cc.length + bcc.length : 0;
  let octets = ROW_OCTETS * (1 + recipients);
  for (const text of texts) if (typeof text === "string") octets += Buffer.byteLength(text);
  return octets;
}

/**
 * Returns the statement that stores the row of a message. The search index gets the message later, by `indexWaiting`.
 * @param texts values of the message's other row, which count for the project as well
 */
function insertRow(message: Message, guard: Guard | null, texts: readonly Value[]): Statement {
  const args = MESSAGES.values(message);
  // `createdAt` is the last field, and comes after the bytes.
  args.splice(-1, 1, rowOctets(message, [...args, ...texts]));
  if (guard === null) return rowsStatement(INSERT, [...args, message.createdAt]);
  const text = guardedText(guard);
  args.push(...guard.args, message.createdAt);
  return guard.orderIndependent === true ? rowsStatement(text, args) : { sql: text.sql, args };
}

const INSERT_CONTENT = rowsText(
  "message_content",
  "message_id, body, headers, data, envelope, auth, trace, arrival, raw, rendered",
  "(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
);

/**
 * Returns the statements that store a message with its content and attachments. Large contents were written before.
 * @param guard if it does not hold, the whole write is undone with the guard `message_conflict`
 */
export function insertMessage(
  message: Message,
  content: NewMessageContent,
  attachments: readonly NewAttachment[],
  guard: Guard | null = null,
): Statement[] {
  const { body, headers = {}, data = null, envelope = null, auth = null, trace = null, raw = null } = content;
  const { arrival = null } = content;
  const contents = [body, raw, ...attachments.map((attachment) => attachment.content)];
  const texts = [
    JSON.stringify(headers),
    data === null ? null : JSON.stringify(data),
    envelope === null ? null : JSON.stringify(envelope),
    auth === null ? null : JSON.stringify(auth),
    trace,
    arrival === null ? null : JSON.stringify(arrival),
  ];
  return [
    insertRow(message, guard, texts),
    ...contents.flatMap((kept) => (kept === null ? [] : [storeContent(kept, message.createdAt)])),
    rowsStatement(INSERT_CONTENT, [
      message.id,
      body?.key ?? null,
      ...texts,
      raw?.key ?? null,
      Number(content.rendered ?? false),
    ]),
    ...attachments.map((attachment, ord) => insertAttachment(message.id, attachment, ord)),
  ];
}

/** Returns a message of the project; null if the project has none with that id. */
export function getMessage(db: Db, senderId: string, id: string): Promise<Message | null> {
  return MESSAGES.first(db, "WHERE id = ? AND sender_id = ?", [id, senderId]);
}
