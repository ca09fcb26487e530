import { idCeiling } from "../core/ids.ts";
import type { Db, Guard, Statement } from "./engine/client.ts";
import { firstWanted, ownedRows, type Scanned, scanInSteps } from "./search/steps.ts";
import { type Condition, containsText } from "./search/substring.ts";
import type { Stretch } from "./retention.ts";

/** Why an address is on the list. */
export const SUPPRESSION_REASONS = ["bounce", "complaint", "manual"] as const;
export type SuppressionReason = (typeof SUPPRESSION_REASONS)[number];

/** An address a project does not send to. */
export interface NewSuppression {
  id: string;
  senderId: string;
  /** The address's key: all lower case, domain in A-labels. */
  email: string;
  reason: SuppressionReason;
  bounceType: "hard" | "soft" | null;
  messageId: string | null;
  /** Milliseconds; null: for good. */
  expiresAt: number | null;
  createdAt: number;
}

/** An entry as lists show it. */
export interface Suppression extends NewSuppression {
  /** What was written down when it was added by hand. */
  note: string | null;
}

interface Row {
  id: string;
  sender_id: string;
  email: string;
  reason: SuppressionReason;
  bounce_type: "hard" | "soft" | null;
  message_id: string | null;
  note: string | null;
  expires_at: number | null;
  created_at: number;
}

const COLUMNS = "id, sender_id, email, reason, bounce_type, message_id, note, expires_at, created_at";
/**
 * Whether an entry has not expired.
 * @param now e.g. `?3`, milliseconds
 * @param of what the table goes by, with a dot behind it; nothing where it has no name of its own
 */
export function inForce(now: string, of = ""): string {
  return `(${of}expires_at IS NULL OR ${of}expires_at > ${now})`;
}

/** Whether the entry in the table has expired when a new one (`excluded`) comes for its address. */
const EXPIRED = "suppressions.expires_at <= excluded.created_at";

function suppressionOf(row: Row): Suppression {
  return {
    id: row.id,
    senderId: row.sender_id,
    email: row.email,
    reason: row.reason,
    bounceType: row.bounce_type,
    messageId: row.message_id,
    note: row.note,
    expiresAt: row.expires_at,
    createdAt: row.created_at,
  };
}

/** What a list may be narrowed by. `email` is an address key, `q` a case-insensitive substring of it. */
export interface SuppressionFilter {
  email?: string | undefined;
  reason?: SuppressionReason | undefined;
  q?: string | undefined;
}

/** The project's entries that pass the filter and have not expired at `now`, newest first, behind the id `after`, at most `take`. */
export async function listSuppressions(
  db: Db,
  senderId: string,
  { email, reason, q }: SuppressionFilter,
  now: number,
  after: string | null,
  take: number,
): Promise<Scanned<Suppression>> {
  const where: Condition[] = [{ sql: inForce("?"), args: [now] }];
  if (email !== undefined) where.push({ sql: "email = ?", args: [email] });
  if (reason !== undefined) where.push({ sql: "reason = ?", args: [reason] });
  const text = q === undefined ? undefined : containsText(["email"], q);
  const owner = { sql: "sender_id = ?", args: [senderId] };
  const list = ownedRows<Row>(db, { from: "suppressions", columns: COLUMNS, owner, where, text });
  const start = after ?? idCeiling("sup");
  // An address has one entry at most, by an index of its own.
  const { rows, stoppedAt } = await (email === undefined ? scanInSteps : firstWanted)(list, start, take);
  return { rows: rows.map(suppressionOf), stoppedAt };
}

/** The project's entries for the address keys that have not expired at `now`, by their key. */
export async function findSuppressions(
  db: Db,
  senderId: string,
  emails: readonly string[],
  now: number,
): Promise<Map<string, Suppression>> {
  const rows = await db.all<Row>(
    `SELECT ${COLUMNS} FROM suppressions WHERE sender_id = ? AND email IN (SELECT value FROM json_each(?))
      AND ${inForce("?")}`,
    [senderId, JSON.stringify(emails), now],
  );
  return new Map(rows.map((row) => [row.email, suppressionOf(row)]));
}

