import { type IdRange, idCeiling } from "../../core/ids.ts";
import type { Db, Guard, Statement } from "../engine/client.ts";
import { plain, type Row, table } from "../engine/columns.ts";
import { type Place, pageOrder } from "../engine/place.ts";
import { erasedForm, erasedForms } from "./erased-addresses.ts";
import { firstWanted, ownedRows, type Scanned, scanInSteps } from "../matching/steps.ts";
import { type Condition, containsTextOrDomain } from "../matching/substring.ts";

/** The reasons why an address is on the list. */
export const SUPPRESSION_REASONS = ["bounce", "complaint", "manual"] as const;
export type SuppressionReason = (typeof SUPPRESSION_REASONS)[number];

/** An address that a project does not send to. */
export interface NewSuppression {
  id: string;
  senderId: string;
  /** The address's key: all lower case, domain in A-labels. */
  email: string;
  reason: SuppressionReason;
  bounceType: "hard" | "soft" | null;
  messageId: string | null;
  /** Milliseconds; null: it never expires. */
  expiresAt: number | null;
  createdAt: number;
}

/** An entry as lists show it. */
export interface Suppression extends NewSuppression {
  /** The note that the client gave when it added the entry. */
  note: string | null;
}

const SUPPRESSIONS = table<Suppression>("suppressions", {
  id: plain("id"),
  senderId: plain("sender_id"),
  email: plain("email"),
  reason: plain("reason"),
  bounceType: plain("bounce_type"),
  messageId: plain("message_id"),
  note: plain("note"),
  expiresAt: plain("expires_at"),
  createdAt: plain("created_at"),
});

/**
 * Returns the condition that an entry has not expired.
 * @param now SQL, e.g. `?3`, milliseconds
 * @param of the table's alias with a dot; empty if it has none
 */
export function inForce(now: string, of = ""): string {
  return `(${of}expires_at IS NULL OR ${of}expires_at > ${now})`;
}

/** The condition that the entry in the table has expired when a new one (`excluded`) arrives for its address. */
const EXPIRED = "suppressions.expires_at <= excluded.created_at";

/** A filter of entries. `email` is an address key, `q` a case-insensitive substring of it. */
export interface SuppressionFilter {
  email?: string | undefined;
  reason?: SuppressionReason | undefined;
  q?: string | undefined;
}

/**
 * Returns at most `take` of the project's entries that pass the filter and have not expired at `now`, newest first,
 * at a place.
 */
export async function listSuppressions(
  db: Db,
  senderId: string,
  { email, reason, q }: SuppressionFilter,
  now: number,
  place: Place,
  take: number,
): Promise<Scanned<Suppression>> {
  const where: Condition[] = [{ sql: inForce("?"), args: [now] }];
  if (email !== undefined) {
    where.push({ sql: "email IN (?, ?)", args: [email, await erasedForm(db, senderId, email)] });
  }
  if (reason !== undefined) where.push({ sql: "reason = ?", args: [reason] });
  const text = q === undefined ? undefined : containsTextOrDomain(["email"], ["email"], q);
  const owner = { sql: "sender_id = ?", args: [senderId] };
  const order = pageOrder(place, idCeiling("sup"));
  const list = ownedRows<Row>(db, {
    from: "suppressions",
    columns: SUPPRESSIONS.columns,
    owner,
    where,
    text,
    order,
  });
  // An address has at most one entry, which a unique index finds.
  const { rows, stoppedAt } = await (email === undefined ? scanInSteps : firstWanted)(list, order.from, take);
  return { rows: order.newestFirst(rows.map(SUPPRESSIONS.read)), stoppedAt };
}

/** Returns the project's entry of that id that has not expired at `now`; null if there is none. */
export function getSuppression(
  db: Db,
  senderId: string,
  id: string,
  now: number,
): Promise<Suppression | null> {
  return SUPPRESSIONS.first(db, `WHERE sender_id = ? AND id = ? AND ${inForce("?")}`, [senderId, id, now]);
}

/** Returns the project's entries for the address keys that have not expired at `now`, by key. */
export async function findSuppressions(
  db: Db,
  senderId: string,
  emails: readonly string[],
  now: number,
): Promise<Map<string, Suppression>> {
  const erased = await erasedForms(db, senderId, emails);
  const named = `WHERE sender_id = ? AND email IN (SELECT value FROM json_each(?)) AND ${inForce("?")}`;
  const entries = await SUPPRESSIONS.all(db, named, [
    senderId,
    JSON.stringify([...emails, ...erased.keys()]),
    now,
  ]);
  return new Map(entries.map((entry) => [erased.get(entry.email) ?? entry.email, entry]));
}

/**
 * Returns the statements that add an entry, and replace one that has expired at its `createdAt`. If one is in force,
 * they break UNIQUE on `suppressions.sender_id, suppressions.email`.
 */
export function addSuppression(entry: Suppression): Statement[] {
  return [
    {
      sql: "DELETE FROM suppressions WHERE sender_id = ? AND email = ? AND expires_at <= ?",
      args: [entry.senderId, entry.email, entry.createdAt],
    },
    SUPPRESSIONS.insert(entry),
  ];
}

/** Removes an address key from the project's list, if it is there, erased or not. */
export async function removeSuppression(db: Db, senderId: string, email: string): Promise<void> {
  const erased = await erasedForm(db, senderId, email);
  await db.write([
    {
      sql: "DELETE FROM suppressions WHERE sender_id = ? AND email IN (?, ?)",
      args: [senderId, email, erased],
    },
  ]);
}

/** Returns the statements that leave only a keyed hash of an address in the project's list, without note and message. */
export function eraseSuppression(senderId: string, email: string, erased: string): Statement[] {
  return [
    // Counted by triggers, so a row that would be replaced goes first.
    {
      sql: `DELETE FROM suppressions WHERE sender_id = ?1 AND email = ?3
        AND EXISTS (SELECT 1 FROM suppressions WHERE sender_id = ?1 AND email = ?2)`,
      args: [senderId, email, erased],
    },
    {
      sql: "UPDATE suppressions SET email = ?, note = NULL, message_id = NULL WHERE sender_id = ? AND email = ?",
      args: [erased, senderId, email],
    },
  ];
}

/**
 * Returns the statement that adds an address or makes its entry last longer. A hard bounce or complaint replaces a
 * soft bounce that expires; nothing shortens an entry. An expired entry is replaced as a whole.
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

/** An entry of any project. `mayGo` is true if it had expired by a time. */
export interface OldSuppression {
  id: string;
  mayGo: boolean;
}

/** Returns the entries of a range, oldest first, with whether they had expired by `before` (milliseconds). */
export async function oldSuppressions(db: Db, range: IdRange, before: number): Promise<OldSuppression[]> {
  const rows = await db.all<{ id: string; may_go: number }>(
    `SELECT id, COALESCE(expires_at <= ?, 0) AS may_go FROM suppressions
      WHERE id > ? AND id < ? ORDER BY id LIMIT ?`,
    [before, range.after, range.below, range.limit],
  );
  return rows.map((row) => ({ id: row.id, mayGo: row.may_go === 1 }));
}

/**
 * Returns the statement that deletes entries that had expired by `before` (milliseconds). An entry that was renewed
 * since stays.
 */
export function deleteExpiredSuppressions(ids: readonly string[], before: number): Statement {
  return {
    sql: "DELETE FROM suppressions WHERE id IN (SELECT value FROM json_each(?)) AND expires_at <= ?",
    args: [JSON.stringify(ids), before],
  };
}
