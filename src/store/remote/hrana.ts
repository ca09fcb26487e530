/** The words of Hrana 2 in JSON, the protocol of libSQL servers: requests of a stream, and what their results say. */
import type { ReadyStatement, Value, Written } from "../sql/engine.ts";

export interface WireRequest {
  type: "execute" | "batch" | "store_sql" | "close_sql" | "close";
  sql_id?: number;
  sql?: string;
  stmt?: WireStatement;
  batch?: { steps: { condition?: Condition; stmt: WireStatement }[] };
}

interface WireStatement {
  sql?: string;
  sql_id?: number;
  args: WireValue[];
}

/** Integers are strings, because JSON has no 64 bits. */
type WireValue =
  | { type: "null" }
  | { type: "integer"; value: string }
  | { type: "float"; value: number }
  | { type: "text"; value: string }
  | { type: "blob"; base64: string };

type Condition = { type: "ok"; step: number } | { type: "not"; cond: Condition };

interface WireResult {
  cols: { name: string | null }[];
  rows: WireValue[][];
  affected_row_count: number;
}

interface WireError {
  message: string;
  code?: string | null;
}

/** The result of one request: the fields that we read. */
export type WireOutcome =
  | { type: "ok"; response?: { result?: unknown } }
  | { type: "error"; error: WireError };

interface BatchResult {
  step_results: (WireResult | null)[];
  step_errors: (WireError | null)[];
}

/** The code of an answer that does not follow the protocol. */
export const NO_HRANA = "HRANA_PROTO_ERROR";
const NOT_RUN: WireError = { message: "the server did not run the statement", code: "TRANSACTION_CLOSED" };
/**
 * Maximum number of SQL strings that a stream can store for one transaction. sqld keeps fifty, each of less than
 * 5000 bytes.
 */
const MAX_TEXTS = 40;
const MAX_TEXT_OCTETS = 4000;

/** A failure that the server reports. */
export class HranaError extends Error {
  readonly code: string;
  /** The HTTP status, if it is not 200. */
  readonly status: number | null;
  /** Index of the statement that failed; null if it is none, or unknown. */
  readonly statement: number | null;

  constructor(
    message: string,
    code: string,
    { status = null, statement = null }: { status?: number | null; statement?: number | null } = {},
  ) {
    super(message);
    this.name = "HranaError";
    this.code = code;
    this.status = status;
    this.statement = statement;
  }
}

export interface Query {
  sql: string;
  args: readonly Value[];
}

export function queryRequest({ sql, args }: Query): WireRequest {
  return { type: "execute", stmt: { sql, args: args.map(toWire) } };
}

/** Makes a transaction of queries, which see the database as of one moment. Each runs even if another one fails. */
export function queriesRequest(queries: readonly Query[]): WireRequest {
  // Deferred: it takes no lock.
  const begin = { stmt: { sql: "BEGIN DEFERRED", args: [] } };
  const work = queries.map(({ sql, args }) => ({
    condition: succeeded(0),
    stmt: { sql, args: args.map(toWire) },
  }));
  return {
    type: "batch",
    batch: { steps: [begin, ...work, ...endOfTransaction(succeeded(0), queries.length + 1)] },
  };
}

/** Returns the outcome of each query of `queriesRequest`, of the outcome of all. */
export function outcomesOf(outcome: WireOutcome | undefined, queries: number): WireOutcome[] {
  return understood(() => {
    const { step_results: results, step_errors: errors } = resultOf(outcome) as BatchResult;
    return Array.from({ length: queries }, (_, at): WireOutcome => {
      const result = results[at + 1];
      if (result != null) return { type: "ok", response: { result } };
      return { type: "error", error: errors[at + 1] ?? errors[0] ?? NOT_RUN };
    });
  });
}

/** A transaction as requests of one pipeline. */
export interface Transaction {
  requests: WireRequest[];
  /** Index of the request that runs it. */
  at: number;
}

/**
 * Makes a transaction that takes the write lock first. Each statement runs only if the one before succeeded, and what did not
 * reach its COMMIT is rolled back. SQL that is used several times is sent once.
 */
export function transactionRequests(statements: readonly ReadyStatement[]): Transaction {
  const ids = repeatedTexts(statements);
  const begin = { stmt: { sql: "BEGIN IMMEDIATE", args: [] } };
  const work = statements.map(({ sql, args }, at) => {
    const id = ids.get(sql);
    const text = id === undefined ? { sql } : { sql_id: id };
    return { condition: succeeded(at), stmt: { ...text, args: args.map(toWire) } };
  });
  const end = endOfTransaction(succeeded(statements.length), statements.length + 1);
  const texts = [...ids];
  return {
    requests: [
      ...texts.map(([sql, id]) => ({ type: "store_sql" as const, sql, sql_id: id })),
      { type: "batch", batch: { steps: [begin, ...work, ...end] } },
      ...texts.map(([, id]) => ({ type: "close_sql" as const, sql_id: id })),
    ],
    at: texts.length,
  };
}

/** Returns the last two steps of a transaction: a COMMIT under the condition, as the step of that index, else a ROLLBACK. */
function endOfTransaction(condition: Condition, at: number): { condition: Condition; stmt: WireStatement }[] {
  return [
    { condition, stmt: { sql: "COMMIT", args: [] } },
    { condition: { type: "not", cond: succeeded(at) }, stmt: { sql: "ROLLBACK", args: [] } },
  ];
}