/**
 * The statements that add an entry in the place of one that has expired at its `createdAt`. One that stands breaks
 * UNIQUE on `suppressions.sender_id, suppressions.email`.
 */
export function addSuppression(entry: Suppression): Statement[] {
  return [
    {
      sql: "DELETE FROM suppressions WHERE sender_id = ? AND email = ? AND expires_at <= ?",
      args: [entry.senderId, entry.email, entry.createdAt],
    },
    {
      sql: `INSERT INTO suppressions (${COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
      args: [
        entry.id,
        entry.senderId,
        entry.email,
        entry.reason,
        entry.bounceType,
        entry.messageId,
        entry.note,
        entry.expiresAt,
        entry.createdAt,
      ],
    },
  ];
}

/** Takes an address key off the project's list, whether it stood there or not. */
export async function removeSuppression(db: Db, senderId: string, email: string): Promise<void> {
  await db.write([
    { sql: "DELETE FROM suppressions WHERE sender_id = ? AND email = ?", args: [senderId, email] },
  ]);
}

/**
 * Adds an address, or makes an entry that stands longer-lasting: a hard bounce or complaint replaces a soft bounce
 * that expires; nothing shortens an entry. An expired entry counts as absent: the new one takes its place whole.
 */
export function suppress(entry: NewSuppression, guard?: Guard): Statement {
  return {
    sql: `INSERT INTO suppressions (id, sender_id, email, reason, bounce_type, message_id, expires_at, created_at)
      SELECT ?, ?, ?, ?, ?, ?, ?, ? WHERE ${guard?.sql ?? "1"}
      ON CONFLICT (sender_id, email) DO UPDATE SET reason = excluded.reason, bounce_type = excluded.bounce_type,
        message_id = excluded.message_id, expires_at = excluded.expires_at,
        id = CASE WHEN ${EXPIRED} THEN excluded.id ELSE suppressions.id END,
        note = CASE WHEN ${EXPIRED} THEN NULL ELSE suppressions.note END,
        created_at = CASE WHEN ${EXPIRED} THEN excluded.created_at ELSE suppressions.created_at END
      WHERE suppressions.expires_at IS NOT NULL
        AND (excluded.expires_at IS NULL OR excluded.expires_at > suppressions.expires_at)`,
    args: [
      entry.id,
      entry.senderId,
      entry.email,
      entry.reason,
      entry.bounceType,
      entry.messageId,
      entry.expiresAt,
      entry.createdAt,
      ...(guard?.args ?? []),
    ],
  };
}

/** An entry of any project, and whether it had expired by a time. */
export interface OldSuppression {
  id: string;
  mayGo: boolean;
}

/** Entries of a stretch, oldest first, with whether they had expired by `before` (milliseconds). */
export async function oldSuppressions(db: Db, stretch: Stretch, before: number): Promise<OldSuppression[]> {
  const rows = await db.all<{ id: string; may_go: number }>(
    `SELECT id, COALESCE(expires_at <= ?, 0) AS may_go FROM suppressions
      WHERE id > ? AND id < ? ORDER BY id LIMIT ?`,
    [before, stretch.after, stretch.below, stretch.limit],
  );
  return rows.map((row) => ({ id: row.id, mayGo: row.may_go === 1 }));
}

/** Deletes entries that had expired by `before` (milliseconds); one that was made longer-lasting meanwhile stays. */
export function deleteExpiredSuppressions(ids: readonly string[], before: number): Statement {
  return {
    sql: "DELETE FROM suppressions WHERE id IN (SELECT value FROM json_each(?)) AND expires_at <= ?",
    args: [JSON.stringify(ids), before],
  };
}
