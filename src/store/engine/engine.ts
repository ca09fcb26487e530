import type { RowsText } from "./rows-text.ts";

/** A value bound to a statement. */
export type Value = string | number | null | Uint8Array;

/** A value that is made where its statement runs, which may be a thread: when it is first asked for. */
export interface LaterValue {
  readonly value: Value;
  /** Octets that it takes at most. */
  readonly byteLength: number;
}

/** One SQL statement with its bound parameters. */
export interface Statement {
  sql: string;
  args: (Value | LaterValue)[];
  /** Where it is one that may be run together with others of its text, with `sql` as its text says. */
  rows?: RowsText | undefined;
}

/** One whose values are all there. */
export interface ReadyStatement extends Statement {
  args: Value[];
}

/**
 * Values of statements that are worked on in one turn of the event loop. Writers that share a transaction have no more
 * together; a single writer may: a hundred mails to fifty recipients each have eighty thousand.
 */
export const VALUES_PER_TURN = 5000;

/** How many values statements store, and the octets of contents and characters of texts among them. */
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

/** What one statement did: its RETURNING rows and how many rows it changed. */
export interface Written {
  rows: readonly Record<string, unknown>[];
  changes: number;
}

/** The first row that a statement gave; null where it gave none. The caller names its shape, as of a query's. */
export function firstReturned<Row>(written: Written | undefined): Row | null {
  return (written?.rows[0] as Row | undefined) ?? null;
}

/**
 * A database as the group commit drives it: a local file, a server, or a file that replicates one. Rows are keyed by
 * column name; bytes are ArrayBuffers.
 */
export interface Engine {
  all(sql: string, args: Value[]): Promise<Record<string, unknown>[]>;
  /** The first row of a query, or null. */
  first(sql: string, args: Value[]): Promise<Record<string, unknown> | null>;
  /** Runs the statements as one transaction that takes the write lock first. Throws `EngineError`; then none took effect. */
  batch(statements: readonly Statement[]): Promise<Written[]>;
  /** Whether a thread of ours does all of a batch, its statements too, while the event loop goes on. Left out: it does not. */
  readonly isInThread?: boolean;
  /** What is read from here on is not older than now. An engine without it never reads anything older. */
  renew?(): void;
  /** Resolves when reads see all that anybody has committed. An engine without it never reads anything older. */
  catchUp?(): Promise<void>;
  /**
   * A number that differs from the one before where configuration has changed since, seen by whoever reads now. An engine
   * without it cannot tell; null: neither can this one, now.
   */
  version?(): number | null;
  /** Lets go of it; nothing may be asked of it afterwards. */
  close(): Promise<void>;
}

/**
 * Why a statement or a transaction failed, in the terms that the group commit acts on. `unreachable`: the server was
 * not asked at all. `lost`: it may have been asked, and nobody knows whether it did what it was asked.
 */
export type EngineFault = "constraint" | "busy" | "unreachable" | "lost" | "other";

/** Faults of the database as a whole: what fails one writer fails them all. */
const OF_ALL: ReadonlySet<EngineFault> = new Set(["busy", "unreachable", "lost"]);

/** What the maker of an error knows better than its cause and code tell. */
export interface Told {
  fault?: EngineFault;
  message?: string;
}

/** A failure of the database. `code` is SQLite's, or the network's below a server. */
export class EngineError extends Error {
  readonly fault: EngineFault;
  readonly code: string;
  /** Position of the guilty statement in its batch; null where none is. */
  readonly statement: number | null;

  constructor(cause: Error, code: string, statement: number | null, told: Told = {}) {
    super(told.message ?? cause.message, { cause });
    this.name = "EngineError";
    this.code = code;
    this.statement = statement;
    this.fault = told.fault ?? faultOf(code);
  }

  /** Whether it has nothing to do with what was asked, so that asking for less would fail the same. */
  get ofAll(): boolean {
    return OF_ALL.has(this.fault);
  }
}

function faultOf(code: string): EngineFault {
  if (code.startsWith("SQLITE_CONSTRAINT")) return "constraint";
  // A server has names of its own for a write lock that cannot be had, or was taken away: nothing took effect.
  return /^(?:SQLITE_(?:BUSY|LOCKED)|TRANSACTION_(?:BUSY|TIMEOUT))/.test(code) ? "busy" : "other";
}

/** Whether an error says that somebody else holds the database, so that nothing was done and asking again may help. */
export function isBusy(error: unknown): boolean {
  return (error instanceof EngineError ? error.fault : faultOf(errorCode(error))) === "busy";
}

/** The `code` of an error, where it has one. */
export function errorCode(error: unknown): string {
  return error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : "";
}

/** A write refused by UNIQUE, CHECK, NOT NULL or FOREIGN KEY. */
export class ConstraintError extends Error {
  /** `table.column` list of a UNIQUE or PRIMARY KEY violation, else null. */
  readonly unique: string | null;
  /** `table.column` of a NOT NULL violation, else null. */
  readonly notNull: string | null;
  /** Whether a row that another one names is not there, or is named still. */
  readonly foreignKey: boolean;

  constructor(cause: EngineError) {
    super(cause.message, { cause });
    this.name = "ConstraintError";
    this.unique = /UNIQUE constraint failed: (.+)$/.exec(cause.message)?.[1] ?? null;
    this.notNull = /NOT NULL constraint failed: (\S+)/.exec(cause.message)?.[1] ?? null;
    this.foreignKey = cause.message.includes("FOREIGN KEY constraint failed");
  }
}
