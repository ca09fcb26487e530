import { ROLL_UP_ORDER, type RecipientStatus } from "../../core/messages/states.ts";
import { ALWAYS, type Db, type Guard, type Statement, type Value } from "../engine/client.ts";
import { IS_REGISTERED } from "../installation/instances.ts";
import type { TriedRecipient } from "./recipients.ts";

/** A worker's claim on a recipient. Only this claim may settle it. */
export interface Claim {
  messageId: string;
  ord: number;
  instanceId: string;
  attempt: number;
}

/** A recipient as it was read, with the number of its tries. */
export type TriedKey = Pick<TriedRecipient, "messageId" | "ord" | "attempts">;

/**
 * The condition that a recipient waits, is due, and has had this number of attempts. Parameters: message, ord, now,
 * attempts.
 */
export const IS_DUE = "message_id = ? AND ord = ? AND due_at <= ? AND claimed_by IS NULL AND attempts = ?";

// Statements are constants, because a new string is hashed at its look-up, which takes a tenth of the statement's
// time.
const DUE = `(EXISTS (SELECT 1 FROM recipients WHERE ${IS_DUE}) AND ${IS_REGISTERED})`;

/**
 * Holds while a claim is possible: the recipient is due and unclaimed, it has not been tried since it was read, and
 * the instance is registered.
 */
export function dueGuard({ messageId, ord, attempts }: TriedKey, instanceId: string, now: number): Guard {
  return { sql: DUE, args: [messageId, ord, now, attempts, instanceId] };
}

/**
 * The condition that a claim holds. It still holds if another process freed it, having taken this one for dead, and no
 * process has claimed the recipient since. The peer's answer must be recorded then, or the message is sent twice.
 */
const CLAIMED =
  "message_id = ? AND ord = ? AND (claimed_by = ? OR (claimed_by IS NULL AND status = 'queued')) AND attempts = ?";

const IS_CLAIMED = `EXISTS (SELECT 1 FROM recipients WHERE ${CLAIMED})`;

/** Holds while the claim does, so that it may be settled. */
export function claimGuard(claim: Claim): Guard {
  return {
    sql: IS_CLAIMED,
    args: [claim.messageId, claim.ord, claim.instanceId, claim.attempt],
  };
}

/** Returns true if the claim has not been freed. A freed claim may still be settled: see `CLAIMED`. */
export async function isClaimHeld(db: Db, { messageId, ord, instanceId, attempt }: Claim): Promise<boolean> {
  const sql = "SELECT 1 FROM recipients WHERE message_id = ? AND ord = ? AND claimed_by = ? AND attempts = ?";
  return (await db.first(sql, [messageId, ord, instanceId, attempt])) !== null;
}

const CLAIM = `UPDATE recipients SET status = 'sending', claimed_by = ?, due_at = NULL, attempts = attempts + 1,
    first_attempt_at = MIN(COALESCE(first_attempt_at, ?), ?), last_event_at = ?
  WHERE ${IS_DUE} AND ${IS_REGISTERED}`;

/**
 * Returns the statement that claims a due recipient for an instance. If it changes no row, another process has the
 * recipient, or it is not due. If the clock was set back, the first attempt may be in the future: this one replaces
 * it, or tries would go on until that time.
 */
export function claimRecipient(
  { messageId, ord, attempts }: TriedKey,
  instanceId: string,
  now: number,
): Statement {
  return {
    sql: CLAIM,
    args: [instanceId, now, now, now, messageId, ord, now, attempts, instanceId],
  };
}

/** The fields of a recipient that an attempt sets. `dueAt`: the next try; null if the status is final. */
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

/** The assignments of an outcome, without those that differ between a try and a report. */
const OUTCOME = `status = ?, reason = ?, mx = ?, tls = ?, smtp_code = ?, enhanced_code = ?, diagnostic = ?,
        last_event_at = ?`;

function outcomeValues(settlement: Settlement, now: number): Value[] {
  const { status, reason, mx, tls, smtpCode, enhancedCode, diagnostic } = settlement;
  return [status, reason, mx, tls, smtpCode, enhancedCode, diagnostic, now];
}

const SETTLE = `UPDATE recipients SET ${OUTCOME}, due_at = ?, claimed_by = NULL
  WHERE ${CLAIMED}`;

/** Returns the statement that ends a claim with its outcome. It changes nothing if the claim no longer holds. */
export function settleRecipient(claim: Claim, settlement: Settlement, now: number): Statement {
  return {
    sql: SETTLE,
    args: [
      ...outcomeValues(settlement, now),
      settlement.dueAt,
      claim.messageId,
      claim.ord,
      claim.instanceId,
      claim.attempt,
    ],
  };
}

/** A recipient as it was read for a report. */
type ReportedKey = Pick<TriedRecipient, "messageId" | "ord" | "status">;

const IS_AS_READ = "message_id = ? AND ord = ? AND claimed_by IS NULL AND status = ?";

/** Holds while no worker delivers to the recipient and its status is as it was read, so that a report may change it. */
export function reportGuard({ messageId, ord, status }: ReportedKey): Guard {
  return {
    sql: `EXISTS (SELECT 1 FROM recipients WHERE ${IS_AS_READ})`,
    args: [messageId, ord, status],
  };
}

/**
 * Returns the statement that gives a recipient the status of a report. It changes nothing if the recipient has changed
 * since it was read.
 */
export function reportRecipient(
  { messageId, ord, status }: ReportedKey,
  settlement: Settlement,
  now: number,
): Statement {
  return {
    sql: `UPDATE recipients SET ${OUTCOME}, due_at = NULL
      WHERE ${IS_AS_READ}`,
    args: [...outcomeValues(settlement, now), messageId, ord, status],
  };
}

const RANK = ROLL_UP_ORDER.map((status, rank) => `WHEN '${status}' THEN ${rank}`).join(" ");
const STATUS = ROLL_UP_ORDER.map((status, rank) => `WHEN ${rank} THEN '${status}'`).join(" ");

/** Takes the least rank: sorting by rank takes a quarter of the statement's time. */
const ROLL_UP = `UPDATE messages SET sent_at = COALESCE(sent_at, ?),
    status = (SELECT CASE MIN(CASE status ${RANK} END) ${STATUS} END FROM recipients WHERE message_id = ?)
  WHERE id = ?`;

/**
 * Returns the statement that derives a message's status from its recipients'. If `sentAt` is given, the message gets
 * it as its time of sending, unless it has one.
 */
export function rollUpMessage(messageId: string, sentAt: number | null): Statement {
  return { sql: ROLL_UP, args: [sentAt, messageId, messageId] };
}

/**
 * Returns the statements that free every claim of an instance if the guard holds. The recipients are due at once, and
 * message statuses follow.
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

/** Returns recipients that an instance has claimed. */
export function claimedKeys(db: Db, instanceId: string, limit: number): Promise<ClaimedKey[]> {
  return db.all<ClaimedKey>(
    "SELECT message_id || '.' || ord AS key, message_id AS messageId, ord FROM recipients WHERE claimed_by = ? LIMIT ?",
    [instanceId, limit],
  );
}

/** Returns the statements that free single claims of an instance. The recipients are due at once. */
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
