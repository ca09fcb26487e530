import { createHash } from "node:crypto";
import { SettingsError } from "../../core/errors.ts";
import { type Clock, sleep } from "../../core/time/clock.ts";
import { changesRow, type Db, type Statement, type Value } from "./client.ts";
import { type Fill, type Migration, MIGRATIONS } from "./migrations.ts";

/** Rows of one commit of a walk. */
export const ROWS_PER_FILL = 500;
/** Shortest pause after each commit of a walk, milliseconds. It is as long as the commit took if that is more. */
const MIN_PAUSE_MS = 10;

/** A step and the time when it was applied, milliseconds; null if it was not. */
export interface MigrationState {
  version: number;
  name: string;
  appliedAt: number | null;
}

/** The database is from a version of the program whose schema this one cannot work with. A restart does not help. */
export class SchemaRefusal extends SettingsError {}

const LEDGER = `CREATE TABLE IF NOT EXISTS schema_migrations (
  version INTEGER PRIMARY KEY,
  name TEXT NOT NULL,
  checksum TEXT NOT NULL,
  works_with INTEGER NOT NULL,
  applied_at INTEGER NOT NULL,
  filled_at INTEGER
) STRICT`;

interface LedgerRow {
  version: number;
  checksum: string;
  /** Missing in databases of checkouts from before the first release. */
  works_with?: number;
  applied_at: number;
  filled_at?: number | null;
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

/** Reads the applied steps by version; none if there is no ledger. Changes nothing. */
async function ledger(db: Db): Promise<Map<number, LedgerRow>> {
  const made = await db.first("SELECT 1 FROM sqlite_schema WHERE name = 'schema_migrations'");
  const rows = made === null ? [] : await db.all<LedgerRow>("SELECT * FROM schema_migrations");
  return new Map(rows.map((row) => [row.version, row]));
}

/** Returns the newest applied step, whichever build has applied it; 0 if there is none. */
export async function newestStep(reader: {
  all<Row>(sql: string, args: Value[]): Promise<Row[]>;
}): Promise<number> {
  const [row] = await reader.all<{ newest: number | null }>(
    "SELECT MAX(version) AS newest FROM schema_migrations",
    [],
  );
  return row?.newest ?? 0;
}

/** Returns true if the database has no tables: no process has started with it. */
export async function isEmpty(db: Db): Promise<boolean> {
  return (await db.first("SELECT 1 FROM sqlite_master LIMIT 1")) === null;
}

/**
 * Lists the steps and when each was applied. Changes nothing.
 * @throws SchemaRefusal if this program cannot work with the database
 */
export async function migrationStates(
  db: Db,
  steps: readonly Migration[] = MIGRATIONS,
): Promise<MigrationState[]> {
  const applied = await ledger(db);
  refuseForeign(applied, steps);
  return steps.map(({ version, name }) => ({
    version,
    name,
    appliedAt: applied.get(version)?.applied_at ?? null,
  }));
}

/** Throws if a step is another one than ours of that version, or if a newer step needs a newer program. */
function refuseForeign(applied: ReadonlyMap<number, LedgerRow>, steps: readonly Migration[]): void {
  const changed = steps.find((step) => {
    const row = applied.get(step.version);
    return row !== undefined && row.checksum !== checksum(step);
  });
  if (changed !== undefined)
    throw new SchemaRefusal(
      `the database was made by another build of Postrider, which had a different schema step ${changed.version} (${changed.name}). Run that build, or take its content into an empty DATA_DIR by postrider export and import`,
    );
  const ours = Math.max(...steps.map(({ version }) => version));
  const needed = Math.max(0, ...[...applied.values()].map((row) => row.works_with ?? row.version));
  const newest = Math.max(0, ...applied.keys());
  if (needed > ours)
    throw new SchemaRefusal(
      `the database is at schema ${newest}, which needs a program with schema ${needed}; this program has ${ours}. Run the newer program, or restore a backup`,
    );
}

/**
 * Brings the schema up to date. Each step is a separate transaction; a new database gets all of them in one. After a
 * step, its rows are filled in by small commits, between which other processes write. A process that ends in between is
 * followed by one that continues.
 * @param now milliseconds
 * @param steps all steps in order; tests add their own
 * @param clock measures the pauses in which others write; without it there are none
 * @returns the versions applied now
 * @throws SchemaRefusal if this program cannot work with the database
 */
export async function migrate(
  db: Db,
  now: number,
  steps: readonly Migration[] = MIGRATIONS,
  clock?: Clock,
): Promise<number[]> {
  await db.migrate([{ sql: LEDGER, args: [] }]);
  const applied = await ledger(db);
  refuseForeign(applied, steps);
  const missing = steps.filter(({ version }) => !applied.has(version));
  const done: number[] = [];
  // Each commit waits for the disk, so a new database gets all steps at once.
  for (const together of applied.size === 0 ? [missing] : missing.map((step) => [step]))
    if (await apply(db, together, now)) done.push(...together.map(({ version }) => version));
  const step = paced(clock);
  for (const { version, fill: walks = [] } of steps) {
    if (walks.length === 0 || (applied.get(version)?.filled_at ?? null) !== null) continue;
    for (const walk of walks) await fill(db, walk, step);
    await changesRow(db, "UPDATE schema_migrations SET filled_at = ? WHERE version = ?", [now, version]);
  }
  return done;
}

/** Returns what runs a commit of a fill, and then lets others write for at least as long. */
function paced(clock: Clock | undefined): (commit: () => Promise<unknown>) => Promise<void> {
  return async (commit) => {
    const begun = clock?.elapsed() ?? 0;
    await commit();
    if (clock !== undefined) await sleep(clock, Math.max(MIN_PAUSE_MS, clock.elapsed() - begun));
  };
}

async function fill(
  db: Db,
  { table, by, sql }: Fill,
  step: (commit: () => Promise<unknown>) => Promise<void>,
): Promise<void> {
  let args: Value[] = [];
  for (;;) {
    const range: { first: Value; last: Value } | null = await db.first(
      `SELECT MIN(place) AS first, MAX(place) AS last FROM (SELECT ${by} AS place FROM ${table}
        ${args.length === 0 ? "" : `WHERE ${by} > ?`} ORDER BY ${by} LIMIT ${ROWS_PER_FILL})`,
      args,
    );
    if (range === null || range.last === null) return;
    const { first, last } = range;
    await step(() => db.write([{ sql, args: [first, last] }]));
    args = [last];
  }
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
    sql: "INSERT INTO schema_migrations (version, name, checksum, works_with, applied_at) VALUES (?, ?, ?, ?, ?)",
    args: [migration.version, migration.name, checksum(migration), migration.worksWith, now],
  };
  return [record, ...splitStatements(migration.sql).map((sql) => ({ sql, args: [] }))];
}
