import type { BroadcastStatus } from "../../core/audience/broadcasts.ts";
import { notInTopic } from "../audience/topics.ts";
import { domainOfName } from "../domains/wildcards.ts";
import { isAsciiText } from "../../core/text.ts";
import { addressKey } from "../../core/addresses.ts";
import type { RecipientStatus } from "../../core/messages/states.ts";
import type { Db, Statement, Value } from "../engine/client.ts";
import { flag, plain, table } from "../engine/columns.ts";
import type { RowsText } from "../sql/engine.ts";
import { rowsStatement, rowsText } from "../sql/rows-text.ts";
import { FROM_DOMAIN } from "./messages.ts";
import { inForce } from "../projects/suppressions.ts";

/** One recipient of an outbound message: a row of the outbox. Times are milliseconds. */
export interface Recipient {
  messageId: string;
  /** Position in the message, from 0. Message id and position identify the recipient. */
  ord: number;
  senderId: string;
  email: string;
  domain: string;
  kind: "to" | "cc" | "bcc";
  /** True if it leaves after mail that is not bulk. */
  bulk: boolean;
  /** Id of the From domain, if that had its own routes when the message was accepted. Null: the project decides. */
  routedBy: string | null;
  status: RecipientStatus;
  reason: string | null;
  attempts: number;
  firstAttemptAt: number | null;
  mx: string | null;
  tls: string | null;
  smtpCode: number | null;
  enhancedCode: string | null;
  diagnostic: string | null;
  lastEventAt: number | null;
  /** When a worker may claim it; null while one has, and once it is final. */
  dueAt: number | null;
}

export const RECIPIENTS = table<Recipient>("recipients", {
  messageId: plain("message_id"),
  ord: plain("ord"),
  senderId: plain("sender_id"),
  email: plain("email"),
  domain: plain("domain"),
  kind: plain("kind"),
  bulk: flag("bulk"),
  routedBy: plain("routed_by"),
  status: plain("status"),
  reason: plain("reason"),
  attempts: plain("attempts"),
  firstAttemptAt: plain("first_attempt_at"),
  mx: plain("mx"),
  tls: plain("tls"),
  smtpCode: plain("smtp_code"),
  enhancedCode: plain("enhanced_code"),
  diagnostic: plain("diagnostic"),
  lastEventAt: plain("last_event_at"),
  dueAt: plain("due_at"),
});

/** A recipient to store with a new message. `dueAt`: when a worker may first claim it; null if it is final already. */
export interface NewRecipient {
  ord: number;
  email: string;
  domain: string;
  kind: "to" | "cc" | "bcc";
  /** False if left out. */
  bulk?: boolean;
  /** Null if left out. */
  routedBy?: string | null;
  status: RecipientStatus;
  reason: string | null;
  dueAt: number | null;
}

const COLUMNS_STORED =
  "message_id, sender_id, last_event_at, ord, email, domain, kind, bulk, routed_by, status, reason, due_at";

/** The text for one recipient, as most messages have. */
const ONE = rowsText("recipients", COLUMNS_STORED, "(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)");

function textFor(count: number): RowsText {
  const rows = Array(count).fill("(?1, ?2, ?3, ?, ?, ?, ?, ?, ?, ?, ?, ?)").join(", ");
  return rowsText("recipients", COLUMNS_STORED, rows, { repeats: false });
}

/** Returns one statement that stores all recipients of a message. */
export function insertRecipients(
  senderId: string,
  messageId: string,
  recipients: readonly NewRecipient[],
  now: number,
): Statement {
  const args: Value[] = [messageId, senderId, now];
  for (const { ord, email, domain, kind, bulk = false, routedBy = null, status, reason, dueAt } of recipients)
    args.push(ord, email, domain, kind, Number(bulk), routedBy, status, reason, dueAt);
  return rowsStatement(recipients.length === 1 ? ONE : textFor(recipients.length), args);
}

/** Returns all recipients of a message of the project, in their order. */
export function listRecipients(db: Db, senderId: string, messageId: string): Promise<Recipient[]> {
  return RECIPIENTS.all(db, "WHERE message_id = ? AND sender_id = ? ORDER BY ord", [messageId, senderId]);
}

/** Returns the recipient of a job, of any project, for workers; null if it is gone. */
export function findRecipient(db: Db, messageId: string, ord: number): Promise<Recipient | null> {
  return RECIPIENTS.first(db, "WHERE message_id = ? AND ord = ?", [messageId, ord]);
}

/** Returns the recipients of a message of any project, if it has that Message-ID, for a report that names it by that. */
export function recipientsOfRfcId(db: Db, messageId: string, rfcMessageId: string): Promise<Recipient[]> {
  return RECIPIENTS.all(
    db,
    `WHERE message_id = ?1 AND EXISTS (SELECT 1 FROM messages WHERE id = ?1 AND rfc_message_id = ?2) ORDER BY ord`,
    [messageId, rfcMessageId],
  );
}

/** The fields of a recipient that a try needs. Results of earlier tries are not among them. */
export type TriedRecipient = Pick<
  Recipient,
  | "messageId"
  | "ord"
  | "senderId"
  | "email"
  | "domain"
  | "status"
  | "attempts"
  | "firstAttemptAt"
  | "lastEventAt"
