import { existsSync } from "node:fs";
import Database from "libsql";
import { syncOffLoop } from "../sql/off-loop.ts";
import { type Clock, sleep, within } from "../../core/time/clock.ts";
import { log } from "../../log.ts";
import { preparedIn } from "../embedded/connection.ts";
import { readsOf } from "../embedded/embedded.ts";
import type { Engine, Statement, Value, Written } from "../sql/engine.ts";
import { EngineError } from "../sql/errors.ts";
import { openRemote, type RemoteOptions } from "./remote.ts";

export interface ReplicaOptions {
  /** The replica's own file. */
  path: string;
  primary: RemoteOptions;
}

/** Time between two syncs, milliseconds. */
const SYNC_INTERVAL_MS = 1000;
/** Time that a writer waits for a sync, milliseconds. */
const SYNC_TIMEOUT_MS = 5000;
/** Age of the last sync from which reads go to the primary, milliseconds. */
const STALE_AFTER_MS = 10_000;
/** Suffixes of the files in which libSQL stores how far a replica has synced, one for each of its two protocols. */
const SYNC_STATES: readonly string[] = ["-info", "-client_wal_index"];
/** sqld's words while it makes a snapshot of its log, of 200 MB at a time. It has newer frames and cannot give them. */
const NO_FRAMES = /snapshot not found/;
/** How often, and after which pause, the file is opened again in that time. It takes seconds. */
const OPEN_TRIES = 60;
const OPEN_PAUSE_MS = 1000;
/** Statements that the file itself can answer. libSQL would send all others to the primary, and block the event loop. */
const LOCAL = /^\s*(?:SELECT|WITH)\b/i;

/**
 * Opens a file that replicates a libSQL server. Reads use the file, writes go to the primary, and a write resolves after
 * the file has synced it, so its writer can read it. libSQL would also send writes to the primary, but statement by
 * statement, and each would block the event loop for a round trip. Here a transaction is one request.
 *
 * Writes of other processes arrive within about a second. If the file lacks a write of this process, if the primary cannot give
 * newer ones now, or if the file has not synced for ten seconds, reads go to the primary.
 */
export async function openReplica(clock: Clock, { path, primary }: ReplicaOptions): Promise<Engine> {
  const remote = openRemote(clock, primary);
  // Opening a replica makes libSQL call the primary, which blocks the event loop without a timeout. So first check here that
  // the primary answers and accepts the token.
  await remote.first("SELECT 1", []);
  const release = lockFile(path);
  if (release === null) {
    log("store").warning("another process uses the replica's file, so this one reads from the primary", {
      path,
    });
    return remote;
  }
  try {
    const replica = new Replica(clock, await openSynced(clock, path, primary), remote, release);
    await replica.sync().catch((error: unknown) => {
      // Then reads go to the primary.
      if (!hasNoFrames(error)) throw error;
    });
    replica.begin();
    return replica;
  } catch (error) {
    release();
    throw error;
  }
}

/**
 * Locks the file for this process, because two processes that sync one file would break it. The lock is SQLite's, so the
 * system frees it if the process dies.
 * @returns the function that frees it; null if another process holds it
 */
function lockFile(path: string): (() => void) | null {
  const lock = new Database(`${path}-owner`, { timeout: 0 });
  try {
    lock.exec("BEGIN EXCLUSIVE");
    return () => void lock.close();
  } catch {
    lock.close();
    return null;
  }
}

/** Returns whether the primary has newer frames and cannot give them now. */
function hasNoFrames(error: unknown): boolean {
  return NO_FRAMES.test(String(error));
}

/** Opens the file with libSQL's sync, once the primary can give it frames. In this mode it only pulls. */
async function openSynced(
  clock: Clock,
  path: string,
  { url, authToken }: RemoteOptions,
): Promise<Database.Database> {
  if (existsSync(path) && !SYNC_STATES.some((suffix) => existsSync(path + suffix)))
    throw new Error(`${path} is a database but not a replica: name another file in DATABASE_URL`);
  const options = { syncUrl: url, authToken: authToken ?? "", readYourWrites: true };
  for (let tries = 1; ; tries++)
    try {
      return new Database(path, options);
    } catch (error) {
      if (tries === OPEN_TRIES || !hasNoFrames(error)) throw error;
      await sleep(clock, OPEN_PAUSE_MS);
    }
}

