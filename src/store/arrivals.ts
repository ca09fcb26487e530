import type { ConfigurationQuery, Db, Guard } from "./engine/client.ts";
import { THREAD_OF_IDS } from "./threads.ts";
import { type Subscription, SUBSCRIPTIONS_COLUMN } from "./webhook-deliveries.ts";

/** A mail that an inbox has taken. */
export interface EarlierArrival {
  messageId: string;
  threadId: string;
}

/** What a mail that comes to an inbox is asked about. */
export interface ArrivalQuestion {
  rfcMessageId: string | null;
  /** Message-IDs that lead to its thread, the nearest parent last. */
  related: readonly string[];
  /** Milliseconds: mails with its Message-ID that came before are other mails. */
  since: number;
  /** Mails with its Message-ID that are given at most. */
  limit: number;
}

/** What the database says of a mail before an inbox takes it. */
export interface ArrivalFacts {
  /** Whether the inbox's domain receives. */
  receiving: boolean;
  /** The thread that the mail belongs to; null where it begins one. */
  threadId: string | null;
  /** The mails with its Message-ID that the inbox has taken, newest first. */
  earlier: EarlierArrival[];
  /** The project's webhooks. */
  webhooks: readonly Subscription[];
}

/** What configuration says of an inbox. */
type InboxFacts = Pick<ArrivalFacts, "receiving" | "webhooks">;
/** What the mails of an inbox say of one more. */
type MailFacts = Pick<ArrivalFacts, "threadId" | "earlier">;

/** Parameters: inbox, project. */
const INBOX: ConfigurationQuery<{ receiving: number; webhooks: string }, InboxFacts> = {
  sql: `SELECT d.receiving, ${SUBSCRIPTIONS_COLUMN} AS webhooks
    FROM inboxes i JOIN domains d ON d.id = i.domain_id WHERE i.id = ?1 AND i.sender_id = ?2 AND i.address <> i.id`,
  read: ({ receiving, webhooks }) => ({ receiving: receiving === 1, webhooks: JSON.parse(webhooks) }),
};

/**
 * In one read, since it is made for many mails. By rowid, which is the order of insertion and ends the index, the newest of
 * any number of mails with one Message-ID are found at once; whoever sends tens of thousands of them makes nobody wait.
 */
const MAIL = `SELECT (${THREAD_OF_IDS}) AS thread_id,
    (SELECT json_group_array(json_object('messageId', id, 'threadId', thread_id)) FROM (
      SELECT * FROM (SELECT id, sender_id, direction, thread_id, created_at FROM messages
          WHERE inbox_id = ?1 AND rfc_message_id = ?4 ORDER BY rowid DESC LIMIT ?6)
        WHERE sender_id = ?2 AND direction = 'inbound' AND thread_id IS NOT NULL AND created_at > ?5
        ORDER BY id DESC)) AS earlier`;

/** Whether the inbox knows a Message-ID. It costs a third of the query above, and of most mails there is no more to ask. */
const KNOWN = `SELECT 1 FROM messages WHERE inbox_id = ?1 AND rfc_message_id = ?2
  UNION ALL SELECT 1 FROM thread_references WHERE inbox_id = ?1 AND rfc_message_id = ?2 LIMIT 1`;

const NEVER_SEEN: MailFacts = { threadId: null, earlier: [] };

/** What there is to know of a mail for an inbox; null where the project has no such inbox any more. */
export async function arrivalFacts(
  db: Db,
  inbox: { id: string; senderId: string },
  question: ArrivalQuestion,
): Promise<ArrivalFacts | null> {
  const [configured, mail] = await Promise.all([
    db.recall(INBOX, [inbox.id, inbox.senderId]),
    mailFacts(db, inbox, question),
  ]);
  return configured === null ? null : { ...configured, ...mail };
}

async function mailFacts(
  db: Db,
  { id, senderId }: { id: string; senderId: string },
  { rfcMessageId, related, since, limit }: ArrivalQuestion,
): Promise<MailFacts> {
  if (related.every((named) => named === rfcMessageId) && !(await isKnown(db, id, rfcMessageId)))
    return NEVER_SEEN;
  const args = [id, senderId, JSON.stringify(related), rfcMessageId, since, limit];
  const row = await db.first<{ thread_id: string | null; earlier: string }>(MAIL, args);
  return row === null ? NEVER_SEEN : { threadId: row.thread_id, earlier: JSON.parse(row.earlier) };
}

async function isKnown(db: Db, inboxId: string, rfcMessageId: string | null): Promise<boolean> {
  return rfcMessageId !== null && (await db.first(KNOWN, [inboxId, rfcMessageId])) !== null;
}

/** A mail as an inbox takes it. */
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

/** Holds while the inbox has not taken the mail: a sender may bring it to another process at the same time. */
export function untakenGuard({ inboxId, senderId, rfcMessageId, raw, since, limit }: ArrivingMail): Guard {
  return {
    sql: `NOT EXISTS (SELECT 1 FROM (SELECT id, sender_id, direction, created_at FROM messages
          WHERE inbox_id = ? AND rfc_message_id = ? ORDER BY rowid DESC LIMIT ?) m
        JOIN message_content c ON c.message_id = m.id
        WHERE m.sender_id = ? AND m.direction = 'inbound' AND m.created_at > ? AND c.raw = ?)`,
    args: [inboxId, rfcMessageId, limit, senderId, since, raw],
  };
}

/** A mail that begins a thread. */
export interface BeginningMail {
  inboxId: string;
  senderId: string;
  /** As in `ArrivalQuestion`. */
  related: readonly string[];
}

/** Whether the inbox knows no thread by the id that stands there; see `THREAD_OF_IDS`. */
const unthreaded = (id: string): string => `NOT EXISTS (SELECT 1 FROM messages
      WHERE inbox_id = ? AND rfc_message_id = ${id} AND +sender_id = ? AND thread_id IS NOT NULL)
    AND NOT EXISTS (SELECT 1 FROM thread_references WHERE inbox_id = ? AND rfc_message_id = ${id} AND sender_id = ?)`;
/**
 * Holds while none of the ids leads to a thread: others may have taken the mail itself meanwhile, the one that it answers, or
 * another answer to that. Null where it names none: nothing can lead to another.
 */
export function beginsThreadGuard({ inboxId, senderId, related }: BeginningMail): Guard | null {
  const [first, ...others] = related;
  if (first === undefined) return null;
  // Most mails that begin a thread name no other.
  return others.length === 0
    ? { sql: unthreaded("?"), args: [inboxId, first, senderId, inboxId, first, senderId] }
    : {
        sql: `NOT EXISTS (SELECT 1 FROM json_each(?) named WHERE NOT (${unthreaded("named.value")}))`,
        args: [JSON.stringify(related), inboxId, senderId, inboxId, senderId],
      };
}