function succeeded(step: number): Condition & { type: "ok" } {
  return { type: "ok", step };
}

/** Returns an id for each text that several statements have. */
function repeatedTexts(statements: readonly ReadyStatement[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const { sql } of statements) counts.set(sql, (counts.get(sql) ?? 0) + 1);
  const repeated = [...counts].filter(
    ([sql, count]) => count > 1 && Buffer.byteLength(sql) <= MAX_TEXT_OCTETS,
  );
  return new Map(repeated.slice(0, MAX_TEXTS).map(([sql], id) => [sql, id]));
}

/** Returns the rows of a query. Throws `HranaError` if it failed. */
export function rowsOf(outcome: WireOutcome | undefined): Record<string, unknown>[] {
  // The server's own shape. Whatever is missing fails within `understood`.
  return understood(() => plainRows(resultOf(outcome) as WireResult));
}

/** Returns what each of a transaction's statements did. Throws `HranaError` if it was not committed. */
export function writtenOf(outcome: WireOutcome | undefined, statements: number): Written[] {
  return understood(() => {
    const { step_results: results, step_errors: errors } = resultOf(outcome) as BatchResult;
    const steps = [...Array(statements + 2).keys()];
    const failed = steps.find((step) => results[step] == null);
    if (failed !== undefined) {
      const { message, code } = errors[failed] ?? NOT_RUN;
      const isStatement = failed > 0 && failed <= statements;
      throw new HranaError(message, code ?? "UNKNOWN", { statement: isStatement ? failed - 1 : null });
    }
    return results.slice(1, statements + 1).map((result) => {
      const rows = plainRows(result as WireResult);
      // With RETURNING, the rows are the changes, and not every server counts them.
      return { rows, changes: Math.max(result?.affected_row_count ?? 0, rows.length) };
    });
  });
}

/** A line of a cursor's answer: the fields that we read. */
interface CursorEntry {
  type: string;
  cols?: WireResult["cols"];
  row?: WireValue[];
  error?: WireError;
}

/** Returns the outcome of a query from the lines of a cursor's answer after the first. */
export function outcomeOfCursor(lines: readonly string[]): WireOutcome {
  const rows: WireValue[][] = [];
  let cols: WireResult["cols"] | null = null;
  let isWhole = false;
  for (const line of lines) {
    const entry: CursorEntry = JSON.parse(line);
    if (entry.error !== undefined) return { type: "error", error: entry.error };
    cols ??= entry.cols ?? null;
    if (entry.row !== undefined) rows.push(entry.row);
    isWhole ||= entry.type === "step_end";
  }
  if (!isWhole) throw new HranaError("the answer of a cursor has no end", NO_HRANA);
  return { type: "ok", response: { result: { cols, rows } } };
}

/** Returns whether the server refuses to answer in one piece. By default sqld's limit is 10 MB, and 32 MB for all answers. */
export function isTooLarge(outcome: WireOutcome | undefined): boolean {
  return outcome?.type === "error" && outcome.error.code === "RESPONSE_TOO_LARGE";
}

/** Returns whether a query or a transaction has surely left no transaction open. */
export function isOver(outcome: WireOutcome | undefined): boolean {
  if (outcome?.type !== "ok") return false;
  const { step_results: results } = (outcome.response?.result ?? {}) as Partial<BatchResult>;
  // A query alone begins none. Of a transaction, its COMMIT or the ROLLBACK at its end must have succeeded.
  return (
    results === undefined || (Array.isArray(results) && results.slice(-2).some((result) => result !== null))
  );
}

function resultOf(outcome: WireOutcome | undefined): unknown {
  if (outcome?.type === "error") {
    const { message, code } = outcome.error;
    throw new HranaError(message, code ?? "UNKNOWN");
  }
  return outcome?.response?.result;
}

/** Runs `read`, and reports what it cannot read as an answer that does not follow the protocol. */
function understood<Read>(read: () => Read): Read {
  try {
    return read();
  } catch (error) {
    if (error instanceof TypeError) throw new HranaError(error.message, NO_HRANA);
    throw error;
  }
}

/** Returns plain objects, as an embedded database does. */
function plainRows({ cols, rows }: WireResult): Record<string, unknown>[] {
  const names = cols.map(({ name }) => name ?? "");
  return rows.map((row) => Object.fromEntries(row.map((value, at) => [names[at] ?? "", fromWire(value)])));
}

function toWire(value: Value): WireValue {
  if (value === null) return { type: "null" };
  // JSON would write half of a surrogate pair as an escape, which servers refuse. A file stores it as U+FFFD, too.
  if (typeof value === "string") return { type: "text", value: value.toWellFormed() };
  if (typeof value === "number") {
    // JSON would make it null.
    if (!Number.isFinite(value)) throw new RangeError(`${value} cannot be stored`);
    return { type: "float", value };
  }
  return {
    type: "blob",
    base64: Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString("base64"),
  };
}

function fromWire(value: WireValue): unknown {
  switch (value.type) {
    case "null":
      return null;
    case "float":
    case "text":
      return value.value;
    case "integer": {
      const number = Number(value.value);
      if (!Number.isSafeInteger(number)) throw new RangeError(`${value.value} is too large for a number`);
      return number;
    }
    case "blob":
      return new Uint8Array(Buffer.from(value.base64, "base64")).buffer;
  }
}
