import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import Database from "libsql";
import { systemClock } from "../../src/clock.ts";
import { type Db, type DbOptions, openDb } from "../../src/store/engine/client.ts";
import { migrate } from "../../src/store/engine/migrate.ts";
import { newDataFolder, removeFolder } from "./folder.ts";
import { type Primary, startPrimary } from "./hrana-server.ts";
import { shareOf } from "./share.ts";
import { type Sqld, type SqldOptions, startSqld } from "./sqld.ts";

/**
 * The kind of database: a file of this process, a server, or a file that replicates a server. The server is our stand-in, or
 * sqld.
 */
export const ENGINES = ["file", "server", "replica", "sqld", "sqld-replica"] as const;
export type EngineName = (typeof ENGINES)[number];

/** A real libSQL database in a separate folder, with the schema in it. */
export interface TestDatabase {
  db: Db;
  folder: string;
  url: string;
  authToken: string | null;
  /** Where writes are carried out: the file, or the server. */
  writesAt: string;
  /** Opens it again after `db` was closed. */
  reopen(): Promise<Db>;
  /** Opens the database as another process would. The caller closes it. */
  another(): Promise<Db>;
  /**
   * Resolves when this database can read the writes of other processes. A replica learns of them within a second,
   * or with its own next write.
   */
  caughtUp(reader?: Db): Promise<void>;
  /** Closes it and deletes the folder. */
  remove(): Promise<void>;
}

/** Options of the servers as JSON, for example `{"auth": true, "roundTripMs": 50}`. */
const SQLD_OPTIONS: SqldOptions = JSON.parse(Bun.env.SQLD_OPTIONS ?? "{}");
/** The engine of the databases that are opened next. `TEST_ENGINE` runs tests and proofs on another one than the file. */
let chosen: EngineName = named(Bun.env.TEST_ENGINE ?? "file");
let primary: Promise<Primary> | null = null;
let made = 0;
/** Time of the schema, milliseconds since the epoch. */
const MIGRATED_AT = 1_700_000_000_000;

function named(text: string): EngineName {
  const engine = ENGINES.find((name) => name === text);
  if (engine === undefined) throw new Error(`TEST_ENGINE=${text} is none of ${ENGINES.join(", ")}`);
  return engine;
}

/** Opens the next databases on another engine. `back` returns to the one before. */
export function useEngine(engine: EngineName): { back: () => void } {
  const before = chosen;
  chosen = engine;
  return {
    back() {
      chosen = before;
    },
  };
}

/** The engine of the databases that are opened next. */
export function engineHere(): EngineName {
  return chosen;
}

/**
 * Returns all cases on a file. On another engine, which runs the same statements in the same SQLite, returns one of each `share`
 * cases, from another start for each `index`.
 */
export function casesHere<Case>(cases: readonly Case[], share: number, index = 0): readonly Case[] {
  return chosen === "file" ? cases : shareOf(cases, share, index);
}

/** The server shared by all test databases, because a process takes longer to start than a test takes to run. */
function sharedPrimary(): Promise<Primary> {
  primary ??= startPrimary();
  return primary;
}

/** An empty database: how two processes open it, and how to end what serves it. */
export interface EmptyDatabase {
  own: DbOptions;
  other: DbOptions;
  /** Settings by which a service opens it. Empty for the file that the service opens anyway. */
  env: Record<string, string>;
  /** Settings by which another service opens it. */
  otherEnv: Record<string, string>;
  /** The database file in which all writes end; null if it is in our stand-in. */
  file: string | null;
  /** The real server, which a test may kill; null on other engines. */
  sqld: Sqld | null;
  stop(): Promise<void>;
}

/** A server for a test that names its address itself, and kills it. */
export interface DatabaseServer {
  url: string;
  kill(): Promise<void>;
  /** Starts it again on the same port and files. */
  restart(): Promise<void>;
  /** Carries out the next write and does not answer it. Absent at sqld. */
  loseReply?: () => Promise<void>;
  stop(): Promise<void>;
}

