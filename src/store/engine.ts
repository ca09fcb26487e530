/** A value bound to a statement. */
export type Value = string | number | null | Uint8Array;

/** One SQL statement with its bound parameters. */
export interface Statement {
  sql: string;
  args: Value[];
}

/** What one statement did: its RETURNING rows and how many rows it changed. */
export interface Written {
  rows: readonly Record<string, unknown>[];
  changes: number;
}

/** A database as the group commit drives it: a local file, or a server. Rows are keyed by column name; bytes are ArrayBuffers. */
export interface Engine {
  all(sql: string, args: Value[]): Promise<Record<string, unknown>[]>;
  /** The first row of a query, or null. */
  first(sql: string, args: Value[]): Promise<Record<string, unknown> | null>;
  /** Runs the statements as one transaction that takes the write lock first. Throws `EngineError`; then none took effect. */
  batch(statements: readonly Statement[]): Promise<Written[]>;
  close(): void;
}

/** Why a statement or a transaction failed, in the terms that the group commit acts on. */
export type EngineFault = "constraint" | "busy" | "other";

/** A failure of the database. `code` is SQLite's, or the network's below a server. */
export class EngineError extends Error {
  readonly fault: EngineFault;
  readonly code: string;
  /** Position of the guilty statement in its batch; null where none is. */
  readonly statement: number | null;

  constructor(cause: Error, code: string, statement: number | null) {
    super(cause.message, { cause });
    this.name = "EngineError";
    this.code = code;
    this.statement = statement;
    this.fault = faultOf(code);
  }
}

function faultOf(code: string): EngineFault {
  if (code.startsWith("SQLITE_CONSTRAINT")) return "constraint";
  return /^SQLITE_(?:BUSY|LOCKED)/.test(code) ? "busy" : "other";
}

/** The `code` of an error, where it has one. */
export function errorCode(error: unknown): string {
  return error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : "";
}
