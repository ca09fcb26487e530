import type Database from "libsql";
import type { Clock } from "../../core/time/clock.ts";
import { connect, openReader, type Prepared, rowsOf, Transaction, translated } from "./connection.ts";
import { type Engine, type Statement, VALUES_PER_TURN, weightOf, type Written } from "../sql/engine.ts";
import { withValues } from "../sql/deferred-content.ts";
import { watchFileIdentity } from "./file-identity.ts";
import { Writer, type WriterOptions } from "./writer.ts";

/*
 * The two ways in which a transaction is written to a file
 *
 * 1. On the event loop. The statements run on this thread's connection. Then COMMIT runs on a thread of libSQL's, so the
 *    event loop does not wait for the disk. Until the commit has ended, reads wait too, because SQLite serves one call of a
 *    connection at a time. All other work continues: parsing, signing, SMTP, HTTP. A process without a writer (a command)
 *    serves no one else, so it commits on the spot.
 *
 * 2. On the writer (`write-thread`, `serve-writes`). The statements are encoded, sent to a thread with a connection of
 *    its own, and run and committed there. Reads on the event loop continue during all of it.
 *
 * Why not always the thread? It costs twice. Encoding and decoding a small transaction takes more time of the event loop than
 * running it. And a commit of another connection makes SQLite drop the page cache of this one, so a process that reads
 * between its writes would read most pages again.
 *
 * Why not always the event loop? A large transaction would hold up every request for as long as it runs: SQLite has no
 * asynchronous statements. A batch of a hundred messages with fifty recipients each has eighty thousand values.
 *
 * The choice, in `batch` below:
 * - A transaction with more than `maxValuesHere` values or `MAX_OCTETS_HERE` bytes goes to the thread, all others run here.
 * - A process that takes sends, and has no role `worker`, sets `maxValuesHere` to 0, so all its writes go to the thread. It hardly reads between
 *   its writes, and its event loop is the bottleneck: a send takes 100 µs of the event loop and 95 µs of the thread.
 *   The group commit then prepares the next transaction while one is written (`Engine.writesOnCpu`).
 * - The thread starts with the first transaction that needs it. Until it is ready, transactions run here. Only one with more than
 *   VALUES_PER_TURN values waits for the start.
 * - If the thread has failed, all transactions run here. The one that it was running has an unknown outcome (fault `lost`).
 *
 * The group commit runs one transaction at a time, so the two connections never compete for the write lock.
 * Both ways run the same `Transaction`, so results and errors are the same; test/store/file/write-thread.test.ts compares them.
 */

/** Maximum bytes of contents and SQL that a transaction on the event loop may store. */
export const MAX_OCTETS_HERE = 256 * 1024;

export interface EmbeddedOptions {
  path: string;
  /** Null: all transactions run on the event loop, which also waits for the disk. */
  writer: WriterOptions | null;
}

