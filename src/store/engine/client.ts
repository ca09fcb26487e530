import { fileURLToPath } from "node:url";
import { setBounded } from "../../core/collections.ts";
import type { Clock } from "../../core/time/clock.ts";
import type { CommitMeter, Db } from "./db.ts";
import { openEmbedded } from "../embedded/embedded.ts";
import type { Engine, Value } from "../sql/engine.ts";
import { GroupCommit } from "./group-commit.ts";
import type { WriterOptions } from "../embedded/writer.ts";

export type { CommitMeter, Db, Store } from "./db.ts";
export { firstReturned, type Statement, type Value, type Written } from "../sql/engine.ts";
export { ConstraintError } from "../sql/errors.ts";
export type { ConfigurationQuery } from "./config-cache.ts";

/** A condition under which statements of a write may take effect: an SQL expression with its parameters. */
export interface Guard {
  sql: string;
  args: Value[];
  /** True if no statement that may commit together changes what it reads: then its statement may be reordered. */
  orderIndependent?: boolean;
}

/** Maximum number of strings kept by `textsByGuard`: a statement has few kinds of guards. */
const MAX_TEXTS = 100;

/**
 * Returns a function that makes the SQL with a guard's condition and keeps it. A new string would be hashed at its
 * look-up, which takes a tenth of the statement's time.
 */
export function textsByGuard(make: (condition: string) => string): (guard: Guard) => string {
  const texts = new Map<string, string>();
  return ({ sql }) => {
    const known = texts.get(sql);
    if (known !== undefined) return known;
    const text = make(sql);
    setBounded(texts, sql, text, MAX_TEXTS);
    return text;
  };
}

/** The guard that always holds. */
export const ALWAYS: Guard = { sql: "true", args: [] };

/** The address of the database. */
export interface DbOptions {
  /** `file:`, `libsql://`, `http://` or `https://`. */
  url: string;
  authToken: string | null;
  /** Primary of which the file is an embedded replica. */
  syncUrl: string | null;
  /** The thread for large transactions to a file. Without it the event loop runs them, and waits for the disk. */
  writer?: WriterOptions;
}

/** Writes one statement. Returns true if it changed a row. */
export async function changesRow(db: Db, sql: string, args: Value[]): Promise<boolean> {
  const [written] = await db.write([{ sql, args }]);
  return (written?.changes ?? 0) > 0;
}

/**
 * Runs `query`. If it finds nothing and this database is a replica, syncs with the primary and runs it once more. Another
 * process may have written the row a moment ago.
 */
export async function queryAfterSync<Found>(
  db: Db,
  query: () => Promise<Found>,
  isEmpty: (found: Found) => boolean,
): Promise<Found> {
  const found = await query();
  return isEmpty(found) && (await db.syncWithPrimary()) ? query() : found;
}

/** Throws if the database does not answer. */
export async function ping(db: Db): Promise<void> {
  await db.first("SELECT 1");
}

/** Opens the database: a file in this process, a server, or a replica of a server. */
export async function openDb(clock: Clock, options: DbOptions, meter?: CommitMeter): Promise<Db> {
  return overEngine(await openEngine(clock, options), clock, meter);
}

/** Returns a database that writes to the engine in group commits. */
export function overEngine(engine: Engine, clock: Clock, meter?: CommitMeter): Db {
  return new GroupCommit(engine, clock, meter);
}

/** Opens an engine. Code for servers is loaded only for a server, because it takes megabytes. */
async function openEngine(clock: Clock, { url, authToken, syncUrl, writer }: DbOptions): Promise<Engine> {
  const path = databasePath(url);
  if (path === null) return (await import("../remote/remote.ts")).openRemote(clock, { url, authToken });
  if (syncUrl === null) return openEmbedded(clock, { path, writer: writer ?? null });
  const { openReplica } = await import("../remote/replica.ts");
  return openReplica(clock, { path, primary: { url: syncUrl, authToken } });
}

/** Returns the path of the file of a database or a replica, which may be relative; null for a server. */
export function databasePath(url: string): string | null {
  if (!url.startsWith("file:")) return null;
  return url.startsWith("file://") ? fileURLToPath(url) : url.slice("file:".length);
}
