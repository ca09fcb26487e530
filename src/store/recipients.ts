import { isAsciiText } from "../core/ascii.ts";
import { addressKey } from "../core/addresses.ts";
import type { RecipientStatus } from "../core/states.ts";
import type { Db, Statement, Value } from "./engine/client.ts";
import { type RowsText, rowsStatement, rowsText } from "./engine/rows-text.ts";
import { FROM_DOMAIN } from "./mailbox.ts";
import { inForce } from "./suppressions.ts";

/** One recipient of an outbound message: the outbox row. Times are milliseconds. */
export interface Recipient {
  messageId: string;
  /** Position in the message, from 0: with the message id its identity. */
  ord: number;
  senderId: string;
  email: string;
  domain: string;
  kind: "to" | "cc" | "bcc";
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
}

/** A row of `recipients` as `RECIPIENT_COLUMNS` reads it. */
export interface RecipientRow {
  message_id: string;
  ord: number;
  sender_id: string;
  email: string;
  domain: string;
  kind: "to" | "cc" | "bcc";
  status: RecipientStatus;
  reason: string | null;
  attempts: number;
  first_attempt_at: number | null;
  mx: string | null;
  tls: string | null;
  smtp_code: number | null;
  enhanced_code: string | null;
  diagnostic: string | null;
  last_event_at: number | null;
}

/** The columns of a whole recipient. */
export const RECIPIENT_COLUMNS = `message_id, ord, sender_id, email, domain, kind, status, reason, attempts, first_attempt_at,
  mx, tls, smtp_code, enhanced_code, diagnostic, last_event_at`;

/** The recipient in a row. */
export function toRecipient(row: RecipientRow): Recipient {
  return {
    messageId: row.message_id,
    ord: row.ord,
    senderId: row.sender_id,
    email: row.email,
    domain: row.domain,
    kind: row.kind,
    status: row.status,
    reason: row.reason,
    attempts: row.attempts,
    firstAttemptAt: row.first_attempt_at,
    mx: row.mx,
    tls: row.tls,
    smtpCode: row.smtp_code,
    enhancedCode: row.enhanced_code,
    diagnostic: row.diagnostic,
    lastEventAt: row.last_event_at,
  };
}

/** A recipient as a new message stores it. `dueAt`: when a worker may first take it; null where it is final already. */
export interface NewRecipient {
  ord: number;
  email: string;
  domain: string;
  kind: "to" | "cc" | "bcc";
  status: RecipientStatus;
  reason: string | null;
  dueAt: number | null;
}

const COLUMNS_STORED =
  "message_id, sender_id, last_event_at, ord, email, domain, kind, status, reason, due_at";

/** Most mail has one. */
const ONE = rowsText("recipients", COLUMNS_STORED, "(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)");

function textFor(count: number): RowsText {
  const rows = Array(count).fill("(?1, ?2, ?3, ?, ?, ?, ?, ?, ?, ?)").join(", ");
  return rowsText("recipients", COLUMNS_STORED, rows, { repeats: false });
}

/** One statement that stores all recipients of a message. */
export function insertRecipients(
  senderId: string,
  messageId: string,
  recipients: readonly NewRecipient[],
  now: number,
): Statement {
  const args: Value[] = [messageId, senderId, now];
  for (const { ord, email, domain, kind, status, reason, dueAt } of recipients)
    args.push(ord, email, domain, kind, status, reason, dueAt);
  return rowsStatement(recipients.length === 1 ? ONE : textFor(recipients.length), args);
}

/** All recipients of a message of the project, in their order. */
export async function listRecipients(db: Db, senderId: string, messageId: string): Promise<Recipient[]> {
  const rows = await db.all<RecipientRow>(
    `SELECT ${RECIPIENT_COLUMNS} FROM recipients WHERE message_id = ? AND sender_id = ? ORDER BY ord`,
    [messageId, senderId],
  );
  return rows.map(toRecipient);
}

/** The recipient behind a job, of whichever project; null where it is gone. For workers, which serve all projects. */
export async function findRecipient(db: Db, messageId: string, ord: number): Promise<Recipient | null> {
  const row = await db.first<RecipientRow>(
    `SELECT ${RECIPIENT_COLUMNS} FROM recipients WHERE message_id = ? AND ord = ?`,
    [messageId, ord],
  );
  return row === null ? null : toRecipient(row);
}

