import type Database from "libsql";
import type { Clock } from "../../core/clock.ts";
import { connect, openReader, type Prepared, rowsOf, Transaction, translated } from "./connection.ts";
import { type Engine, type Statement, VALUES_PER_TURN, weightOf, type Written } from "./engine.ts";
import { ready } from "./later-content.ts";
import { watchPlace } from "./place.ts";
import { turnReads } from "./turn-reads.ts";
import { WriteThread, type WriterOptions } from "./write-thread.ts";

/** Octets of contents and texts that a transaction may store here. */
export const OCTETS_HERE = 256 * 1024;

export interface EmbeddedOptions {
  path: string;
  /** Null: all is written here, and the event loop waits for the disk. */
  writer: WriterOptions | null;
}

/**
 * A database file, opened in this process by libSQL itself. Reads are done where they are asked for, and so are the
 * statements of small transactions; the disk is waited for beside the event loop. Reads that come meanwhile wait as well.
 * Large transactions are a thread's, which has a connection of its own.
 *
 * What another connection has committed empties SQLite's cache of pages here. So a process that reads between its writes
 * makes most of them itself.
 */
export function openEmbedded(clock: Clock, { path, writer }: EmbeddedOptions): Engine {
  const own = connect(path);
  const place = watchPlace(clock, path);
  const reading = turnReads(own.database);
  const version = versionOf(own.database);
  const watch = writer === null ? null : versionWatch(path);
  const thread = writer === null ? null : new WriteThread(path, writer.open);
  const valuesHere = writer?.valuesHere ?? Infinity;
  /** Resolves when the commit that waits for the disk has ended; null: none does. */
  let committing: Promise<void> | null = null;
  const here = async (statements: readonly Statement[]): Promise<Written[]> => {
    while (committing !== null) await committing;
    // Before it takes the lock.
    const made = ready(statements);
    // Reads of this turn that come after it see it.
    reading.leave();
    const transaction = new Transaction(own);
    transaction.run(made);
    if (writer === null) return transaction.commit();
    const ending = transaction.commitBeside();
    const ended = () => {
      committing = null;
    };
    committing = ending.then(ended, ended);
    return ending;
  };
  const batch = async (statements: readonly Statement[]): Promise<Written[]> => {
    const { values, octets } = weightOf(statements);
    const heavy = values > valuesHere || octets > OCTETS_HERE;
    // While the thread starts, what is not very long is done here.
    const beside =
      thread !== null &&
      heavy &&
      (thread.wake() || (values > VALUES_PER_TURN && (await thread.becomesReady())));
    if (!beside) return here(statements);
    reading.leave();
    try {
      return await thread.batch(statements);
    } finally {
      reading.leave();
    }
  };
  const reads = readsOf((sql) => {
    reading.enter();
    return own.prepare(sql);
  });
  return {
    async all(sql, args) {
      while (committing !== null) await committing;
      place.check();
      return reads.all(sql, args);
    },
    async first(sql, args) {
      while (committing !== null) await committing;
      place.check();
      return reads.first(sql, args);
    },
    async batch(statements) {
      const written = await batch(statements);
      // Before anybody is told that it is stored.
      place.committed();
      return written;
    },
    isInThread: valuesHere === 0,
    renew: reading.leave,
    version() {
      // To ask the connection would wait for the disk. It may have ended already, and another process have committed since.
      if (committing !== null) return watch?.version() ?? null;
      reading.enter();
      return version();
    },
    async close() {
      await thread?.close();
      while (committing !== null) await committing;
      reading.leave();
      watch?.close();
      own.close();
    },
  };
}

/** Reads the version of configuration; null where the schema has none yet. It is asked in each turn of the event loop. */
function versionOf(database: Database.Database): () => number | null {
  let asking: Database.Statement | null = null;
  return () => {
    try {
      asking ??= database.prepare("SELECT value FROM configuration_version").raw();
      const [value] = asking.get([]) as unknown[];
      return typeof value === "number" ? value : null;
    } catch {
      return null;
    }
  };
}

/** Reads the version of configuration while a commit holds the connection that else is asked. */
interface VersionWatch {
  version(): number | null;
  close(): void;
}

/** By a connection of its own, which is opened when it is first wanted. */
function versionWatch(path: string): VersionWatch {
  let database: Database.Database | null = null;
  let version: (() => number | null) | null = null;
  return {
    version() {
      if (version === null) {
        database = openReader(path);
        version = versionOf(database);
      }
      return version();
    },
    close: () => void database?.close(),
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
