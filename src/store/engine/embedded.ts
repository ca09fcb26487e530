import type Database from "libsql";
import type { Clock } from "../../core/clock.ts";
import { type Committed, connect, type Prepared, rowsOf, Transaction, translated } from "./connection.ts";
import { type Engine, type Statement, VALUES_PER_TURN, weightOf, type Written } from "./engine.ts";
import { turnReads } from "./turn-reads.ts";
import { WriteThread, type WriterOptions } from "./write-thread.ts";

/** Octets of contents that a transaction may store here. */
export const OCTETS_HERE = 256 * 1024;
/** How long commits may take on average, milliseconds, before none is waited for here: the disk is slow. */
export const COMMIT_MS_HERE = 20;
/** Commits that the average is mostly of. */
const AVERAGED = 8;

export interface EmbeddedOptions {
  path: string;
  /** Null: all is written here. */
  writer: WriterOptions | null;
}

/**
 * A database file, opened in this process by libSQL itself. Reads are done where they are asked for, and so are small
 * transactions. Large ones, and all of them while the disk is slow, are a thread's, which has a connection of its own.
 *
 * What another connection has committed empties SQLite's cache of pages here. So a process that reads between its writes
 * makes most of them itself.
 */
export function openEmbedded(clock: Clock, { path, writer }: EmbeddedOptions): Engine {
  const own = connect(path);
  const reading = turnReads(own.database);
  const version = versionOf(own.database);
  const thread = writer === null ? null : new WriteThread(path, writer.open);
  const valuesHere = writer?.valuesHere ?? Infinity;
  let commitMs = 0;
  const writtenBy = (committed: Committed): Written[] => {
    // A clock that was put back says nothing of the disk.
    commitMs += (Math.max(0, committed.commitMs) - commitMs) / AVERAGED;
    return committed.written;
  };
  const here = (statements: readonly Statement[]): Committed => {
    const transaction = new Transaction(own);
    transaction.run(statements);
    return transaction.commit(clock);
  };
  const reads = readsOf((sql) => {
    reading.enter();
    return own.prepare(sql);
  });
  return {
    ...reads,
    async batch(statements) {
      const { values, octets } = weightOf(statements);
      const heavy = values > valuesHere || octets > OCTETS_HERE || commitMs > COMMIT_MS_HERE;
      // While the thread starts, what is not very long is done here.
      const beside =
        thread !== null &&
        heavy &&
        (thread.wake() || (values > VALUES_PER_TURN && (await thread.becomesReady())));
      // Reads of this turn that come after it see it.
      reading.leave();
      if (!beside) return writtenBy(here(statements));
      try {
        return writtenBy(await thread.batch(statements));
      } finally {
        reading.leave();
      }
    },
    version() {
      reading.enter();
      return version();
    },
    async close() {
      reading.leave();
      await thread?.close();
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
