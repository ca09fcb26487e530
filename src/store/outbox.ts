import { ROLL_UP_ORDER, type RecipientStatus } from "../core/states.ts";
import { ALWAYS, ConstraintError, type Db, type Guard, type Statement } from "./engine/client.ts";
import { LISTED } from "./instances.ts";
import type { TriedRecipient } from "./recipients.ts";

/** A recipient that a worker has claimed: only this claim may settle it. */
export interface Claim {
  messageId: string;
  ord: number;
  instanceId: string;
  attempt: number;
}

/** A recipient as it was read: which one it is, and how often it had been tried. */
export type TriedPlace = Pick<TriedRecipient, "messageId" | "ord" | "attempts">;

/** Holds for a recipient that waits, is due, and has been tried so often. Parameters: message, ord, now, attempts. */
export const WAITS = "message_id = ? AND ord = ? AND due_at <= ? AND claimed_by IS NULL AND attempts = ?";

/**
 * Holds while the recipient waits, is due, and has been tried as often as when it was read, and the instance is on the
 * list: what a claim changes.
 */
export function dueGuard({ messageId, ord, attempts }: TriedPlace, instanceId: string, now: number): Guard {
  return {
    sql: `(EXISTS (SELECT 1 FROM recipients WHERE ${WAITS}) AND ${LISTED})`,
    args: [messageId, ord, now, attempts, instanceId],
  };
}

/**
 * A claim holds, too, where others have freed it (they took its process for dead) and nobody has taken the recipient up
 * since: what a peer has said must not be forgotten, or the mail goes out again.
 */
const CLAIMED =
  "message_id = ? AND ord = ? AND (claimed_by = ? OR (claimed_by IS NULL AND status = 'queued')) AND attempts = ?";

/** Holds while the claim does: what a settle changes. */
export function claimGuard(claim: Claim): Guard {
  return {
    sql: `EXISTS (SELECT 1 FROM recipients WHERE ${CLAIMED})`,
    args: [claim.messageId, claim.ord, claim.instanceId, claim.attempt],
  };
}

/** Whether the claim is still there. One that others have freed is not, though it may be settled. */
export async function isClaimHeld(db: Db, { messageId, ord, instanceId, attempt }: Claim): Promise<boolean> {
  const sql = "SELECT 1 FROM recipients WHERE message_id = ? AND ord = ? AND claimed_by = ? AND attempts = ?";
  return (await db.first(sql, [messageId, ord, instanceId, attempt])) !== null;
}

/**
 * Takes a due recipient for an instance. No row changed: somebody else has it, or it is not due. A first attempt that lies ahead
 * of a clock that was put back becomes this one: it would be tried until the clock has come round.
 */
export function claimRecipient(
  { messageId, ord, attempts }: TriedPlace,
  instanceId: string,
  now: number,
): Statement {
  return {
    sql: `UPDATE recipients SET status = 'sending', claimed_by = ?, due_at = NULL, attempts = attempts + 1,
        first_attempt_at = MIN(COALESCE(first_attempt_at, ?), ?), last_event_at = ?
      WHERE ${WAITS} AND ${LISTED}`,
    args: [instanceId, now, now, now, messageId, ord, now, attempts, instanceId],
  };
}

/** What an attempt leaves behind in the recipient. `dueAt`: the next try; null where the status is final. */
export interface Settlement {
  status: RecipientStatus;
  reason: string | null;
  dueAt: number | null;
  mx: string | null;
  tls: string | null;
  smtpCode: number | null;
  enhancedCode: string | null;
  diagnostic: string | null;
}

/** Ends a claim with its outcome. Changes nothing where the claim no longer holds. */
export function settleRecipient(claim: Claim, settlement: Settlement, now: number): Statement {
  return {
    sql: `UPDATE recipients SET status = ?, reason = ?, due_at = ?, claimed_by = NULL, mx = ?, tls = ?, smtp_code = ?,
        enhanced_code = ?, diagnostic = ?, last_event_at = ?
      WHERE ${CLAIMED}`,
    args: [
      settlement.status,
      settlement.reason,
      settlement.dueAt,
      settlement.mx,
      settlement.tls,
      settlement.smtpCode,
      settlement.enhancedCode,
      settlement.diagnostic,
      now,
      claim.messageId,
      claim.ord,
      claim.instanceId,
      claim.attempt,
    ],
  };
}

/** A recipient as a report found it. */
type ReportedPlace = Pick<TriedRecipient, "messageId" | "ord" | "status">;

const STANDS_AS_READ = "message_id = ? AND ord = ? AND claimed_by IS NULL AND status = ?";

/** Holds while nobody is delivering to the recipient and it stands where it was read: what a report changes. */
export function reportGuard({ messageId, ord, status }: ReportedPlace): Guard {
  return {
    sql: `EXISTS (SELECT 1 FROM recipients WHERE ${STANDS_AS_READ})`,
    args: [messageId, ord, status],
  };
}

/** Moves a recipient to where a report puts it. Changes nothing where it has moved since it was read. */
export function reportRecipient(
  { messageId, ord, status }: ReportedPlace,
  settlement: Settlement,
  now: number,
): Statement {
  return {
    sql: `UPDATE recipients SET status = ?, reason = ?, due_at = NULL, mx = ?, tls = ?, smtp_code = ?,
        enhanced_code = ?, diagnostic = ?, last_event_at = ?
      WHERE ${STANDS_AS_READ}`,
    args: [
      settlement.status,
      settlement.reason,
      settlement.mx,
      settlement.tls,
      settlement.smtpCode,
      settlement.enhancedCode,
      settlement.diagnostic,
      now,
      messageId,
      ord,
      status,
    ],
  };
}