class Replica implements Engine {
  readonly #clock: Clock;
  readonly #database: Database.Database;
  readonly #remote: Engine;
  readonly #release: () => void;
  readonly #local: Pick<Engine, "all" | "first">;
  #running: Promise<void> | null = null;
  #next: Promise<void> | null = null;
  /** Number of the last request for a sync. */
  #requested = 0;
  /** Number of the last request that a finished sync has served. */
  #served = 0;
  /** Number of the last request that timed out. Until it is served, reads go to the primary. */
  #overdue = 0;
  #syncedAt = Number.NEGATIVE_INFINITY;
  #failing = false;
  #cancel: () => void = () => undefined;

  constructor(clock: Clock, database: Database.Database, remote: Engine, release: () => void) {
    this.#clock = clock;
    this.#database = database;
    this.#remote = remote;
    this.#release = release;
    // Each statement is prepared for one use and read to its end. With sqld's protocol, libSQL does not reset a
    // statement that is reused or left after its first row. It would return old rows, and keep the connection at an
    // old state.
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
      await this.syncWithPrimary();
      return written;
    } catch (error) {
      // The write conflicts with a row of another writer, which the caller will read next.
      if (error instanceof EngineError && error.fault === "constraint") await this.syncWithPrimary();
      // The write may be committed. A caller that retries must not read from a file that lacks it.
      if (error instanceof EngineError && error.fault === "lost") this.#requireSync();
      throw error;
    }
  }

  /** Sends reads to the primary until the file has everything that the primary has now. */
  #requireSync(): void {
    this.#overdue = ++this.#requested;
    this.sync().catch(() => undefined);
  }

  /** Waits until the file has everything that the primary has now. If that takes too long, reads go to the primary. */
  async syncWithPrimary(): Promise<void> {
    const request = ++this.#requested;
    const isSynced = this.sync().then(
      () => true,
      () => false,
    );
    // No error: the commit stands even if the sync fails.
    if (!(await within(this.#clock, SYNC_TIMEOUT_MS, isSynced, false)))
      this.#overdue = Math.max(this.#overdue, request);
  }

  /** Syncs in the background from now on. */
  begin(): void {
    this.#cancel = this.#clock.after(SYNC_INTERVAL_MS, () => {
      this.sync()
        .catch(() => undefined)
        .finally(() => this.begin());
    });
  }

  /** Resolves after a sync that begins after this call. A running one may have begun before the latest commit. */
  sync(): Promise<void> {
    this.#next ??= (this.#running ?? Promise.resolve()).catch(() => undefined).then(() => this.#start());
    return this.#next;
  }

  async close(): Promise<void> {
    this.#cancel();
    this.begin = () => undefined;
    await within(
      this.#clock,
      SYNC_TIMEOUT_MS,
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
    if (!this.#isCurrent() || !LOCAL.test(sql)) return ask(this.#remote);
    try {
      return await ask(this.#local);
    } catch (error) {
      // A sync may lock out readers for a moment, when the primary has restarted its log.
      if (error instanceof EngineError && error.fault === "busy") return ask(this.#remote);
      throw error;
    }
  }

  #isCurrent(): boolean {
    const age = this.#clock.elapsed() - this.#syncedAt;
    return age <= STALE_AFTER_MS && this.#overdue <= this.#served;
  }

  #start(): Promise<void> {
    this.#next = null;
    const serves = this.#requested;
    this.#running = syncOffLoop(this.#database)
      .then(
        () => this.#synced(serves),
        (error: unknown) => this.#failed(error),
      )
      .finally(() => {
        this.#running = null;
      });
    return this.#running;
  }

  #synced(serves: number): void {
    this.#served = serves;
    this.#syncedAt = this.#clock.elapsed();
    if (this.#failing) log("store").info("the replica syncs with its primary again");
    this.#failing = false;
  }

  #failed(error: unknown): never {
    if (!this.#failing)
      log("store").warning("the replica cannot sync with its primary", { error: String(error) });
    this.#failing = true;
    // Until the next sync, the file is older than it may be.
    if (hasNoFrames(error)) this.#overdue = ++this.#requested;
    throw error;
  }
}
