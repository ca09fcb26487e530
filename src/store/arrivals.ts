import type { Db } from "./engine/client.ts";
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

interface Row {
  receiving: number;
  thread_id: string | null;
  earlier: string;
  webhooks: string;
}

/** In one read, since it is made for each mail. The plus signs keep the planner on the index of the inbox's Message-IDs. */
const FACTS = `SELECT d.receiving, (${THREAD_OF_IDS}) AS thread_id,
    (SELECT json_group_array(json_object('messageId', id, 'threadId', thread_id)) FROM (
      SELECT id, thread_id FROM messages
        WHERE inbox_id = ?1 AND rfc_message_id = ?4 AND +sender_id = ?2 AND direction = 'inbound'
          AND thread_id IS NOT NULL AND created_at > ?5
        ORDER BY +id DESC LIMIT ?6)) AS earlier,
    ${SUBSCRIPTIONS_COLUMN} AS webhooks
  FROM inboxes i JOIN domains d ON d.id = i.domain_id WHERE i.id = ?1 AND i.sender_id = ?2`;

/** What there is to know of a mail for an inbox; null where the project has no such inbox any more. */
export async function arrivalFacts(
  db: Db,
  inbox: { id: string; senderId: string },
  { rfcMessageId, related, since, limit }: ArrivalQuestion,
): Promise<ArrivalFacts | null> {
  const ids = JSON.stringify(related);
  const row = await db.first<Row>(FACTS, [inbox.id, inbox.senderId, ids, rfcMessageId, since, limit]);
  if (row === null) return null;
  return {
    receiving: row.receiving === 1,
    threadId: row.thread_id,
    earlier: JSON.parse(row.earlier),
    webhooks: JSON.parse(row.webhooks),
  };
}
