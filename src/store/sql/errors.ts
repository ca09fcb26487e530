/**
 * Why a statement or a transaction failed, in the terms that the group commit acts on. `unreachable`: the request never
 * reached the server. `lost`: it may have, and its outcome is unknown.
 */
export type EngineFault = "constraint" | "busy" | "unreachable" | "lost" | "other";

/** Faults of the database as a whole: every write would fail the same way. */
const DATABASE_WIDE: ReadonlySet<EngineFault> = new Set(["busy", "unreachable", "lost"]);

/** Overrides what the cause and the code say. */
export interface ErrorDetails {
  fault?: EngineFault;
  message?: string;
}

/** A failure of the database. `code` is SQLite's, or the network's if the server did not answer. */
export class EngineError extends Error {
  readonly fault: EngineFault;
  readonly code: string;
  /** Index of the failed statement in its batch; null if unknown. */
  readonly statement: number | null;

  constructor(cause: Error, code: string, statement: number | null, details: ErrorDetails = {}) {
    super(details.message ?? cause.message, { cause });
    this.name = "EngineError";
    this.code = code;
    this.statement = statement;
    this.fault = details.fault ?? faultOf(code);
  }

  /** True if the cause is not in the statements, so that fewer of them would fail the same way. */
  get isDatabaseWide(): boolean {
    return DATABASE_WIDE.has(this.fault);
  }
}

function faultOf(code: string): EngineFault {
  if (code.startsWith("SQLITE_CONSTRAINT")) return "constraint";
  // A server has its own codes for a write lock that it could not take, or lost. Nothing took effect then.
  return /^(?:SQLITE_(?:BUSY|LOCKED)|TRANSACTION_(?:BUSY|TIMEOUT))/.test(code) ? "busy" : "other";
}

/** Returns true if another process has locked the database: nothing was done, and a retry may succeed. */
export function isBusy(error: unknown): boolean {
  return (error instanceof EngineError ? error.fault : faultOf(errorCode(error))) === "busy";
}

/** Returns the `code` of an error, or "" if it has none. */
export function errorCode(error: unknown): string {
  return error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : "";
}

/** Codes of libSQL, the network and the object store for a service that is out of reach or unusable for now. */
const UNAVAILABLE =
  /^(?:SQLITE_(?:BUSY|LOCKED|CANTOPEN|IOERR|FULL|READONLY|PROTOCOL)|SERVER_ERROR|BLOCKED|HRANA_|CLIENT_CLOSED|ECONN|EPIPE|ETIMEDOUT|ENOTFOUND|EAI_|ConnectionRefused|ConnectionClosed|FailedToOpenSocket|OBJECT_STORE$)/;

/** Returns true if the database or the object store is out of reach, so that a later try may succeed. */
export function isUnavailable(error: unknown): boolean {
  if (error instanceof EngineError && error.isDatabaseWide) return true;
  return UNAVAILABLE.test(errorCode(error));
}

/** A request after the database was closed, as a shutdown does once its grace is over. No repeat of it can succeed. */
export class ClosedError extends Error {
  constructor() {
    super("the database is closed");
    this.name = "ClosedError";
  }
}

/** A write refused by UNIQUE, CHECK, NOT NULL or FOREIGN KEY. */
export class ConstraintError extends Error {
  /** `table.column` list of a UNIQUE or PRIMARY KEY violation, else null. */
  readonly unique: string | null;
  /** `table.column` of a NOT NULL violation, else null. */
  readonly notNull: string | null;
  /** True if the row refers to one that does not exist, or is still referred to. */
  readonly foreignKey: boolean;

  constructor(cause: EngineError) {
    super(cause.message, { cause });
    this.name = "ConstraintError";
    this.unique = /UNIQUE constraint failed: (.+)$/.exec(cause.message)?.[1] ?? null;
    this.notNull = /NOT NULL constraint failed: (\S+)/.exec(cause.message)?.[1] ?? null;
    this.foreignKey = cause.message.includes("FOREIGN KEY constraint failed");
  }
}
