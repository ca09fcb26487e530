import type { Clock } from "../../core/time/clock.ts";
import type { Statement, Value, Written } from "../sql/engine.ts";
import type { ConfigurationQuery } from "./config-cache.ts";

/** The only way to the database. Reads go directly to the engine, every write through the group commit. */
export interface Db {
  /** Returns all rows of a query, keyed by column name. The caller names their shape: text, numbers, null and bytes. */
  all<Row>(sql: string, args?: Value[]): Promise<Row[]>;
  /** Returns the first row of a query, or null. */
  first<Row>(sql: string, args?: Value[]): Promise<Row | null>;
  /**
   * Returns the answer to a configuration query, or null if it has no row. The answer is always current, but the query
   * runs only if configuration may have changed. Callers share the answer.
   */
  readConfig<Row, Answer>(
    query: ConfigurationQuery<Row, Answer>,
    args: readonly string[],
  ): Promise<Answer | null>;
  /**
   * Makes later reads see everything committed before this call. Called after data has come over a socket: the peer may
   * know of a commit of another process. One call is enough for all the data that `resumeTogether` has held.
   */
  refreshReads(): void;
  /**
   * Makes later reads see everything that any process has committed before this call. A replica asks its primary, so call it
   * only before an answer that cannot be taken back.
   * @returns false if reads always do, so that nothing has to be read again
   */
  syncWithPrimary(): Promise<boolean>;
  /**
   * Commits the statements as one transaction, together with those of other callers that wait at the same time. Resolves
   * after the commit is durable. If one of them breaks a constraint, rejects with `ConstraintError`, and none took effect.
   */
  write(statements: Statement[]): Promise<Written[]>;
  /** Runs migration statements as one transaction, outside the group commit. */
  migrate(statements: Statement[]): Promise<void>;
  /** Waits for the writes that were begun, then closes. */
  close(): Promise<void>;
}

/** The database, and the time of what is written. */
export interface Store {
  db: Db;
  clock: Clock;
}

/** Counts commits for the metrics. */
export interface CommitMeter {
  /** Records the seconds that a commit took, waits for other processes included, and how many writers shared it. */
  committed(seconds: number, writers: number): void;
  /** Records a commit that failed for another reason than a broken constraint. */
  failed(): void;
}
