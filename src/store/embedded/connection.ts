import Database from "libsql";
import { setBounded } from "../../core/collections.ts";
import type { ReadyStatement, Value, Written } from "../sql/engine.ts";
import { EngineError, errorCode } from "../sql/errors.ts";
import { execOffLoop } from "../sql/off-loop.ts";
import { mergeStatements } from "../sql/rows-text.ts";

/**
 * Maximum number of cached prepared statements. Preparing costs several times as much as running. A process has few
 * distinct statements, except those with a varying number of rows.
 */
export const MAX_PREPARED = 500;

/** A prepared statement in the cache. */
export interface Prepared {
  statement: Database.Statement;
  /** True if it returns rows. Read from libSQL once, because each read is a native call. */
  reader: boolean;
}

/** A connection of this thread to a database file. */
export interface Connection {
  database: Database.Database;
  prepare(sql: string): Prepared;
  close(): void;
}

/**
 * Connects to a file in WAL mode with synchronous=FULL and foreign keys on.
 * @throws if a pragma did not take effect: the service promises a durable commit before each answer
 */
export function connect(path: string): Connection {
  // A busy timeout would block the event loop. `retryWhileBusy` waits instead.
  const database = new Database(path, { timeout: 0 });
  setPragmas(database);
  const prepared = new Map<string, Prepared>();
  return {
    database,
    prepare: (sql) => preparedIn(prepared, database, sql),
    close() {
      prepared.clear();
      database.close();
    },
  };
}

/** Opens a file that is already in WAL mode, to read a page or two. */
export function openReader(path: string): Database.Database {
  const database = new Database(path, { timeout: 0 });
  database.exec("PRAGMA query_only = ON; PRAGMA cache_size = 16");
  return database;
}

function setPragmas(database: Database.Database): void {
  // Lets `giveBackPages` make the file shorter. It takes effect in an empty file only, and would write to any other.
  if (pageCount(database) === 0) database.exec("PRAGMA auto_vacuum = INCREMENTAL");
  const wanted: [string, string, unknown][] = [
    ["journal_mode", "WAL", "wal"],
    ["synchronous", "FULL", 2],
    ["foreign_keys", "ON", 1],
    ["cache_size", "-32000", -32000],
    ["temp_store", "MEMORY", 2],
    // Deletions overwrite their octets within pages that are written anyway. Freed pages keep them until they are given back.
    ["secure_delete", "FAST", 2],
    // A large write must not leave a large WAL behind for good.
    ["journal_size_limit", "67108864", 67108864],
  ];
  for (const [name, value, expected] of wanted) {
    database.exec(`PRAGMA ${name} = ${value}`);
    const row = database.prepare(`PRAGMA ${name}`).get() as Record<string, unknown>;
    const actual = row[name];
    if (actual !== expected) throw new Error(`PRAGMA ${name} is ${actual}, not ${value}`);
  }
}

/** Returns the pages of the file: none if no process has written to it. */
function pageCount(database: Database.Database): number {
  return (database.prepare("PRAGMA page_count").get() as { page_count: number }).page_count;
}

/** Returns the prepared statement for some SQL. If the cache is full, evicts the oldest. */
export function preparedIn(cache: Map<string, Prepared>, database: Database.Database, sql: string): Prepared {
  const known = cache.get(sql);
  if (known !== undefined) return known;
  const statement = database.prepare(sql) as Database.Statement & { readonly reader: boolean };
  // A pragma such as incremental_vacuum has a step per page, though it has no columns.
  const prepared = { statement, reader: statement.reader || sql.startsWith("PRAGMA ") };
  setBounded(cache, sql, prepared, MAX_PREPARED);
  return prepared;
}

/** Runs a statement and returns its rows. */
export function rowsOf({ statement }: Prepared, args: Value[]): Record<string, unknown>[] {
  return statement.all(args) as Record<string, unknown>[];
}

/** A transaction that takes the write lock first. If a step throws `EngineError`, the transaction was rolled back. */
export class Transaction {
  readonly #connection: Connection;
  readonly #written: Written[] = [];

  constructor(connection: Connection) {
    this.#connection = connection;
    this.#begin();
  }

