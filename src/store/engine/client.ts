import { fileURLToPath } from "node:url";
import type { Clock } from "../../core/clock.ts";
import { openEmbedded } from "./embedded.ts";
import type { Engine, Statement, Value, Written } from "./engine.ts";
import { GroupCommit } from "./group-commit.ts";
import type { ConfigurationQuery } from "./recall.ts";
import { openRemote } from "./remote.ts";
import { openReplica } from "./replica.ts";

export { ConstraintError, type Statement, type Value, type Written } from "./engine.ts";
export type { ConfigurationQuery } from "./recall.ts";

/** A condition under which statements of a write may take effect: an SQL expression with its parameters. */
export interface Guard {
  sql: string;
  args: Value[];
}

/** The door to the database. Reads go straight through; every write goes through the group commit. */
export interface Db {
  /** All rows of a query, keyed by column name. The caller names their shape; libSQL gives text, numbers, null and bytes. */
  all<Row>(sql: string, args?: Value[]): Promise<Row[]>;
  /** The first row of a query, or null. */
  first<Row>(sql: string, args?: Value[]): Promise<Row | null>;
  /**
   * What the first row of a configuration query says, or null: exactly what the database would say now, but asked of it
   * only where configuration may have changed. The answer is shared.
   */
  recall<Row, Answer>(
    query: ConfigurationQuery<Row, Answer>,
    args: readonly string[],
  ): Promise<Answer | null>;
  /**
   * Commits the statements as one transaction, together with those of other callers that wait at the same time.
   * Resolves after the commit is durable; rejects with `ConstraintError` where one of them broke a constraint,
   * and then none of them took effect.
   */
  write(statements: Statement[]): Promise<Written[]>;
  /** Runs migration statements as one transaction, outside the group commit. */
  migrate(statements: Statement[]): Promise<void>;
  /** Waits for the writes in hand, then closes. */
  close(): Promise<void>;
}

/** Where the database is. */
export interface DbOptions {
  /** `file:`, `libsql://`, `http://` or `https://`. */
  url: string;
  authToken: string | null;
  /** Primary of which the file is an embedded replica. */
  syncUrl: string | null;
}

/** Throws where the database does not answer. */
export async function ping(db: Db): Promise<void> {
  await db.first("SELECT 1");
}

/** Is told of commits, for counters. */
export interface CommitMeter {
  /** Seconds that a commit took, waiting for other processes included, and how many writers shared it. */
  committed(seconds: number, writers: number): void;
  /** A commit was not made, for another reason than a broken constraint. */
  failed(): void;
}

/** Opens the database: a file in this process, a server, or a file that replicates one. */
export async function openDb(clock: Clock, options: DbOptions, meter?: CommitMeter): Promise<Db> {
  return overEngine(await openEngine(clock, options), clock, meter);
}

/** A database whose writes go to the engine in shared commits. */
export function overEngine(engine: Engine, clock: Clock, meter?: CommitMeter): Db {
  return new GroupCommit(engine, clock, meter);
}

function openEngine(clock: Clock, { url, authToken, syncUrl }: DbOptions): Engine | Promise<Engine> {
  const path = databasePath(url);
  if (path === null) return openRemote(clock, { url, authToken });
  if (syncUrl === null) return openEmbedded(path);
  return openReplica(clock, { path, primary: { url: syncUrl, authToken } });
}

/** The path of a database's file, a replica's too, which may be relative; null for a server. */
export function databasePath(url: string): string | null {
  if (!url.startsWith("file:")) return null;
  return url.startsWith("file://") ? fileURLToPath(url) : url.slice("file:".length);
}
