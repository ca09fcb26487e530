import { existsSync } from "node:fs";
import Database from "libsql";
import AsyncDatabase from "libsql/promise";
import { type Clock, within } from "../../core/clock.ts";
import { log } from "../../log.ts";
import { preparedIn } from "./connection.ts";
import { readsOf } from "./embedded.ts";
import { type Engine, EngineError, type Statement, type Value, type Written } from "./engine.ts";
import { openRemote, type RemoteOptions } from "./remote.ts";

export interface ReplicaOptions {
  /** The replica's own file. */
  path: string;
  primary: RemoteOptions;
}

/** How often what others have written is fetched, milliseconds. */
const SYNC_EVERY_MS = 1000;
/** How long one sync may take before a writer stops waiting for it, milliseconds. */
const SYNC_LIMIT_MS = 5000;
/** Age from which what the file says is no longer believed, milliseconds: then the primary is asked, or nobody. */
const STALE_MS = 10_000;
/** Files beside a replica in which libSQL keeps how far it has come: one for each of its two protocols. */
const SYNC_STATES: readonly string[] = ["-info", "-client_wal_index"];
/** What the file itself can answer. All else libSQL would carry to the primary, holding the event loop. */
const LOCAL = /^\s*(?:SELECT|WITH)\b/i;

/**
 * A file that replicates a libSQL server. Reads are the file's, writes are the primary's, and a write resolves when
 * the file has it: whoever reads afterwards reads it. libSQL would carry writes to the primary itself, but statement by
 * statement, each holding the event loop for a round trip; here a transaction is one request.
 *
 * What others write arrives within about a second. Where the file is known to lack a write of ours, or has heard
 * nothing for ten seconds, reads go to the primary.
 */
export async function openReplica(clock: Clock, { path, primary }: ReplicaOptions): Promise<Engine> {
  const remote = openRemote(clock, primary);
  // Opening the replica asks the primary from inside libSQL, which holds the event loop and knows no limit: first it
  // is asked from here whether it answers, and takes our token.
  await remote.first("SELECT 1", []);
  const release = own(path);
  if (release === null) {
    log("store").warning("another process has the replica's file, this one reads at the primary", { path });
    return remote;
  }
  try {
    const replica = new Replica(clock, openSynced(path, primary), remote, release);
    await replica.sync();
    replica.begin();
    return replica;
  } catch (error) {
    release();
    throw error;
  }
}

/**
 * Makes the file this process's own for as long as it lives: two that sync one file would break it. The lock is
 * SQLite's, so that the system frees it whatever becomes of us. Null where another process has it.
 */
function own(path: string): (() => void) | null {
  const lock = new Database(`${path}-owner`, { timeout: 0 });
  try {
    lock.exec("BEGIN EXCLUSIVE");
    return () => void lock.close();
  } catch {
    lock.close();
    return null;
  }
}

/** Opens the file with libSQL's sync, which only ever pulls in this form. */
function openSynced(path: string, { url, authToken }: RemoteOptions): Database.Database {
  if (existsSync(path) && !SYNC_STATES.some((suffix) => existsSync(path + suffix)))
    throw new Error(`${path} is a database of its own and no replica: name another file in DATABASE_URL`);
  const options = { syncUrl: url, authToken: authToken ?? "", readYourWrites: true };
  return new Database(path, options);
}

class Replica implements Engine {
  readonly #clock: Clock;
  readonly #database: Database.Database;
  readonly #remote: Engine;
  readonly #release: () => void;
  readonly #local: Pick<Engine, "all" | "first">;
  #running: Promise<void> | null = null;
  #next: Promise<void> | null = null;
  /** Number of the last of our writes that wanted the file to catch up, of the last one that it has caught up with, */
  #asked = 0;
  #brought = 0;
  /** and of the last one that stopped waiting: until the file has that, it is not believed. */
  #owed = 0;
  #syncedAt = 0;
  #failing = false;
  #cancel: () => void = () => undefined;

  constructor(clock: Clock, database: Database.Database, remote: Engine, release: () => void) {
    this.#clock = clock;
    this.#database = database;
    this.#remote = remote;
    this.#release = release;
    // Prepared anew each time, and read to the end: over sqld's protocol libSQL does not reset a statement that is used
    // again, or left after its first row. It would answer as before, and keep the connection at an old state.
    const reads = readsOf((sql) => preparedIn(new Map(), database, sql));
    this.#local = { all: reads.all, first: async (sql, args) => (await reads.all(sql, args))[0] ?? null };
  }

