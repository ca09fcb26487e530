import { idCeiling } from "../core/ids.ts";
import { type ConfigurationQuery, type Db, firstReturned, type Statement } from "./engine/client.ts";
import { forgetReputation } from "./reputation.ts";

/** A project. Times in milliseconds; `dailyQuota` in recipients a UTC day, null where only the trust tier binds. */
export interface Sender {
  id: string;
  accountId: string;
  externalId: string;
  name: string;
  plan: string;
  trustTier: string;
  dailyQuota: number | null;
  trackOpens: boolean;
  trackClicks: boolean;
  suspendedAt: number | null;
  createdAt: number;
}

/** A row of `senders` as `SENDER_COLUMNS` reads it. */
export interface SenderRow {
  id: string;
  account_id: string;
  external_id: string;
  name: string;
  plan: string;
  trust_tier: string;
  daily_quota: number | null;
  track_opens: number;
  track_clicks: number;
  suspended_at: number | null;
  created_at: number;
}

const SENDER_COLUMNS = `id, account_id, external_id, name, plan, trust_tier, daily_quota,
  track_opens, track_clicks, suspended_at, created_at`;

/** What of a sender may be changed. */
export type SenderChanges = Partial<
  Pick<
    Sender,
    "name" | "plan" | "trustTier" | "dailyQuota" | "trackOpens" | "trackClicks" | "suspendedAt" | "externalId"
  >
>;

/** The sender behind a row. */
export function senderOf(row: SenderRow): Sender {
  return {
    id: row.id,
    accountId: row.account_id,
    externalId: row.external_id,
    name: row.name,
    plan: row.plan,
    trustTier: row.trust_tier,
    dailyQuota: row.daily_quota,
    trackOpens: row.track_opens === 1,
    trackClicks: row.track_clicks === 1,
    suspendedAt: row.suspended_at,
    createdAt: row.created_at,
  };
}

/** The statement that makes a sender. A taken external id breaks UNIQUE on `senders.account_id, senders.external_id`. */
export function insertSender(sender: Sender): Statement {
  return {
    sql: `INSERT INTO senders (${SENDER_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    args: [
      sender.id,
      sender.accountId,
      sender.externalId,
      sender.name,
      sender.plan,
      sender.trustTier,
      sender.dailyQuota,
      sender.trackOpens ? 1 : 0,
      sender.trackClicks ? 1 : 0,
      sender.suspendedAt,
      sender.createdAt,
    ],
  };
}

const SENDER_BY_NAME: ConfigurationQuery<SenderRow, Sender> = {
  sql: `SELECT ${SENDER_COLUMNS} FROM senders
    WHERE account_id = ?1 AND (id = ?2 OR external_id = ?2) ORDER BY id = ?2 DESC LIMIT 1`,
  read: (row) => senderOf(row),
};

/** The account's sender of that id or external id; null where there is none. An id goes before an external id. */
export function findSender(db: Db, accountId: string, name: string): Promise<Sender | null> {
  return db.recall(SENDER_BY_NAME, [accountId, name]);
}

/** The account's sender of that id; null where there is none. */
export async function getSender(db: Db, accountId: string, id: string): Promise<Sender | null> {
  const row = await db.first<SenderRow>(
    `SELECT ${SENDER_COLUMNS} FROM senders WHERE account_id = ? AND id = ?`,
    [accountId, id],
  );
  return row === null ? null : senderOf(row);
}

/** The account's senders, newest first, after the id `after`, at most `take`. */
export async function listSenders(
  db: Db,
  accountId: string,
  after: string | null,
  take: number,
): Promise<Sender[]> {
  const rows = await db.all<SenderRow>(
    `SELECT ${SENDER_COLUMNS} FROM senders
     WHERE account_id = ? AND id < ? ORDER BY id DESC LIMIT ?`,
    [accountId, after ?? idCeiling("snd"), take],
  );
  return rows.map(senderOf);
}

/**
 * Sets what `changes` names and leaves the rest; lifting a suspension forgets what it was for. Returns the sender
 * after it; null where there is none.
 */
export async function updateSender(
  db: Db,
  accountId: string,
  id: string,
  changes: SenderChanges,
): Promise<Sender | null> {
  const before = await getSender(db, accountId, id);
  if (before === null) return null;
  const columns: [string, string | number | null | undefined][] = [
    ["name", changes.name],
    ["external_id", changes.externalId],
    ["plan", changes.plan],
    ["trust_tier", changes.trustTier],
    ["daily_quota", changes.dailyQuota],
    ["track_opens", changes.trackOpens === undefined ? undefined : Number(changes.trackOpens)],
    ["track_clicks", changes.trackClicks === undefined ? undefined : Number(changes.trackClicks)],
    ["suspended_at", changes.suspendedAt],
  ];
  const set = columns.flatMap(([name, value]) => (value === undefined ? [] : [{ name, value }]));
  if (set.length === 0) return before;
  const written = await db.write([
    ...(changes.suspendedAt === null ? [forgetReputation(accountId, id)] : []),
    {
      // Read later it may be as another request did.
      sql: `UPDATE senders SET ${set.map(({ name }) => `${name} = ?`).join(", ")} WHERE account_id = ? AND id = ?
        RETURNING ${SENDER_COLUMNS}`,
      args: [...set.map(({ value }) => value), accountId, id],
    },
  ]);
  const row = firstReturned<SenderRow>(written.at(-1));
  return row === null ? null : senderOf(row);
}
