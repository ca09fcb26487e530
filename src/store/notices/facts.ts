import type { Db } from "../engine/client.ts";
import { utcDay } from "../projects/usage.ts";

// The facts of notices that rows show, of all accounts: the chore that raises notices reads them. The hidden project of the
// service's own mail has none but its webhook, which carries the notices: those are mailed and never pushed to itself.

/** Something that is true now and needs people. */
export interface Fact {
  accountId: string;
  senderId: string | null;
  subjectId: string;
  subject: string;
  detail: string | null;
}

/** Condition of the projects that notices are about. @param s the alias of `senders` */
const SHOWN = "s.external_id <> '.postrider' AND s.deleted_at IS NULL";

const OF_PROJECT = "s.account_id AS accountId, s.id AS senderId";

/** Returns verified domains with a missing record, and those that have fallen back to pending. */
export function failingDomains(db: Db, take: number): Promise<Fact[]> {
  return db.all(
    `SELECT ${OF_PROJECT}, d.id AS subjectId, d.name AS subject, NULL AS detail
      FROM domains d JOIN senders s ON s.id = d.sender_id
      WHERE ${SHOWN} AND iif(d.status = 'verified', d.failing_since, d.verified_at) IS NOT NULL ORDER BY d.id LIMIT ?`,
    [take],
  );
}

/** Returns suspended projects. */
export function suspendedProjects(db: Db, take: number): Promise<Fact[]> {
  return db.all(
    `SELECT ${OF_PROJECT}, s.id AS subjectId, s.external_id AS subject, NULL AS detail
      FROM senders s WHERE ${SHOWN} AND s.suspended_at IS NOT NULL ORDER BY s.id LIMIT ?`,
    [take],
  );
}

/** Returns the shown projects among those ids, as facts about them. */
export function projectsAmong(db: Db, ids: readonly string[]): Promise<Fact[]> {
  return db.all(
    `SELECT ${OF_PROJECT}, s.id AS subjectId, s.external_id AS subject, NULL AS detail
      FROM json_each(?) wanted JOIN senders s ON s.id = wanted.value WHERE ${SHOWN}`,
    [JSON.stringify(ids)],
  );
}

/** Project and webhook. One that carries notices is of the account, and of no project that its owner sees. */
const OF_WEBHOOK = `s.account_id AS accountId, iif(s.external_id = '.postrider', NULL, s.id) AS senderId, w.id AS subjectId, w.url`;
/** Condition of the webhooks that notices are about. */
const KNOWN = "s.deleted_at IS NULL AND w.deleted_at IS NULL";

interface WebhookRow extends Omit<Fact, "subject"> {
  url: string;
}

/** Shows the host of a webhook alone, because its path may hold a secret of its owner. */
function hostShown({ url, ...fact }: WebhookRow): Fact {
  return { ...fact, subject: URL.parse(url)?.host ?? "its URL" };
}

/** Returns enabled webhooks that have only failed since that time or longer. */
export async function failingWebhooks(db: Db, since: number, take: number): Promise<Fact[]> {
  const rows = await db.all<WebhookRow>(
    `SELECT ${OF_WEBHOOK}, NULL AS detail FROM webhooks w JOIN senders s ON s.id = w.sender_id
      WHERE ${KNOWN} AND w.enabled = 1 AND w.failing_since <= ? ORDER BY w.id LIMIT ?`,
    [since, take],
  );
  return rows.map(hostShown);
}

/** Returns webhooks that the service has disabled. */
export async function disabledWebhooks(db: Db, take: number): Promise<Fact[]> {
  const rows = await db.all<WebhookRow>(
    `SELECT ${OF_WEBHOOK}, w.disabled_reason AS detail FROM webhooks w JOIN senders s ON s.id = w.sender_id
      WHERE ${KNOWN} AND w.enabled = 0 AND w.disabled_reason IS NOT NULL ORDER BY w.id LIMIT ?`,
    [take],
  );
  return rows.map(hostShown);
}

/** A project that has nearly used up its recipients of a UTC day. */
export interface NearVolume {
  accountId: string;
  senderId: string;
  externalId: string;
  recipients: number;
  limit: number;
}

/** Recipients a day of a project without a limit. */
const UNLIMITED = Number.MAX_SAFE_INTEGER;

/**
 * Returns the projects that have used `share` of their recipients of the UTC day.
 * @param tiers recipients a day of each trust tier; null: there is no limit
 */
export function nearVolumes(
  db: Db,
  { tiers, defaultTrustTier }: { tiers: Readonly<Record<string, number | null>>; defaultTrustTier: string },
  { now, share, take }: { now: number; share: number; take: number },
): Promise<NearVolume[]> {
  const limits = Object.fromEntries(Object.entries(tiers).map(([name, limit]) => [name, limit ?? UNLIMITED]));
  return db.all(
    `SELECT * FROM (SELECT ${OF_PROJECT}, s.external_id AS externalId, u.recipients,
        MIN(COALESCE(s.daily_quota, ?1), COALESCE((SELECT value FROM json_each(?2) WHERE key = s.trust_tier), ?3)) AS "limit"
      FROM usage u JOIN senders s ON s.id = u.sender_id WHERE u.day = ?4 AND ${SHOWN})
      WHERE recipients >= "limit" * ?5 ORDER BY senderId LIMIT ?6`,
    [UNLIMITED, JSON.stringify(limits), limits[defaultTrustTier] ?? UNLIMITED, utcDay(now), share, take],
  );
}

/** Returns the account that notices about the installation are for, and when it was made; null before the first start. */
export function operatorAccount(db: Db): Promise<{ id: string; createdAt: number } | null> {
  return db.first("SELECT id, created_at AS createdAt FROM accounts ORDER BY rowid LIMIT 1");
}
