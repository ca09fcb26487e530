import type { Statement, Value, Written } from "./engine.ts";
import type { ConfigurationQuery } from "./recall.ts";

/** The door to the database. Reads go straight through; every write goes through the group commit. */
export interface Db {
  /** All rows of a query, keyed by column name. The caller names their shape; libSQL gives text, numbers, null and bytes. */
  all<Row>(sql: string, args?: Value[]): Promise<Row[]>;
  /** The first row of a query, or null. */
  first<Row>(sql: string, args?: Value[]): Promise<Row | null>;
  /**
   * What the first row of a configuration query says, or null: exactly what the database would say now, but asked of it
   * only where configuration may have changed. The answer is shared.
   */
  recall<Row, Answer>(
    query: ConfigurationQuery<Row, Answer>,
    args: readonly string[],
  ): Promise<Answer | null>;
  /**
   * Something has come from outside, over a socket: what is read behind it is not older than it. Whoever has heard that
   * another process has committed must not be answered from before that. It is to be told each time, or once for all that
   * `gathering` has held until then.
   */
  heard(): void;
  /**
   * Has what is read behind it see all that anybody committed before. False where it always does: whoever has read need not read
   * again. A replica asks its primary, so it is for answers that cannot be taken back.
   */
  catchUp(): Promise<boolean>;
  /**
   * Commits the statements as one transaction, together with those of other callers that wait at the same time.
   * Resolves after the commit is durable; rejects with `ConstraintError` where one of them broke a constraint,
   * and then none of them took effect.
   */
  write(statements: Statement[]): Promise<Written[]>;
  /** Runs migration statements as one transaction, outside the group commit. */
  migrate(statements: Statement[]): Promise<void>;
  /** Waits for the writes in hand, then closes. */
  close(): Promise<void>;
}

/** Is told of commits, for counters. */
export interface CommitMeter {
  /** Seconds that a commit took, waiting for other processes included, and how many writers shared it. */
  committed(seconds: number, writers: number): void;
  /** A commit was not made, for another reason than a broken constraint. */
  failed(): void;
}
