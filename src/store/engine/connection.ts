import Database from "libsql";
import PromiseDatabase from "libsql/promise";
import { setNewest } from "../../core/newest.ts";
import { EngineError, errorCode, type ReadyStatement, type Value, type Written } from "./engine.ts";
import { together } from "./rows-text.ts";

/**
 * Prepared statements kept at most. Preparing costs several times what running does; the texts of a process are few,
 * but for those whose number of rows varies.
 */
export const MAX_PREPARED = 500;

/** A statement of SQL as it is kept for its next use. */
export interface Prepared {
  statement: Database.Statement;
  /** Whether it gives rows: asked of libSQL once, since each question costs a call into it. */
  reader: boolean;
}

/** A connection of this thread to a database file, opened by libSQL itself. */
export interface Connection {
  database: Database.Database;
  prepare(sql: string): Prepared;
  close(): void;
}

/**
 * Connects to a file. It is put in WAL mode with synchronous=FULL and foreign keys on, and that is asserted: a durable
 * commit before each answer is what the service promises.
 */
export function connect(path: string): Connection {
  // No busy timeout: it would block the event loop. The group commit waits instead.
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

/** Opens a file, which some connection has put in WAL mode, for reading a page or two. */
export function openReader(path: string): Database.Database {
  const database = new Database(path, { timeout: 0 });
  database.exec("PRAGMA query_only = ON; PRAGMA cache_size = 16");
  return database;
}

function setPragmas(database: Database.Database): void {
  const wanted: [string, string, unknown][] = [
    ["journal_mode", "WAL", "wal"],
    ["synchronous", "FULL", 2],
    ["foreign_keys", "ON", 1],
    ["cache_size", "-32000", -32000],
    ["temp_store", "MEMORY", 2],
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

/** The statement for a text; the one prepared first makes room. */
export function preparedIn(cache: Map<string, Prepared>, database: Database.Database, sql: string): Prepared {
  const known = cache.get(sql);
  if (known !== undefined) return known;
  const statement = database.prepare(sql) as Database.Statement & { readonly reader: boolean };
  const prepared = { statement, reader: statement.reader };
  setNewest(cache, sql, prepared, MAX_PREPARED);
  return prepared;
}

/** The rows that a statement gives, with these arguments. */
export function rowsOf({ statement }: Prepared, args: Value[]): Record<string, unknown>[] {
  return statement.all(args) as Record<string, unknown>[];
}

/** A transaction that takes the write lock first. Each step throws `EngineError`, and then it has taken no effect. */
export class Transaction {
  readonly #connection: Connection;
  readonly #written: Written[] = [];

  constructor(connection: Connection) {
    this.#connection = connection;
    this.#begin();
  }

  run(statements: readonly ReadyStatement[]): void {
    // What an earlier piece has written could not be taken back alone.
    if (this.#written.length === 0 && this.#runTogether(statements)) return;
    this.#step(() => {
      for (const { sql, args } of statements) this.#written.push(run(this.#connection.prepare(sql), args));
    }, true);
  }

  /** Runs them as few statements. False where they are still to be run, each by itself. */
  #runTogether(statements: readonly ReadyStatement[]): boolean {
    const few = together(statements);
    if (few === null) return false;
    const written: Written[] = [];
    try {
      for (const { sql, args, places } of few) {
        const { rows, changes } = run(this.#connection.prepare(sql), args);
        for (const place of places) written[place] = { rows, changes: changes / places.length };
      }
    } catch {
      // Which of them fails, if any does, shows when each is run by itself.
      this.abandon();
      this.#begin();
      return false;
    }
    this.#written.push(...written);
    return true;
  }

  /** What each statement has done, in their order. */
  commit(): Written[] {
    this.#step(() => this.#connection.database.exec("COMMIT"));
    return this.#written;
  }

  /**
   * As `commit`, in a thread of libSQL's own: the event loop goes on while the disk writes. Nothing may be asked of the
   * connection meanwhile, for that would wait for the disk as well.
   */
  async commitBeside(): Promise<Written[]> {
    try {
      // It asks the native connection alone, which both forms of the package have.
      await PromiseDatabase.prototype.exec.call(this.#connection.database, "COMMIT");
    } catch (error) {
      this.abandon();
      throw translated(error, null);
    }
    return this.#written;
  }

  /** Ends it without any effect. */
  abandon(): void {
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
      this.abandon();
      // The guilty one comes after those that have written.
      throw translated(error, counts ? this.#written.length : null);
    }
  }
}

function run(prepared: Prepared, args: Value[]): Written {
  if (!prepared.reader) return { rows: [], changes: prepared.statement.run(args).changes };
  const rows = rowsOf(prepared, args);
  return { rows, changes: rows.length };
}

/** An error of libSQL as one of ours; any other as it is. `statement`: the place of the one that failed, null where that is not known. */
export function translated(error: unknown, statement: number | null): unknown {
  const code = errorCode(error);
  return error instanceof Error && code !== "" ? new EngineError(error, code, statement) : error;
}