  all(sql: string, args: Value[]): Promise<Record<string, unknown>[]> {
    return this.#read(sql, (engine) => engine.all(sql, args));
  }

  first(sql: string, args: Value[]): Promise<Record<string, unknown> | null> {
    return this.#read(sql, (engine) => engine.first(sql, args));
  }

  async batch(statements: readonly Statement[]): Promise<Written[]> {
    try {
      const written = await this.#remote.batch(statements);
      await this.catchUp();
      return written;
    } catch (error) {
      // What stood in the way is somebody's row, and whoever was refused will want to see it.
      if (error instanceof EngineError && error.fault === "constraint") await this.catchUp();
      // Perhaps it was committed. Whoever brings it again must not read in a file without it that it has never been.
      if (error instanceof EngineError && error.fault === "lost") this.#owe();
      throw error;
    }
  }

  /** Has reads go to the primary until the file has what the primary has now. */
  #owe(): void {
    this.#owed = ++this.#asked;
    this.sync().catch(() => undefined);
  }

  /** Waits until the file has what the primary has now. Where that takes too long, reads go to the primary. */
  async catchUp(): Promise<void> {
    const mark = ++this.#asked;
    const brought = this.sync().then(
      () => true,
      () => false,
    );
    // A commit stands, whatever becomes of the sync.
    if (!(await within(this.#clock, SYNC_LIMIT_MS, brought, false))) this.#owed = Math.max(this.#owed, mark);
  }

  /** Syncs in the background from now on. */
  begin(): void {
    this.#cancel = this.#clock.after(SYNC_EVERY_MS, () => {
      this.sync()
        .catch(() => undefined)
        .finally(() => this.begin());
    });
  }

  /** Resolves when a sync that begins after this call has ended: one that is under way may have looked too early. */
  sync(): Promise<void> {
    this.#next ??= (this.#running ?? Promise.resolve()).catch(() => undefined).then(() => this.#start());
    return this.#next;
  }

  async close(): Promise<void> {
    this.#cancel();
    this.begin = () => undefined;
    await within(
      this.#clock,
      SYNC_LIMIT_MS,
      this.#running?.catch(() => undefined) ?? Promise.resolve(),
      undefined,
    );
    this.#database.close();
    this.#release();
    await this.#remote.close();
  }

  async #read<Answer>(
    sql: string,
    ask: (engine: Pick<Engine, "all" | "first">) => Promise<Answer>,
  ): Promise<Answer> {
    if (!this.#believed() || !LOCAL.test(sql)) return ask(this.#remote);
    try {
      return await ask(this.#local);
    } catch (error) {
      // A sync may have to lock readers out for a moment, where the primary begins its log anew.
      if (error instanceof EngineError && error.fault === "busy") return ask(this.#remote);
      throw error;
    }
  }

  #believed(): boolean {
    // Either way: where the clock was put back nobody knows how long ago that was.
    const heard = Math.abs(this.#clock.now() - this.#syncedAt) <= STALE_MS;
    return heard && this.#owed <= this.#brought;
  }

  #start(): Promise<void> {
    this.#next = null;
    const brings = this.#asked;
    this.#running = pull(this.#database)
      .then(
        () => this.#synced(brings),
        (error: unknown) => this.#failed(error),
      )
      .finally(() => {
        this.#running = null;
      });
    return this.#running;
  }

  #synced(brings: number): void {
    this.#brought = brings;
    this.#syncedAt = this.#clock.now();
    if (this.#failing) log("store").info("the replica follows its primary again");
    this.#failing = false;
  }

  #failed(error: unknown): never {
    if (!this.#failing)
      log("store").warning("the replica cannot follow its primary", { error: String(error) });
    this.#failing = true;
    throw error;
  }
}

/** One sync, on libSQL's own threads: the package's synchronous form would hold the event loop for as long as it takes. */
function pull(database: Database.Database): Promise<unknown> {
  return Promise.resolve(AsyncDatabase.prototype.sync.call(database));
}
