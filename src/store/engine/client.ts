import { fileURLToPath } from "node:url";
import type { Clock } from "../../core/clock.ts";
import type { CommitMeter, Db } from "./db.ts";
import { openEmbedded } from "./embedded.ts";
import type { Engine, Value } from "./engine.ts";
import { GroupCommit } from "./group-commit.ts";
import { openRemote } from "./remote.ts";
import { openReplica } from "./replica.ts";
import type { WriterOptions } from "./write-thread.ts";

export type { CommitMeter, Db } from "./db.ts";
export { ConstraintError, firstReturned, type Statement, type Value, type Written } from "./engine.ts";
export type { ConfigurationQuery } from "./recall.ts";

/** A condition under which statements of a write may take effect: an SQL expression with its parameters. */
export interface Guard {
  sql: string;
  args: Value[];
  /** Whether nothing that may commit together with the statements changes what it asks: they need no order then. */
  apart?: boolean;
}

/** The guard of what is to happen in any case. */
export const ALWAYS: Guard = { sql: "true", args: [] };

/** Where the database is. */
export interface DbOptions {
  /** `file:`, `libsql://`, `http://` or `https://`. */
  url: string;
  authToken: string | null;
  /** Primary of which the file is an embedded replica. */
  syncUrl: string | null;
  /** The thread that makes large transactions to a file; left out: they are made here, and hold the event loop. */
  writer?: WriterOptions;
}

/** Throws where the database does not answer. */
export async function ping(db: Db): Promise<void> {
  await db.first("SELECT 1");
}

/** Opens the database: a file in this process, a server, or a file that replicates one. */
export async function openDb(clock: Clock, options: DbOptions, meter?: CommitMeter): Promise<Db> {
  return overEngine(await openEngine(clock, options), clock, meter);
}

/** A database whose writes go to the engine in shared commits. */
export function overEngine(engine: Engine, clock: Clock, meter?: CommitMeter): Db {
  return new GroupCommit(engine, clock, meter);
}

function openEngine(clock: Clock, { url, authToken, syncUrl, writer }: DbOptions): Engine | Promise<Engine> {
  const path = databasePath(url);
  if (path === null) return openRemote(clock, { url, authToken });
  if (syncUrl === null) return openEmbedded(clock, { path, writer: writer ?? null });
  return openReplica(clock, { path, primary: { url: syncUrl, authToken } });
}

/** The path of a database's file, a replica's too, which may be relative; null for a server. */
export function databasePath(url: string): string | null {
  if (!url.startsWith("file:")) return null;
  return url.startsWith("file://") ? fileURLToPath(url) : url.slice("file:".length);
}