>;

/** A recipient that waits for a worker, with the facts that decide whether and how its message is sent. */
export interface WaitingRecipient {
  recipient: TriedRecipient;
  /** The address is on the project's block list. */
  suppressed: boolean;
  /** The message has an unsubscribe link, and its recipient is unsubscribed or does not get its topic. */
  unsubscribed: boolean;
  /** The project may not send. */
  suspended: boolean;
  /** The From domain is the project's, and no longer verified. */
  unverified: boolean;
  /** The message is in test mode, and must not leave this machine. */
  testMode: boolean;
  /**
   * The From domain if it receives mail and its MX record leads to us; null otherwise, because reports would be lost.
   */
  receivingDomain: string | null;
  /** The From domain if the last check found its own return path; null otherwise. */
  returnPathDomain: string | null;
  /** When it became due. */
  dueAt: number;
  /** The status of the broadcast that the message is part of; null: of none. */
  broadcast: BroadcastStatus | null;
  /** True if the message's template must still be rendered. */
  toRender: boolean;
  /** Bytes of its bodies and attachments as the client gave them. */
  size: number;
}

/** Facts that the query returns as 0 or 1. */
type Flags = "suppressed" | "unsubscribed" | "suspended" | "unverified" | "testMode" | "toRender";
type WaitingRow = TriedRecipient & Omit<WaitingRecipient, Flags | "recipient"> & Record<Flags, number>;

/**
 * One query, because it runs for each attempt, with one JSON column, because the client's cost of a row grows with its
 * columns. If an address key is given, it replaces SQL's `lower`.
 */
const WAITING = `SELECT json_object('messageId', r.message_id, 'ord', r.ord, 'senderId', r.sender_id, 'email', r.email,
    'domain', r.domain, 'status', r.status, 'attempts', r.attempts, 'firstAttemptAt', r.first_attempt_at,
    'lastEventAt', r.last_event_at, 'dueAt', r.due_at,
    'suppressed', EXISTS (SELECT 1 FROM suppressions s WHERE s.sender_id = r.sender_id
      AND s.email = COALESCE(?1, lower(r.email)) AND ${inForce("?2", "s.")}),
    'unsubscribed', m.unsubscribe_link AND CASE WHEN m.topic_id IS NULL
      THEN EXISTS (SELECT 1 FROM contacts c WHERE c.sender_id = r.sender_id AND c.email_key = COALESCE(?1, lower(r.email))
        AND c.subscribed = 0)
      ELSE ${notInTopic("r.sender_id", "COALESCE(?1, lower(r.email))", "m.topic_id")} END,
    'suspended', p.suspended_at IS NOT NULL, 'unverified', d.status IS NOT NULL AND d.status <> 'verified',
    'receivingDomain', CASE WHEN d.receiving = 1 AND d.mx_verified = 1 THEN d.name END,
    'returnPathDomain', CASE WHEN d.return_path_verified = 1 THEN d.name END,
    'toRender', m.template_id IS NOT NULL AND NOT EXISTS (SELECT 1 FROM message_content c
      WHERE c.message_id = m.id AND c.rendered = 1), 'size', m.size, 'testMode', m.test_mode,
    'broadcast', CASE WHEN m.template_id IS NOT NULL THEN (SELECT b.status FROM broadcasts b WHERE b.id = m.template_id) END) AS facts
  FROM recipients r JOIN messages m ON m.id = r.message_id
    LEFT JOIN senders p ON p.id = r.sender_id
    LEFT JOIN domains d ON d.id = ${domainOfName({ account: "p.account_id", project: "r.sender_id", name: FROM_DOMAIN })}
  WHERE r.message_id = ?3 AND r.ord = ?4 AND r.due_at <= ?2 AND r.claimed_by IS NULL`;

/** Returns the recipient of a job, of any project, for workers; null if it is gone, claimed or not due at `now`. */
export async function waitingRecipient(
  db: Db,
  messageId: string,
  ord: number,
  now: number,
): Promise<WaitingRecipient | null> {
  const read = async (key: string | null): Promise<WaitingRow | null> => {
    const found = await db.first<{ facts: string }>(WAITING, [key, now, messageId, ord]);
    return found === null ? null : JSON.parse(found.facts);
  };
  const found = await read(null);
  // SQL's `lower` knows ASCII only.
  const row = found === null || isAsciiText(found.email) ? found : await read(addressKey(found.email));
  if (row === null) return null;
  const { suppressed, unsubscribed, suspended, unverified, testMode, toRender, ...facts } = row;
  const { receivingDomain, returnPathDomain, dueAt, size, broadcast, ...recipient } = facts;
  return {
    recipient,
    receivingDomain,
    returnPathDomain,
    dueAt,
    size,
    broadcast,
    suppressed: suppressed === 1,
    unsubscribed: unsubscribed === 1,
    suspended: suspended === 1,
    unverified: unverified === 1,
    testMode: testMode === 1,
    toRender: toRender === 1,
  };
}
