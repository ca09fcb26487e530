import { createHash } from "node:crypto";
import initial from "../../../db/migrations/0001_initial.sql" with { type: "text" };
import search from "../../../db/migrations/0002_search.sql" with { type: "text" };
import searchLater from "../../../db/migrations/0003_search_later.sql" with { type: "text" };
import tracking from "../../../db/migrations/0004_tracking.sql" with { type: "text" };
import mtaSts from "../../../db/migrations/0005_mta_sts.sql" with { type: "text" };
import threads from "../../../db/migrations/0006_threads.sql" with { type: "text" };
import stats from "../../../db/migrations/0007_stats.sql" with { type: "text" };
import contents from "../../../db/migrations/0008_contents.sql" with { type: "text" };
import retention from "../../../db/migrations/0009_retention.sql" with { type: "text" };
import queueDepth from "../../../db/migrations/0010_queue_depth.sql" with { type: "text" };
import newestFirst from "../../../db/migrations/0011_newest_first.sql" with { type: "text" };
import boundedSearches from "../../../db/migrations/0012_bounded_searches.sql" with { type: "text" };
import deletedWebhooks from "../../../db/migrations/0013_deleted_webhooks.sql" with { type: "text" };
import fanOuts from "../../../db/migrations/0014_fan_outs.sql" with { type: "text" };
import walks from "../../../db/migrations/0015_walks.sql" with { type: "text" };
import plainConditions from "../../../db/migrations/0016_plain_conditions.sql" with { type: "text" };
import configurationVersion from "../../../db/migrations/0017_configuration_version.sql" with {
  type: "text",
};
import oneFolding from "../../../db/migrations/0018_one_folding.sql" with { type: "text" };
import type { Db, Statement } from "./client.ts";
import { indexOlderMessages } from "../search/message-index.ts";

/** One step of the schema. Steps are only ever appended: an applied one never changes. */
export interface Migration {
  version: number;
  name: string;
  sql: string;
}

/** All steps in order, carried in the program itself. */
export const MIGRATIONS: readonly Migration[] = [
  { version: 1, name: "initial", sql: initial },
  { version: 2, name: "search", sql: search },
  { version: 3, name: "search_later", sql: searchLater },
  { version: 4, name: "tracking", sql: tracking },
  { version: 5, name: "mta_sts", sql: mtaSts },
  { version: 6, name: "threads", sql: threads },
  { version: 7, name: "stats", sql: stats },
  { version: 8, name: "contents", sql: contents },
  { version: 9, name: "retention", sql: retention },
  { version: 10, name: "queue_depth", sql: queueDepth },
  { version: 11, name: "newest_first", sql: newestFirst },
  { version: 12, name: "bounded_searches", sql: boundedSearches },
  { version: 13, name: "deleted_webhooks", sql: deletedWebhooks },
  { version: 14, name: "fan_outs", sql: fanOuts },
  { version: 15, name: "walks", sql: walks },
  { version: 16, name: "plain_conditions", sql: plainConditions },
  { version: 17, name: "configuration_version", sql: configurationVersion },
  { version: 18, name: "one_folding", sql: oneFolding },
];

/** Whether a step has been applied: when, in milliseconds; null: not yet. */
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

/** Whether the database holds nothing at all: no process has begun with it. */
export async function isEmpty(db: Db): Promise<boolean> {
  return (await db.first("SELECT 1 FROM sqlite_master LIMIT 1")) === null;
}

/** Which steps have been applied, and when. */
export async function migrationStates(db: Db): Promise<MigrationState[]> {
  const applied = await ledger(db);
  return MIGRATIONS.map(({ version, name }) => ({
    version,
    name,
    appliedAt: applied.get(version)?.applied_at ?? null,
  }));
}

/**
 * Whether no step is missing.
 * @throws where the database knows steps this program does not
 */
export async function isUpToDate(db: Db): Promise<boolean> {
  const applied = await ledger(db);
  refuseNewer(applied);
  return MIGRATIONS.every(({ version }) => applied.has(version));
}

/** What a newer program has made of the schema, this one would write past. */
function refuseNewer(applied: ReadonlyMap<number, LedgerRow>): void {
  const newest = Math.max(0, ...applied.keys());
  const ours = Math.max(...MIGRATIONS.map(({ version }) => version));
  if (newest > ours)
    throw new Error(
      `the database is at schema ${newest}, newer than this program's ${ours}: run the newer program, or go back to a backup`,
    );
}

/**
 * Brings the schema up to date and enters older messages into the search index. Each step is a transaction of its own;
 * a new database takes all of them in one.
 * @param now milliseconds
 * @returns the versions applied now
 * @throws where an applied step's text has changed since, or the database knows steps this program does not
 */
export async function migrate(db: Db, now: number): Promise<number[]> {
  const applied = await ledger(db);
  refuseNewer(applied);
  const waiting: Migration[] = [];
  for (const migration of MIGRATIONS) {
    const row = applied.get(migration.version);
    if (row !== undefined && row.checksum !== checksum(migration))
      throw new Error(
        `migration ${migration.version} has changed since it was applied: the database is of a program that this one does not succeed; run that one, or go back to a backup`,
      );
    if (row === undefined) waiting.push(migration);
  }
  const done: number[] = [];
  // A new database takes all steps at once: each commit waits for the disk.
  for (const steps of applied.size === 0 ? [waiting] : waiting.map((step) => [step]))
    if (await apply(db, steps, now)) done.push(...steps.map(({ version }) => version));
  await indexOlderMessages(db);
  return done;
}

/** Applies steps as one transaction; false where another process has done so meanwhile. */
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

/** The ledger's row goes first: of two processes that start together, the second stops at it. */
function statementsOf(migration: Migration, now: number): Statement[] {
  const record = {
    sql: "INSERT INTO schema_migrations (version, name, checksum, applied_at) VALUES (?, ?, ?, ?)",
    args: [migration.version, migration.name, checksum(migration), now],
  };
  return [record, ...splitStatements(migration.sql).map((sql) => ({ sql, args: [] }))];
}
