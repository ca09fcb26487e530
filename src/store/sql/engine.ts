/** A value bound to a statement. */
export type Value = string | number | null | Uint8Array;

/** A value that is computed on the thread that runs its statement, when it is first read. */
export interface DeferredValue {
  readonly value: Value;
  /** Upper bound of its bytes. */
  readonly byteLength: number;
}

/** Tables whose rows may be merged, parents first. */
export const MERGED_TABLES = [
  "usage",
  "idempotency",
  "contents",
  "messages",
  "message_content",
  "attachments",
  "recipients",
  "events",
  "webhook_deliveries",
  "threads",
  "thread_references",
  "inboxes",
  // Last, because a limit is compared after the rows of the write are counted.
  "holdings",
] as const;

/**
 * SQL that only adds rows to a table, or counts on existing ones. By using it, a writer allows its statement to run
 * out of order, as long as parents come first. It may run before or after other writers' statements, and the
 * writer's statements for other tables. It returns no rows.
 */
export interface RowsText {
  /** The whole text for one statement. */
  sql: string;
  table: (typeof MERGED_TABLES)[number];
  before: string;
  /** The part that is repeated for each statement: rows in brackets, with parameters numbered from `?1`. */
  rows: string;
  after: string;
  /** Number of parameters in `rows`; null if the text must not be repeated. */
  parameters: number | null;
}

/** One SQL statement with its bound parameters. */
export interface Statement {
  sql: string;
  args: (Value | DeferredValue)[];
  /** Set if the statement may be merged with others of the same text; `sql` is then the text for one. */
  rows?: RowsText | undefined;
  /** True if it changes a row only now and then: the audit trail then takes the database's time for it, as the service's. */
  seldom?: boolean;
}

/** A statement without deferred values. */
export interface ReadyStatement extends Statement {
  args: Value[];
}

/**
 * Maximum number of statement values handled in one tick of the event loop. Writers that share a transaction stay
 * below it together. A single writer may exceed it: a hundred messages to fifty recipients each have eighty
 * thousand values.
 */
export const VALUES_PER_TURN = 5000;

/**
 * Counts the values that statements store, and the bytes of contents and characters of strings among them.
 */
export function weightOf(statements: readonly Statement[]): { values: number; octets: number } {
  let values = 0;
  let octets = 0;
  for (const { args } of statements) {
    values += args.length;
    for (const value of args)
      if (typeof value === "string") octets += value.length;
      else if (typeof value === "object" && value !== null) octets += value.byteLength;
  }
  return { values, octets };
}

/** The result of one statement: its RETURNING rows and how many rows it changed. */
export interface Written {
  rows: readonly Record<string, unknown>[];
  changes: number;
}

/** Returns the first row that a statement returned, or null. The caller names its shape, as for a query. */
export function firstReturned<Row>(written: Written | undefined): Row | null {
  return (written?.rows[0] as Row | undefined) ?? null;
}

/**
 * A database as the group commit drives it: a local file, a server, or a replica of a server. Rows are keyed by column
 * name; bytes are ArrayBuffers.
 */
export interface Engine {
  all(sql: string, args: Value[]): Promise<Record<string, unknown>[]>;
  /** Returns the first row of a query, or null. */
  first(sql: string, args: Value[]): Promise<Record<string, unknown> | null>;
  /** Runs the statements as one transaction that takes the write lock first. If it throws `EngineError`, none took effect. */
  batch(statements: readonly Statement[]): Promise<Written[]>;
  /** True if a worker thread runs whole batches, so that the event loop is free during a commit. */
  readonly writesOnCpu?: boolean;
  /**
   * Bytes of contents and strings up to which writers share a commit. Absent if there is no reason to stop early.
   */
  readonly octetsPerCommit?: number;
  /** Makes later reads see everything committed before this call. Absent if they always do. */
  refreshReads?(): void;
  /** Resolves when reads see everything that any process has committed. Absent if they always do. */
  syncWithPrimary?(): Promise<void>;
  /**
   * Returns a number that changes with every change of configuration that reads can see. If it is absent or null,
   * changes cannot be detected (now).
   */
  configVersion?(): number | null;
  /** Releases the database. It must not be used afterwards. */
  close(): Promise<void>;
}
