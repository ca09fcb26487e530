import type { ConfigurationQuery, Db, Guard } from "../engine/client.ts";
import { keyEnd, RAW_KEY_END } from "../contents/content-bytes.ts";
import { THREAD_OF_IDS } from "../threads/threads.ts";
import { type Subscription, SUBSCRIPTIONS_COLUMN } from "../webhooks/webhook-deliveries.ts";

/** A message that an inbox has stored. */
export interface EarlierArrival {
  messageId: string;
  threadId: string;
}

/** The question about a message that arrives in an inbox. */
export interface ArrivalQuestion {
  rfcMessageId: string | null;
  /** Message-IDs that lead to its thread, the nearest parent last. */
  related: readonly string[];
  /** Milliseconds. Older messages with its Message-ID count as different messages. */
  since: number;
  /** The most messages with its Message-ID that are returned. */
  limit: number;
  /** True if a message that names no other may count as new without a query. `beginsThreadGuard` decides. */
  asNew?: boolean;
}

/** The facts about a message before an inbox stores it. */
export interface ArrivalFacts {
  /** True if the inbox's domain receives mail. */
  receiving: boolean;
  /** The thread that the message belongs to; null if it begins one. */
  threadId: string | null;
  /** The messages with its Message-ID that the inbox has stored, newest first. */
  earlier: EarlierArrival[];
  webhooks: readonly Subscription[];
}

/** The facts that come from configuration. */
type InboxFacts = Pick<ArrivalFacts, "receiving" | "webhooks">;
/** The facts that come from the inbox's messages. */
type MailFacts = Pick<ArrivalFacts, "threadId" | "earlier">;

/** Parameters: inbox, project. */
const INBOX: ConfigurationQuery<{ receiving: number; webhooks: string }, InboxFacts> = {
  sql: `SELECT d.receiving, ${SUBSCRIPTIONS_COLUMN} AS webhooks
    FROM inboxes i JOIN domains d ON d.id = i.domain_id WHERE i.id = ?1 AND i.sender_id = ?2 AND i.address <> i.id`,
  read: ({ receiving, webhooks }) => ({ receiving: receiving === 1, webhooks: JSON.parse(webhooks) }),
};

/**
 * One query, because it runs for many messages. Rowids follow the order of insertion and end the index, so the newest
 * messages with one Message-ID are found at once, however many there are. A sender of tens of thousands slows down no
 * other mail.
 */
const MAIL = `SELECT (${THREAD_OF_IDS}) AS thread_id,
    (SELECT json_group_array(json_object('messageId', id, 'threadId', thread_id)) FROM (
      SELECT * FROM (SELECT id, sender_id, direction, thread_id, created_at FROM messages
          WHERE inbox_id = ?1 AND rfc_message_id = ?4 ORDER BY rowid DESC LIMIT ?6)
        WHERE sender_id = ?2 AND direction = 'inbound' AND thread_id IS NOT NULL AND created_at > ?5
        ORDER BY id DESC)) AS earlier`;

/**
 * Checks whether the inbox knows a Message-ID. It costs a third of the query above, and for most messages it is
 * enough.
 */
const KNOWN = `SELECT 1 FROM messages WHERE inbox_id = ?1 AND rfc_message_id = ?2
  UNION ALL SELECT 1 FROM thread_references WHERE inbox_id = ?1 AND rfc_message_id = ?2 LIMIT 1`;

const NEVER_SEEN: MailFacts = { threadId: null, earlier: [] };

/** Returns the facts about a message for an inbox; null if the project no longer has that inbox. */
export async function arrivalFacts(
  db: Db,
  inbox: { id: string; senderId: string },
  question: ArrivalQuestion,
): Promise<ArrivalFacts | null> {
  const [configured, mail] = await Promise.all([
    db.readConfig(INBOX, [inbox.id, inbox.senderId]),
    mailFacts(db, inbox, question),
  ]);
  return configured === null ? null : { ...configured, ...mail };
}

async function mailFacts(
  db: Db,
  { id, senderId }: { id: string; senderId: string },
  { rfcMessageId, related, since, limit, asNew = false }: ArrivalQuestion,
): Promise<MailFacts> {
  if (related.every((named) => named === rfcMessageId) && (asNew || !(await isKnown(db, id, rfcMessageId))))
    return NEVER_SEEN;
  const args = [id, senderId, JSON.stringify(related), rfcMessageId, since, limit];
  const row = await db.first<{ thread_id: string | null; earlier: string }>(MAIL, args);
  return row === null ? NEVER_SEEN : { threadId: row.thread_id, earlier: JSON.parse(row.earlier) };
}

async function isKnown(db: Db, inboxId: string, rfcMessageId: string | null): Promise<boolean> {
  return rfcMessageId !== null && (await db.first(KNOWN, [inboxId, rfcMessageId])) !== null;
}

/** A message that an inbox is about to store. */
export interface ArrivingMail {
  inboxId: string;
  senderId: string;
  rfcMessageId: string;
  /** The key of its bytes as a content of the project. */
  raw: Uint8Array;
  /** As in `ArrivalQuestion`. */
  since: number;
  limit: number;
}

/** Holds while the inbox has not stored the message: its sender may deliver it to another process at the same time. */
export function untakenGuard({ inboxId, senderId, rfcMessageId, raw, since, limit }: ArrivingMail): Guard {
  return {
    sql: `NOT EXISTS (SELECT 1 FROM (SELECT id, sender_id, direction, created_at FROM messages
          WHERE inbox_id = ? AND rfc_message_id = ? ORDER BY rowid DESC LIMIT ?) m
        JOIN message_content c ON c.message_id = m.id
        WHERE m.sender_id = ? AND m.direction = 'inbound' AND m.created_at > ? AND ${RAW_KEY_END} = ?)`,
    args: [inboxId, rfcMessageId, limit, senderId, since, keyEnd(raw)],
  };
}

/** A message that begins a thread. */
export interface BeginningMail {
  inboxId: string;
  senderId: string;
  /** As in `ArrivalQuestion`. */
  related: readonly string[];
}

/**
 * Returns the condition that the inbox has no thread for a Message-ID; see `THREAD_OF_IDS`. `id` is SQL of the
 * Message-ID
 */
const unthreaded = (id: string): string => `NOT EXISTS (SELECT 1 FROM messages
      WHERE inbox_id = ? AND rfc_message_id = ${id} AND +sender_id = ? AND thread_id IS NOT NULL)
    AND NOT EXISTS (SELECT 1 FROM thread_references WHERE inbox_id = ? AND rfc_message_id = ${id} AND sender_id = ?)`;
/**
 * Holds while none of the ids leads to a thread. Another process may have stored the message itself, its parent or
 * another reply to that.
 * @returns null if the message names no ids, so that no other message can lead to its thread
 */
export function beginsThreadGuard({ inboxId, senderId, related }: BeginningMail): Guard | null {
  const [first, ...others] = related;
  if (first === undefined) return null;
  // A message that begins a thread usually names only one id.
  return others.length === 0
    ? { sql: unthreaded("?"), args: [inboxId, first, senderId, inboxId, first, senderId] }
    : {
        sql: `NOT EXISTS (SELECT 1 FROM json_each(?) named WHERE NOT (${unthreaded("named.value")}))`,
        args: [JSON.stringify(related), inboxId, senderId, inboxId, senderId],
      };
}
