import { statSync } from "node:fs";
import type { Db } from "./engine/client.ts";
import { type Domain, getDomain } from "./domains.ts";

/**
 * Octets of a database file with its log. It is not opened for that: a process that closes a file loses all its locks on
 * it, SQLite's too (https://sqlite.org/howtocorrupt.html §2.2), and the next program that is done with the database would
 * remove the log that we go on writing.
 */
export function databaseOctets(path: string): number {
  return statSync(path).size + (statSync(`${path}-wal`, { throwIfNoEntry: false })?.size ?? 0);
}

/** Schema steps that have been applied; none where there is no ledger. Changes nothing. */
export async function appliedVersions(db: Db): Promise<number[]> {
  const ledger = await db.first("SELECT 1 FROM sqlite_schema WHERE name = 'schema_migrations'");
  if (ledger === null) return [];
  const rows = await db.all<{ version: number }>("SELECT version FROM schema_migrations ORDER BY version");
  return rows.map(({ version }) => version);
}

/** Looks at every page: gives at most `limit` faults. Holds the thread, and no writer of another process. */
export async function quickCheck(db: Db, limit: number): Promise<string[]> {
  const rows = await db.all<{ quick_check: string }>(`PRAGMA quick_check(${Math.floor(limit)})`);
  const faults = rows.map((row) => row.quick_check);
  return faults.length === 1 && faults[0] === "ok" ? [] : faults;
}

/** The clock of the database, milliseconds: a server's own, else this machine's. */
export async function databaseTime(db: Db): Promise<number> {
  const row = await db.first<{ now: number }>(
    "SELECT CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER) AS now",
  );
  return row?.now ?? 0;
}

/** Domains of all projects, oldest first, at most `limit`. For the operator, who looks after all of them. */
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
