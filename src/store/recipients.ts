import type { RecipientStatus } from "../core/states.ts";
import type { Db, Statement } from "./client.ts";

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

/** One statement that stores all recipients of a message. */
export function insertRecipients(
  senderId: string,
  messageId: string,
  recipients: readonly NewRecipient[],
  now: number,
): Statement {
  const values = recipients.map(() => "(?, ?, ?, ?, ?, ?, ?, ?, ?, ?)").join(", ");
  return {
    sql: `INSERT INTO recipients (message_id, ord, sender_id, email, domain, kind, status, reason, due_at, last_event_at)
      VALUES ${values}`,
    args: recipients.flatMap((recipient) => [
      messageId,
      recipient.ord,
      senderId,
      recipient.email,
      recipient.domain,
      recipient.kind,
      recipient.status,
      recipient.reason,
      recipient.dueAt,
      now,
    ]),
  };
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
