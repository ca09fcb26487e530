import { statSync } from "node:fs";
import type { Db } from "../engine/client.ts";
import { type Domain, getDomain } from "../domains/domains.ts";

/** The mode of `PRAGMA synchronous` from which SQLite waits for the disk at each commit. */
const FULL = 2;

/**
 * Returns the octets of a database file and its write-ahead log. The file is not opened: a process that closes a file
 * loses all its locks on it, also SQLite's (https://sqlite.org/howtocorrupt.html §2.2). Another program could then
 * remove the log that we still write.
 */
export function databaseOctets(path: string): number {
  return statSync(path).size + (statSync(`${path}-wal`, { throwIfNoEntry: false })?.size ?? 0);
}

/**
 * Returns false if a commit may be answered before it is on the disk of the database: sqld's default. Then a power cut can
 * undo it. True also if the server does not say.
 */
export async function commitsReachDisk(db: Db): Promise<boolean> {
  const row = await db.first<{ synchronous: number }>("PRAGMA synchronous").catch(() => null);
  return (row?.synchronous ?? FULL) >= FULL;
}

/** Checks every page and returns at most `limit` faults. It blocks this thread, but no writer of another process. */
export async function quickCheck(db: Db, limit: number): Promise<string[]> {
  const rows = await db.all<{ quick_check: string }>(`PRAGMA quick_check(${Math.floor(limit)})`);
  const faults = rows.map((row) => row.quick_check);
  return faults.length === 1 && faults[0] === "ok" ? [] : faults;
}

/** Returns the time of the database in milliseconds: a server's clock, or this machine's. */
export async function databaseTime(db: Db): Promise<number> {
  const row = await db.first<{ now: number }>(
    "SELECT CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER) AS now",
  );
  return row?.now ?? 0;
}

/** Returns at most `limit` domains of all projects, oldest first, for the operator. */
export async function domainsOfAll(db: Db, limit: number): Promise<Domain[]> {
  const rows = await db.all<{ id: string; sender_id: string }>(
    "SELECT id, sender_id FROM domains ORDER BY id LIMIT ?",
    [limit],
  );
  const found: Domain[] = [];
  for (const { id, sender_id } of rows) {
    const domain = await getDomain(db, sender_id, id);
    if (domain !== null) found.push(domain);
  }
  return found;
}

/** Things of all projects that need somebody, by kind. */
export interface Troubles {
  /** Domains that were verified and whose records are wrong now. */
  domains_failing: number;
  projects_suspended: number;
  /** Webhooks that the service switched off, because they failed for too long. */
  webhooks_disabled: number;
}

/** Counts what needs somebody. */
export async function countTroubles(db: Db): Promise<Troubles> {
  const counts = await db.first<Troubles>(`SELECT
    (SELECT COUNT(*) FROM domains WHERE failing_since IS NOT NULL OR (verified_at IS NOT NULL AND status = 'pending'))
      AS domains_failing,
    (SELECT COUNT(*) FROM senders WHERE suspended_at IS NOT NULL) AS projects_suspended,
    (SELECT COUNT(*) FROM webhooks WHERE enabled = 0 AND disabled_reason IS NOT NULL AND deleted_at IS NULL)
      AS webhooks_disabled`);
  return counts ?? { domains_failing: 0, projects_suspended: 0, webhooks_disabled: 0 };
}
