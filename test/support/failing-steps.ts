import Database from "libsql";
import PromiseDatabase from "libsql/promise";
import { EngineError } from "../../src/store/sql/errors.ts";

/**
 * How a database step fails. `refused`: it is not done and throws an error. `unheard`: the commit happens but its
 * reply is lost.
 */
export type Way = "refused" | "unheard";

/** The libSQL calls of this process, any of which can be made to fail. */
export interface FailingSteps {
  /** Number of all steps so far, watched or not. If it stops growing, the database is idle. */
  readonly taken: number;
  /**
   * Starts counting the steps that can fail this way, from 0, and makes the step with that number fail. Of a
   * transaction only the first statement counts, because any failure rolls back all of them.
   */
  watch(failing: { at: number; way: Way }): void;
  /** Stops counting. Returns the failed step as a string, or null if that number was not reached. */
  unwatch(): string | null;
  /** Restores libSQL. */
  restore(): void;
}

/** Ends the failed transaction, which has not really failed. */
const ENDING = /^ROLLBACK/;

const METHODS = ["run", "get", "all"] as const;
type Method = (...args: unknown[]) => unknown;

/** Wraps libSQL for every connection that the service opens. */
export function failingSteps(): FailingSteps {
  const database = Database.prototype as unknown as Record<"exec" | "prepare", Method>;
  const beside = PromiseDatabase.prototype as unknown as Record<"exec", Method>;
  const probe = new Database(":memory:");
  const statement = Object.getPrototypeOf(probe.prepare("SELECT 1")) as Record<
    (typeof METHODS)[number],
    Method
  >;
  probe.close();
  const { exec, prepare } = database;
  const execBeside = beside.exec;
  const methods = METHODS.map((name) => [name, statement[name]] as const);
  const texts = new WeakMap<object, string>();
  let taken = 0;
  let count = 0;
  let failing: { at: number; way: Way } | null = null;
  let failed: string | null = null;
  /** Statements of the open transaction, or null if there is none. */
  let statements: number | null = null;

  /** Returns whether the step can fail this way. */
  function counts(sql: string, way: Way): boolean {
    if (sql === "BEGIN IMMEDIATE") statements = 0;
    else if (sql === "COMMIT" || ENDING.test(sql)) statements = null;
    else if (statements !== null) statements++;
    return way === "unheard" ? sql === "COMMIT" : !ENDING.test(sql) && (statements ?? 0) < 2;
  }

  /** Throws if the step must be refused. Returns whether its reply must be lost. */
  function step(sql: string): boolean {
    taken++;
    const { at, way } = failing ?? { at: -1, way: "refused" };
    if (!counts(sql, way) || count++ !== at) return false;
    failed = sql;
    if (way === "unheard") return true;
    throw Object.assign(new Error("disk I/O error"), { code: "SQLITE_IOERR" });
  }
  const unheard = (): Error => new EngineError(new Error("the reply was lost"), "", null, { fault: "lost" });

  database.exec = function (this: unknown, ...args) {
    const isUnheard = step(String(args[0]));
    const done = exec.apply(this, args);
    if (isUnheard) throw unheard();
    return done;
  };
  beside.exec = async function (this: unknown, ...args) {
    const isUnheard = step(String(args[0]));
    try {
      await execBeside.apply(this, args);
    } finally {
      taken++;
    }
    if (isUnheard) throw unheard();
  };
  database.prepare = function (this: unknown, ...args) {
    const prepared = prepare.apply(this, args) as object;
    texts.set(prepared, String(args[0]));
    return prepared;
  };
  for (const [name, method] of methods)
    statement[name] = function (this: object, ...args) {
      step(texts.get(this) ?? "");
      return method.apply(this, args);
    };
  return {
    get taken() {
      return taken;
    },
    watch(wanted) {
      failing = wanted;
      count = 0;
      failed = null;
    },
    unwatch() {
      failing = null;
      return failed;
    },
    restore() {
      Object.assign(database, { exec, prepare });
      beside.exec = execBeside;
      for (const [name, method] of methods) statement[name] = method;
    },
  };
}