/** Starts our stand-in, or sqld if `TEST_ENGINE` names it. */
export async function startServer(): Promise<DatabaseServer> {
  if (chosen.startsWith("sqld")) return startSqld();
  const standIn = await startPrimary();
  return { ...standIn, loseReply: () => standIn.make({ loseReplies: 1 }) };
}

/** Makes an empty database, whose files are in the folder if it is a file or a replica. */
export function emptyDatabase(
  folder: string,
  engine: EngineName = chosen,
  server: SqldOptions = SQLD_OPTIONS,
): Promise<EmptyDatabase> {
  return makeDatabase(folder, engine, server, null);
}

/** Makes a database with the whole schema and nothing in it, as `emptyDatabase` makes one without. At sqld it is empty. */
export async function databaseWithSchema(
  folder: string,
  engine: EngineName = chosen,
): Promise<EmptyDatabase> {
  migrated ??= makeMigrated();
  return makeDatabase(folder, engine, SQLD_OPTIONS, await migrated);
}

/** @param content the file of a database to begin with, which sqld does not take */
async function makeDatabase(
  folder: string,
  engine: EngineName,
  server: SqldOptions,
  content: Uint8Array | null,
): Promise<EmptyDatabase> {
  if (engine === "file") {
    const path = join(folder, "postrider.db");
    if (content !== null) writeFileSync(path, content);
    const own = { url: `file:${path}`, authToken: null, syncUrl: null };
    return { own, other: own, env: {}, otherEnv: {}, file: path, sqld: null, stop: async () => undefined };
  }
  const sqld = engine.startsWith("sqld") ? await startSqld(server) : null;
  const url = sqld?.url ?? (await openedAtPrimary(content));
  const authToken = sqld?.token ?? null;
  const at = (name: string): DbOptions =>
    engine.endsWith("replica")
      ? { url: `file:${join(folder, name)}`, authToken, syncUrl: url }
      : { url, authToken, syncUrl: null };
  const own = at("postrider.db");
  const stop = async (): Promise<void> => sqld?.stop();
  const other = at("another.db");
  const [env, otherEnv] = [settingsOf(own), settingsOf(other)];
  return { own, other, env, otherEnv, file: sqld?.file ?? null, sqld, stop };
}

async function openedAtPrimary(content: Uint8Array | null): Promise<string> {
  const { folder, open } = await sharedPrimary();
  const name = `database-${++made}`;
  if (content !== null) writeFileSync(join(folder, `${name}.db`), content);
  return open(name);
}

/** The file of a database with the schema, because making the schema takes longer than most tests. */
let migrated: Promise<Uint8Array> | null = null;

async function makeMigrated(): Promise<Uint8Array> {
  const folder = newDataFolder("schema");
  const path = join(folder, "schema.db");
  const db = await openDb(systemClock, { url: `file:${path}`, authToken: null, syncUrl: null });
  await migrate(db, MIGRATED_AT);
  await db.close();
  // Moves what is in the log into the file.
  const file = new Database(path);
  file.exec("PRAGMA wal_checkpoint(TRUNCATE)");
  file.close();
  const content = readFileSync(path);
  removeFolder(folder);
  return content;
}

function settingsOf({ url, authToken, syncUrl }: DbOptions): Record<string, string> {
  return {
    DATABASE_URL: url,
    ...(authToken === null ? {} : { DATABASE_AUTH_TOKEN: authToken }),
    ...(syncUrl === null ? {} : { DATABASE_SYNC_URL: syncUrl }),
  };
}

/** A database of the engine chosen, with the whole schema and nothing in it. */
export async function testDatabase(engine: EngineName = chosen): Promise<TestDatabase> {
  const folder = newDataFolder("test");
  const { own: options, other, stop } = await databaseWithSchema(folder, engine);
  const db = await openDb(systemClock, options);
  await migrate(db, MIGRATED_AT);
  return {
    db,
    folder,
    url: options.url,
    authToken: options.authToken,
    writesAt: options.syncUrl ?? options.url,
    reopen: () => openDb(systemClock, options),
    another: () => openDb(systemClock, other),
    caughtUp: (reader = db) => reader.migrate([{ sql: "SELECT 1", args: [] }]),
    async remove() {
      await db.close();
      await stop();
      removeFolder(folder);
    },
  };
}
