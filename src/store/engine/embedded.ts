import Database from "libsql";
import { turn } from "../../core/turn.ts";
import {
  type Engine,
  EngineError,
  errorCode,
  type Statement,
  type Value,
  VALUES_PER_TURN,
  type Written,
} from "./engine.ts";
import { turnReads } from "./turn-reads.ts";

/**
 * Prepared statements kept at most. Preparing costs several times what running does; the texts of a process are few,
 * but for those whose number of rows varies.
 */
const MAX_PREPARED = 500;

export interface Prepared {
  statement: Database.Statement;
  /** Whether it gives rows: asked of libSQL once, since each question costs a call into it. */
  reader: boolean;
}

/**
 * A database file, opened in this process by libSQL itself. It is put in WAL mode with synchronous=FULL and foreign
 * keys on, and that is asserted: a durable commit before each answer is what the service promises.
 */
export function openEmbedded(path: string): Engine {
  const own = connect(path);
  const { database, prepare } = own;
  const version = database.prepare("PRAGMA data_version").raw();
  const reading = turnReads(database);
  /** Reads while a transaction of this process lets others have a turn: they see what was there before it. */
  let aside: Connection | null = null;
  const writing: Writing = { paused: false };
  const reads = readsOf((sql) => {
    if (writing.paused) {
      aside ??= connect(path);
      return aside.prepare(sql);
    }
    reading.enter();
    return prepare(sql);
  });
  return {
    ...reads,
    async batch(statements) {
      reading.leave();
      return runBatch(own, statements, writing);
    },
    version() {
      if (writing.paused) return null;
      reading.enter();
      const [changes] = version.get([]) as unknown[];
      return typeof changes === "number" ? changes : null;
    },
    async close() {
      reading.leave();
      aside?.close();
      own.close();
    },
  };
}

interface Connection {
  database: Database.Database;
  prepare(sql: string): Prepared;
  close(): void;
}

function connect(path: string): Connection {
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

/** The reads of a database that libSQL has opened in this process. */
export function readsOf(prepare: (sql: string) => Prepared): Pick<Engine, "all" | "first"> {
  return {
    async all(sql, args) {
      try {
        return rowsOf(prepare(sql), args);
      } catch (error) {
        throw translated(error, null);
      }
    },
    async first(sql, args) {
      try {
        const row = prepare(sql).statement.get(args) as Record<string, unknown> | undefined;
        // libSQL puts the time that a `get` took among the row's columns.
        if (row !== undefined) delete row._metadata;
        return row ?? null;
      } catch (error) {
        throw translated(error, null);
      }
    },
  };
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
  const oldest = cache.size >= MAX_PREPARED ? cache.keys().next().value : undefined;
  if (oldest !== undefined) cache.delete(oldest);
  const prepared = { statement, reader: statement.reader };
  cache.set(sql, prepared);
  return prepared;
}

function rowsOf({ statement }: Prepared, args: Value[]): Record<string, unknown>[] {
  return statement.all(args) as Record<string, unknown>[];
}

/** Whether others have a turn of the event loop in the midst of a transaction. */
interface Writing {
  paused: boolean;
}

async function runBatch(
  { database, prepare }: Connection,
  statements: readonly Statement[],
  writing: Writing,
): Promise<Written[]> {
  let at: number | null = null;
  let values = 0;
  try {
    database.exec("BEGIN IMMEDIATE");
    const written: Written[] = [];
    for (const [index, { sql, args }] of statements.entries()) {
      at = index;
      values += args.length;
      if (values > VALUES_PER_TURN) {
        values = 0;
        writing.paused = true;
        await turn();
        // Here and nowhere else: whoever comes between this and the next statement would read in the transaction.
        writing.paused = false;
      }
      written.push(run(prepare(sql), args));
    }
    at = null;
    database.exec("COMMIT");
    return written;
  } catch (error) {
    if (database.inTransaction) database.exec("ROLLBACK");
    throw translated(error, at);
  }
}

function run(prepared: Prepared, args: Value[]): Written {
  if (!prepared.reader) return { rows: [], changes: prepared.statement.run(args).changes };
  const rows = rowsOf(prepared, args);
  return { rows, changes: rows.length };
}

function translated(error: unknown, statement: number | null): unknown {
  const code = errorCode(error);
  return error instanceof Error && code !== "" ? new EngineError(error, code, statement) : error;
}