const RANK = ROLL_UP_ORDER.map((status, rank) => `WHEN '${status}' THEN ${rank}`).join(" ");
const STATUS = ROLL_UP_ORDER.map((status, rank) => `WHEN ${rank} THEN '${status}'`).join(" ");

/** By the least rank rather than in the order of ranks: sorting takes a quarter of the statement's time. */
const ROLL_UP = `UPDATE messages SET sent_at = COALESCE(sent_at, ?),
    status = (SELECT CASE MIN(CASE status ${RANK} END) ${STATUS} END FROM recipients WHERE message_id = ?)
  WHERE id = ?`;

/** Rolls the recipients' states up into the message's status; a message whose last recipient left also gets its time. */
export function rollUpMessage(messageId: string, sentAt: number | null): Statement {
  return { sql: ROLL_UP, args: [sentAt, messageId, messageId] };
}

/** A recipient that waits for a worker, and the place in the order of waiting where a later look goes on. */
export interface DueRecipient {
  messageId: string;
  ord: number;
  domain: string;
  dueAt: number;
  /** Tries so far. */
  attempts: number;
  /** What its last try came to, or why it waits without one; null: neither. */
  reason: string | null;
}

/**
 * Recipients that are due and unclaimed, longest due first, from behind `after` on. As one column, since each turn of the
 * sweep reads thousands of them, and the client takes several times as long over rows as over their JSON. SQLite
 * aggregates the rows of an ordered subquery in their order (the query flattener's rule 16).
 */
export async function dueRecipients(
  db: Db,
  now: number,
  after: Pick<DueRecipient, "dueAt" | "messageId" | "ord"> | null,
  limit: number,
): Promise<DueRecipient[]> {
  const found = await db.first<{ due: string }>(
    `SELECT json_group_array(json_object('messageId', message_id, 'ord', ord, 'domain', domain, 'dueAt', due_at,
        'attempts', attempts, 'reason', reason)) AS due
      FROM (SELECT message_id, ord, domain, due_at, attempts, reason FROM recipients
        WHERE due_at <= ? AND status <> 'accepted' AND (due_at, message_id, ord) > (?, ?, ?)
        ORDER BY due_at, message_id, ord LIMIT ?)`,
    [now, after?.dueAt ?? -1, after?.messageId ?? "", after?.ord ?? -1, limit],
  );
  return found === null ? [] : JSON.parse(found.due);
}

/**
 * Frees every claim of an instance that is gone, where the guard holds: the recipients are due again at once. Changes message
 * statuses too.
 */
export function freeClaims(instanceId: string, now: number, guard: Guard = ALWAYS): Statement[] {
  return [
    {
      sql: `UPDATE messages SET status = (
          SELECT freed FROM (SELECT CASE WHEN claimed_by = ? THEN 'queued' ELSE status END AS freed
            FROM recipients WHERE message_id = messages.id) ORDER BY CASE freed ${RANK} END LIMIT 1)
        WHERE id IN (SELECT message_id FROM recipients WHERE claimed_by = ?) AND ${guard.sql}`,
      args: [instanceId, instanceId, ...guard.args],
    },
    {
      sql: `UPDATE recipients SET status = 'queued', due_at = ?, claimed_by = NULL
        WHERE claimed_by = ? AND ${guard.sql}`,
      args: [now, instanceId, ...guard.args],
    },
  ];
}

/** A claimed recipient, with the key of its job. */
export interface ClaimedKey {
  key: string;
  messageId: string;
  ord: number;
}

/** Recipients that an instance has claimed. */
export async function claimedKeys(db: Db, instanceId: string, limit: number): Promise<ClaimedKey[]> {
  const rows = await db.all<{ message_id: string; ord: number }>(
    "SELECT message_id, ord FROM recipients WHERE claimed_by = ? LIMIT ?",
    [instanceId, limit],
  );
  return rows.map(({ message_id, ord }) => ({ key: `${message_id}.${ord}`, messageId: message_id, ord }));
}

/** Frees single claims of an instance: the recipients are due again at once. */
export function freeClaimedKeys(claims: readonly ClaimedKey[], instanceId: string, now: number): Statement[] {
  return claims.flatMap(({ messageId, ord }) => [
    {
      sql: `UPDATE recipients SET status = 'queued', due_at = ?, claimed_by = NULL
        WHERE message_id = ? AND ord = ? AND claimed_by = ?`,
      args: [now, messageId, ord, instanceId],
    },
    rollUpMessage(messageId, null),
  ]);
}

/** A statement that undoes its whole write where the guard does not hold: for writes of all or nothing. */
export function allOrNothing(guard: Guard): Statement {
  return {
    sql: `INSERT INTO usage (sender_id, day, recipients) SELECT '', '', NULL WHERE NOT ${guard.sql}`,
    args: [...guard.args],
  };
}

/** Whether a write was undone by `allOrNothing`. */
export function isGuardBroken(error: unknown): boolean {
  return error instanceof ConstraintError && error.notNull === "usage.recipients";
}
