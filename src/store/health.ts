import { closeSync, openSync, readSync, statSync } from "node:fs";
import type { Db } from "./engine/client.ts";
import { type Domain, getDomain } from "./domains.ts";

/**
 * The header of a database file (https://www.sqlite.org/fileformat.html §1.3): its octets, the text that it begins with,
 * and at octet 18 the version of the format that writers use, which is 2 for a write-ahead log.
 */
const HEADER_OCTETS = 100;
const MAGIC = "SQLite format 3\0";
const WRITE_VERSION_AT = 18;
const WAL_VERSION = 2;

/** What a database file says of itself, without opening it as a database, and its size with its log. Throws where it is none. */
export function databaseHeader(path: string): { wal: boolean; bytes: number } {
  const log = statSync(`${path}-wal`, { throwIfNoEntry: false });
  const bytes = statSync(path).size + (log?.size ?? 0);
  const header = Buffer.alloc(HEADER_OCTETS);
  const file = openSync(path, "r");
  try {
    readSync(file, header, 0, HEADER_OCTETS, 0);
  } finally {
    closeSync(file);
  }
  if (header.toString("latin1", 0, MAGIC.length) !== MAGIC) throw new Error(`${path} is no database file`);
  return { wal: header[WRITE_VERSION_AT] === WAL_VERSION, bytes };
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