/** What a try has to know of a recipient. Read for each: what an earlier try has left in the row is not among it. */
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

/** A recipient that waits for a worker, with what decides whether its mail still goes out, and how. */
export interface WaitingRecipient {
  recipient: TriedRecipient;
  /** The project does not send to the address. */
  suppressed: boolean;
  /** The mail has a link to unsubscribe, and its recipient is unsubscribed. */
  unsubscribed: boolean;
  /** The project may not send. */
  suspended: boolean;
  /** The From domain is the project's, and not verified any more. */
  unverified: boolean;
  /** The From domain where it receives, and its MX record leads to us; null otherwise: a report would be lost on its way. */
  receivingDomain: string | null;
  /** Since when it has been due. */
  dueAt: number;
  /** Whether the message's template is yet to be rendered. */
  toRender: boolean;
  /** Octets of its bodies and attachments as they were given. */
  size: number;
}

interface WaitingRow
  extends Pick<
    RecipientRow,
    "sender_id" | "email" | "domain" | "status" | "attempts" | "first_attempt_at" | "last_event_at"
  > {
  suppressed: number;
  unsubscribed: number;
  suspended: number;
  unverified: number;
  receiving_domain: string | null;
  due_at: number;
  to_render: number;
  size: number;
}

/** In one read, since it is made for each attempt of all mail. An address key in the parameter goes before SQL's own. */
const WAITING = `SELECT r.sender_id, r.email, r.domain, r.status, r.attempts, r.first_attempt_at, r.last_event_at, r.due_at,
    EXISTS (SELECT 1 FROM suppressions s WHERE s.sender_id = r.sender_id AND s.email = COALESCE(?, lower(r.email))
      AND ${inForce("?", "s.")}) AS suppressed,
    m.unsubscribe_link AND EXISTS (SELECT 1 FROM contacts c WHERE c.sender_id = r.sender_id
      AND c.email_key = COALESCE(?, lower(r.email)) AND c.subscribed = 0) AS unsubscribed,
    p.suspended_at IS NOT NULL AS suspended, d.status IS NOT NULL AND d.status <> 'verified' AS unverified,
    CASE WHEN d.receiving = 1 AND d.mx_verified = 1 THEN d.name END AS receiving_domain,
    m.template_id IS NOT NULL AND NOT EXISTS (SELECT 1 FROM message_content c
      WHERE c.message_id = m.id AND c.rendered = 1) AS to_render, m.size
  FROM recipients r JOIN messages m ON m.id = r.message_id
    LEFT JOIN senders p ON p.id = r.sender_id
    LEFT JOIN domains d ON d.account_id = p.account_id AND d.name = ${FROM_DOMAIN} AND d.sender_id = r.sender_id
  WHERE r.message_id = ? AND r.ord = ? AND r.due_at <= ? AND r.claimed_by IS NULL`;

/** The recipient behind a job, of whichever project; null where it is gone, not due at `now`, or taken. For workers. */
export async function waitingRecipient(
  db: Db,
  messageId: string,
  ord: number,
  now: number,
): Promise<WaitingRecipient | null> {
  const read = (key: string | null) => db.first<WaitingRow>(WAITING, [key, now, key, messageId, ord, now]);
  const found = await read(null);
  // SQL's `lower` knows ASCII only.
  const row = found === null || isAsciiText(found.email) ? found : await read(addressKey(found.email));
  if (row === null) return null;
  return {
    recipient: {
      messageId,
      ord,
      senderId: row.sender_id,
      email: row.email,
      domain: row.domain,
      status: row.status,
      attempts: row.attempts,
      firstAttemptAt: row.first_attempt_at,
      lastEventAt: row.last_event_at,
    },
    suppressed: row.suppressed === 1,
    unsubscribed: row.unsubscribed === 1,
    suspended: row.suspended === 1,
    unverified: row.unverified === 1,
    receivingDomain: row.receiving_domain,
    dueAt: row.due_at,
    toRender: row.to_render === 1,
    size: row.size,
  };
}
