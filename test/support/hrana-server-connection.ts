import Database from "libsql";
import {
  bound,
  type WireCondition,
  type WireError,
  wireError,
  type WireResult,
  type WireStatement,
  type WireStep,
  wire,
} from "./hrana-server-values.ts";

/** A refusal of the server's own, with the code of the protocol. */
export class Refusal extends Error {
  readonly code: string;
  constructor(code: string, message: string) {
    super(message);
    this.code = code;
  }
}

/** Outcome of a batch: for each step that ran a result or an error, and null if it did not run. */
export interface BatchOutcome {
  step_results: (WireResult | null)[];
  step_errors: (WireError | null)[];
}

/** One connection to the file, used by one stream. */
export interface Connection {
  execute(statement: WireStatement, sqls: ReadonlyMap<number, string>): WireResult;
  batch(steps: readonly WireStep[], sqls: ReadonlyMap<number, string>): BatchOutcome;
  sequence(sql: string): void;
  describe(sql: string): object;
  isAutocommit(): boolean;
  /** True once a statement failed. libSQL does not reset such a statement, so it may hold a lock of a table. */
  hasFailed(): boolean;
  /** Rolls back a transaction that a stream left open. */
  reset(): void;
}

interface Statement {
  reader: boolean;
  raw(on: boolean): Statement;
  safeIntegers(on: boolean): Statement;
  columns(): { name: string; type: string | null }[];
  all(args: unknown): unknown[];
  run(args: unknown): { changes: number; lastInsertRowid: number | bigint };
}

const MAX_PREPARED = 500;

/** Opens the file as the service's own engine does: WAL, synchronous=FULL, foreign keys. */
export function openConnection(path: string, fineCodes: boolean): Connection {
  const database = new Database(path, { timeout: 0 });
  for (const pragma of [
    "journal_mode = WAL",
    "synchronous = FULL",
    "foreign_keys = ON",
    // Replicas ask for the log, so it is never truncated.
    "wal_autocheckpoint = 0",
  ])
    database.exec(`PRAGMA ${pragma}`);
  const prepared = new Map<string, Statement>();
  const prepare = (sql: string): Statement => {
    const known = prepared.get(sql);
    if (known !== undefined) return known;
    const made = database.prepare(sql) as unknown as Statement;
    if (made.reader) made.raw(true).safeIntegers(true);
    const oldest = prepared.size >= MAX_PREPARED ? prepared.keys().next().value : undefined;
    if (oldest !== undefined) prepared.delete(oldest);
    prepared.set(sql, made);
    return made;
  };
  let failed = false;
  const connection: Connection = {
    execute(statement, sqls) {
      try {
        return run(prepare, statement, sqls);
      } catch (error) {
        failed = true;
        throw error;
      }
    },
    batch(steps, sqls) {
      const outcome: BatchOutcome = { step_results: [], step_errors: [] };
      for (const { condition, stmt } of steps) {
        let result: WireResult | null = null;
        let error: WireError | null = null;
        try {
          if (condition === undefined || holds(condition, outcome, connection))
            result = connection.execute(stmt, sqls);
        } catch (thrown) {
          error = wireError(thrown, fineCodes);
        }
        outcome.step_results.push(result);
        outcome.step_errors.push(error);
      }
      return outcome;
    },
    sequence: (sql) => void database.exec(sql),
    describe(sql) {
      const statement = prepare(sql);
      const cols = statement.reader ? statement.columns() : [];
      return {
        params: (sql.match(/\?/g) ?? []).map(() => ({ name: null })),
        cols: cols.map(({ name, type }) => ({ name, decltype: type })),
        is_explain: /^\s*EXPLAIN\b/i.test(sql),
        is_readonly: statement.reader && !changes(sql),
      };
    },
    isAutocommit: () => !database.inTransaction,
    hasFailed: () => failed,
    reset() {
      if (database.inTransaction) database.exec("ROLLBACK");
    },
  };
  return connection;
}

function changes(sql: string): boolean {
  return /^\s*(?:INSERT|UPDATE|DELETE|REPLACE)\b/i.test(sql) || /\bRETURNING\b/i.test(sql);
}

function run(
  prepare: (sql: string) => Statement,
  { sql, sql_id, args = [], named_args: named = [], want_rows: wantRows }: WireStatement,
  sqls: ReadonlyMap<number, string>,
): WireResult {
  const text = sql ?? sqls.get(sql_id ?? -1);
  if (text === undefined) throw new Refusal("SQL_NOT_FOUND", `SQL text ${sql_id} was not found`);
  const values =
    named.length === 0
      ? args.map(bound)
      : Object.fromEntries(named.map(({ name, value }) => [name, bound(value)]));
  const statement = prepare(text);
  if (!statement.reader) {
    const { changes: changed, lastInsertRowid } = statement.run(values);
    const count = changes(text) ? changed : 0;
    return {
      cols: [],
      rows: [],
      affected_row_count: count,
      last_insert_rowid: count > 0 ? String(lastInsertRowid) : null,
    };
  }
  const rows = statement.all(values) as unknown[][];
  const count = changes(text) ? Number(((prepare("SELECT changes()").all([])[0] ?? []) as unknown[])[0]) : 0;
  return {
    cols: statement.columns().map(({ name, type }) => ({ name, decltype: type })),
    rows: wantRows === false ? [] : rows.map((row) => row.map(wire)),
    affected_row_count: count,
    last_insert_rowid: null,
  };
}

function holds(condition: WireCondition, outcome: BatchOutcome, connection: Connection): boolean {
  switch (condition.type) {
    case "ok":
      return (outcome.step_results[condition.step] ?? null) !== null;
    case "error":
      return (outcome.step_errors[condition.step] ?? null) !== null;
    case "not":
      return !holds(condition.cond, outcome, connection);
    case "and":
      return condition.conds.every((one) => holds(one, outcome, connection));
    case "or":
      return condition.conds.some((one) => holds(one, outcome, connection));
    case "is_autocommit":
      return connection.isAutocommit();
  }
}