/** Opens a database file in this process. Reads run at once, on the event loop. */
export function openEmbedded(clock: Clock, { path, writer }: EmbeddedOptions): Engine {
  const own = connect(path);
  const identity = watchFileIdentity(clock, path);
  const sharedReads = shareReads(own.database);
  const version = configVersionOf(own.database);
  const versionReader = writer === null ? null : separateVersionReader(path);
  const thread = writer === null ? null : new Writer(path, writer.open);
  const maxValuesHere = writer?.maxValuesHere ?? Infinity;
  /** Resolves when the commit that is waiting for the disk has ended; null if there is none. */
  let committing: Promise<void> | null = null;
  const batchHere = async (statements: readonly Statement[]): Promise<Written[]> => {
    while (committing !== null) await committing;
    // Computed before the transaction takes the write lock.
    const ready = withValues(statements);
    // Later reads of this turn must see the write.
    sharedReads.end();
    const transaction = new Transaction(own);
    transaction.run(ready);
    if (writer === null) return transaction.commit();
    const ending = transaction.commitOffLoop();
    const ended = () => {
      committing = null;
    };
    committing = ending.then(ended, ended);
    return ending;
  };
  const batchOnWriter = async (to: Writer, statements: readonly Statement[]): Promise<Written[]> => {
    sharedReads.end();
    try {
      return await to.batch(statements);
    } finally {
      sharedReads.end();
    }
  };
  const batch = async (statements: readonly Statement[]): Promise<Written[]> => {
    const { values, octets } = weightOf(statements);
    const isLarge = values > maxValuesHere || octets > MAX_OCTETS_HERE;
    if (thread === null || !isLarge) return batchHere(statements);
    const canUse = thread.start() || (values > VALUES_PER_TURN && (await thread.waitUntilReady()));
    return canUse ? batchOnWriter(thread, statements) : batchHere(statements);
  };
  const reads = readsOf((sql) => {
    sharedReads.beforeRead();
    return own.prepare(sql);
  });
  return {
    async all(sql, args) {
      while (committing !== null) await committing;
      identity.check();
      return reads.all(sql, args);
    },
    async first(sql, args) {
      while (committing !== null) await committing;
      identity.check();
      return reads.first(sql, args);
    },
    async batch(statements) {
      const written = await batch(statements);
      // Before the writers learn that it is stored.
      identity.checkAfterCommit();
      return written;
    },
    writesOnCpu: maxValuesHere === 0,
    // More writers together would go to the thread, although each alone would not.
    ...(thread === null || maxValuesHere === 0 ? {} : { octetsPerCommit: MAX_OCTETS_HERE }),
    refreshReads: sharedReads.end,
    configVersion() {
      // A call on the connection would wait for the disk. And the commit may have ended already, with another
      // process's commit after it.
      if (committing !== null) return versionReader?.version() ?? null;
      sharedReads.beforeRead();
      return version();
    },
    async close() {
      await thread?.close();
      while (committing !== null) await committing;
      sharedReads.end();
      versionReader?.close();
      own.close();
    },
  };
}

/** Returns a function that reads the version of configuration; null if the schema has no such table yet. */
function configVersionOf(database: Database.Database): () => number | null {
  let query: Database.Statement | null = null;
  return () => {
    try {
      query ??= database.prepare("SELECT value FROM configuration_version").raw();
      const [value] = query.get([]) as unknown[];
      return typeof value === "number" ? value : null;
    } catch {
      return null;
    }
  };
}

/** Reads the version of configuration while a commit blocks the main connection. */
interface VersionReader {
  version(): number | null;
  close(): void;
}

/** Reads the version on a separate connection, opened at the first call. */
function separateVersionReader(path: string): VersionReader {
  let database: Database.Database | null = null;
  let version: (() => number | null) | null = null;
  return {
    version() {
      if (version === null) {
        database = openReader(path);
        version = configVersionOf(database);
      }
      return version();
    },
    close: () => void database?.close(),
  };
}

/** Returns the read functions of a database that libSQL has opened in this process. */
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
        // libSQL adds a column with the time that a `get` took.
        if (row !== undefined) delete row._metadata;
        return row ?? null;
      } catch (error) {
        throw translated(error, null);
      }
    },
  };
}

/** Tells a connection's shared read transaction when to begin and end. */
interface SharedReads {
  /** Called before each read. */
  beforeRead(): void;
  /** Ends the read transaction, if one is open. Called before the connection is used for anything but a read. */
  end(): void;
}

/**
 * Lets the reads of one tick of the event loop share a transaction, from the second read on. Outside a transaction
 * SQLite locks and unlocks the file for each read, which costs as much as a small read does.
 *
 * Reads in one transaction see the database as of one moment. So a write of this process ends it first, and so does
 * `Db.refreshReads`.
 */
function shareReads(database: Database.Database): SharedReads {
  // Deferred: it takes no lock before the first read.
  const begin = database.prepare("BEGIN DEFERRED");
  // Nothing was written. A COMMIT would be refused if a statement was not read to its end.
  const rollback = database.prepare("ROLLBACK");
  let reads = 0;
  let isOpen = false;
  const end = (): void => {
    if (!isOpen) return;
    isOpen = false;
    // SQLite ends a transaction by itself if the file fails.
    if (database.inTransaction) rollback.run();
  };
  return {
    beforeRead() {
      reads++;
      if (reads === 1)
        setImmediate(() => {
          reads = 0;
          end();
        });
      if (reads < 2 || isOpen) return;
      begin.run();
      isOpen = true;
    },
    end,
  };
}