  run(statements: readonly ReadyStatement[]): void {
    // Merging is for the first piece only: if a merged statement fails, all is rolled back and run one by one.
    if (this.#written.length === 0 && this.#runMerged(statements)) return;
    this.#step(() => {
      for (const { sql, args } of statements) this.#written.push(run(this.#connection.prepare(sql), args));
    }, true);
  }

  /** Merges the statements and runs them. Returns false if none can be merged or one failed: nothing took effect then. */
  #runMerged(statements: readonly ReadyStatement[]): boolean {
    const merged = mergeStatements(statements);
    if (merged === null) return false;
    const written: Written[] = [];
    try {
      for (const { sql, args, indexes } of merged) {
        const { rows, changes } = run(this.#connection.prepare(sql), args);
        for (const index of indexes) written[index] = { rows, changes: changes / indexes.length };
      }
    } catch {
      // Running them one by one shows which of them fails.
      this.rollback();
      this.#begin();
      return false;
    }
    this.#written.push(...written);
    return true;
  }

  /** Commits, and returns the results of the statements in their order. */
  commit(): Written[] {
    this.#step(() => this.#connection.database.exec("COMMIT"));
    return this.#written;
  }

  /**
   * Commits on a thread of libSQL's, so that the event loop runs while the disk writes. The connection must not be used
   * until then: the call would block until the disk is done.
   */
  async commitOffLoop(): Promise<Written[]> {
    try {
      await execOffLoop(this.#connection.database, "COMMIT");
    } catch (error) {
      this.rollback();
      throw translated(error, null);
    }
    return this.#written;
  }

  /** Ends the transaction without effect. */
  rollback(): void {
    const { database } = this.#connection;
    if (database.inTransaction) database.exec("ROLLBACK");
  }

  #begin(): void {
    this.#step(() => this.#connection.database.exec("BEGIN IMMEDIATE"));
  }

  #step(step: () => void, counts = false): void {
    try {
      step();
    } catch (error) {
      this.rollback();
      // The failed statement is the one after those that have results.
      throw translated(error, counts ? this.#written.length : null);
    }
  }
}

function run(prepared: Prepared, args: Value[]): Written {
  if (!prepared.reader) return { rows: [], changes: prepared.statement.run(args).changes };
  const rows = rowsOf(prepared, args);
  return { rows, changes: rows.length };
}

/**
 * Converts an error of libSQL to an `EngineError`, and leaves other errors alone.
 * @param statement index of the statement that failed; null if unknown
 */
export function translated(error: unknown, statement: number | null): unknown {
  const code = errorCode(error);
  return error instanceof Error && code !== "" ? new EngineError(error, code, statement) : error;
}

/** Time that the copy waits for a lock that another process holds on the file, milliseconds. */
const COPY_BUSY_TIMEOUT_MS = 15_000;

/**
 * Copies a database file as of one moment into an empty file, while other processes write. VACUUM INTO reads in one
 * transaction, and in WAL mode readers do not block writers. Blocks the calling thread, so it is for commands
 * that do nothing else. SQLite does not sync the copy to the disk.
 */
export function copyDatabase(path: string, emptyFile: string): void {
  const database = new Database(path, { timeout: COPY_BUSY_TIMEOUT_MS });
  try {
    database.prepare("VACUUM INTO ?").run(emptyFile);
  } finally {
    database.close();
  }
}

/** Reads of a database file as of one moment. */
export interface Snapshot {
  all<Row>(sql: string, args: Value[]): Promise<Row[]>;
  close(): void;
}

/**
 * Opens a file for reads that all see one moment, while other processes write. Each read blocks the calling thread. Until
 * it is closed, the write-ahead log cannot begin again, so it grows.
 */
export function openSnapshot(path: string): Snapshot {
  const database = new Database(path, { timeout: COPY_BUSY_TIMEOUT_MS });
  database.exec("PRAGMA query_only = ON; BEGIN");
  return {
    all: async <Row>(sql: string, args: Value[]) => database.prepare(sql).all(args) as Row[],
    close: () => database.close(),
  };
}

/** Checks every page of a database file that no process has open. Returns the first faults; none if it is intact. */
export function faultsOf(path: string): string[] {
  const database = new Database(path);
  try {
    const rows = database.prepare("PRAGMA quick_check(3)").all() as { quick_check: string }[];
    return rows.map((row) => row.quick_check).filter((fault) => fault !== "ok");
  } finally {
    database.close();
  }
}
