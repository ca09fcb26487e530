import { createHash } from "node:crypto";
import initial from "../../../db/migrations/0001_initial.sql" with { type: "text" };
import type { Db, Statement } from "./client.ts";

/** One step of the schema. Steps are only appended; an applied step never changes. */
export interface Migration {
  version: number;
  name: string;
  sql: string;
}

/** All steps in order. Their SQL is part of the program. */
export const MIGRATIONS: readonly Migration[] = [{ version: 1, name: "initial", sql: initial }];

/** A step and the time when it was applied, milliseconds; null if it was not. */
export interface MigrationState {
  version: number;
  name: string;
  appliedAt: number | null;
}

const LEDGER = `CREATE TABLE IF NOT EXISTS schema_migrations (
  version INTEGER PRIMARY KEY,
  name TEXT NOT NULL,
  checksum TEXT NOT NULL,
  applied_at INTEGER NOT NULL
) STRICT`;

interface LedgerRow {
  version: number;
  checksum: string;
  applied_at: number;
}

function checksum(migration: Migration): string {
  return createHash("sha256").update(migration.sql).digest("hex");
}

/** Splits a migration into statements: one ends with `;` at the end of a line, or with `END;` for a trigger. */
export function splitStatements(sql: string): string[] {
  const statements: string[] = [];
  let lines: string[] = [];
  let inTrigger = false;
  for (const line of sql.split("\n")) {
    const bare = line.trim();
    if (lines.length === 0 && (bare === "" || bare.startsWith("--"))) continue;
    lines.push(line);
    if (/^BEGIN$/i.test(bare)) inTrigger = true;
    if (inTrigger ? /^END;$/i.test(bare) : bare.endsWith(";")) {
      statements.push(lines.join("\n"));
      lines = [];
      inTrigger = false;
    }
  }
  if (lines.length > 0) throw new Error(`unfinished statement in migration: ${lines[0]}`);
  return statements;
}

async function ledger(db: Db): Promise<Map<number, LedgerRow>> {
  await db.migrate([{ sql: LEDGER, args: [] }]);
  const rows = await db.all<LedgerRow>("SELECT version, checksum, applied_at FROM schema_migrations");
  return new Map(rows.map((row) => [row.version, row]));
}

/** Returns true if the database has no tables: no process has started with it. */
export async function isEmpty(db: Db): Promise<boolean> {
  return (await db.first("SELECT 1 FROM sqlite_master LIMIT 1")) === null;
}

/** Lists the steps and when each was applied. */
export async function migrationStates(db: Db): Promise<MigrationState[]> {
  const applied = await ledger(db);
  return MIGRATIONS.map(({ version, name }) => ({
    version,
    name,
    appliedAt: applied.get(version)?.applied_at ?? null,
  }));
}

/**
 * Returns true if no step is missing.
 * @throws if the database is from a newer or an unknown version of the program
 */
export async function isUpToDate(db: Db): Promise<boolean> {
  const applied = await ledger(db);
  refuseUnknown(applied, MIGRATIONS);
  return MIGRATIONS.every(({ version }) => applied.has(version));
}

/** Throws if the database has a step that this program does not know, because its writes could break that step's rules. */
function refuseUnknown(applied: ReadonlyMap<number, LedgerRow>, steps: readonly Migration[]): void {
  const changed = steps.find((step) => {
    const row = applied.get(step.version);
    return row !== undefined && row.checksum !== checksum(step);
  });
  if (changed !== undefined)
    throw new Error(
      `the database was made by another version of Postrider, which had a different schema step ${changed.version} (${changed.name}). Run that version, or start with an empty DATA_DIR`,
    );
  const newest = Math.max(0, ...applied.keys());
  const ours = Math.max(...steps.map(({ version }) => version));
  if (newest > ours)
    throw new Error(
      `the database is at schema ${newest}, newer than this program's ${ours}: run the newer program, or restore a backup`,
    );
}

/**
 * Brings the schema up to date. Each step is a separate transaction; a new database gets all of them in one.
 * @param now milliseconds
 * @param steps all steps in order; tests add their own
 * @returns the versions applied now
 * @throws if the database is from a newer or an unknown version of the program
 */
export async function migrate(
  db: Db,
  now: number,
  steps: readonly Migration[] = MIGRATIONS,
): Promise<number[]> {
  const applied = await ledger(db);
  refuseUnknown(applied, steps);
  const missing = steps.filter(({ version }) => !applied.has(version));
  const done: number[] = [];
  // Each commit waits for the disk, so a new database gets all steps at once.
  for (const together of applied.size === 0 ? [missing] : missing.map((step) => [step]))
    if (await apply(db, together, now)) done.push(...together.map(({ version }) => version));
  return done;
}

/** Applies steps as one transaction. Returns false if another process has just done so. */
async function apply(db: Db, steps: readonly Migration[], now: number): Promise<boolean> {
  try {
    await db.migrate(steps.flatMap((step) => statementsOf(step, now)));
    return true;
  } catch (error) {
    const applied = await ledger(db);
    if (steps.every(({ version }) => applied.has(version))) return false;
    throw error;
  }
}

/** The ledger's row is first: if two processes start together, the second one fails at it. */
function statementsOf(migration: Migration, now: number): Statement[] {
  const record = {
    sql: "INSERT INTO schema_migrations (version, name, checksum, applied_at) VALUES (?, ?, ?, ?)",
    args: [migration.version, migration.name, checksum(migration), now],
  };
  return [record, ...splitStatements(migration.sql).map((sql) => ({ sql, args: [] }))];
}
