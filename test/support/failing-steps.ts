import Database from "libsql";
import PromiseDatabase from "libsql/promise";
import { EngineError } from "../../src/store/engine/engine.ts";

/**
 * How a step at a database fails: `refused`: it is not done, and an error says so. `unheard`: a commit is made, and nobody hears
 * of it, as where a server's reply is lost.
 */
export type Way = "refused" | "unheard";

/** The steps that this process takes at databases of libSQL's, each of which may be made to fail. */
export interface FailingSteps {
  /** All taken so far, watched or not: where it stands still, nothing is going on. */
  readonly taken: number;
  /**
   * From now on counts the steps that may fail so, and has the one of that number fail, from 0 on. Of the statements of a
   * transaction the first one counts: whichever it is, all are taken back.
   */
  watch(failing: { at: number; way: Way }): void;
  /** Ends that. Gives the step that failed, as a text; null where it did not come to it. */
  unwatch(): string | null;
  /** Makes libSQL what it was. */
  restore(): void;
}

/** Ends what has failed: it does not fail in reality. */
const ENDING = /^ROLLBACK/;

const METHODS = ["run", "get", "all"] as const;
type Method = (...args: unknown[]) => unknown;

/** Puts itself between the service and libSQL, whatever connections there are. */
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
  /** Statements of the transaction that is open; null: none is. */
  let statements: number | null = null;

  /** Whether the step is one that may fail so. */
  function counts(sql: string, way: Way): boolean {
    if (sql === "BEGIN IMMEDIATE") statements = 0;
    else if (sql === "COMMIT" || ENDING.test(sql)) statements = null;
    else if (statements !== null) statements++;
    return way === "unheard" ? sql === "COMMIT" : !ENDING.test(sql) && (statements ?? 0) < 2;
  }

  /** Throws where the step is refused; gives whether nobody is to hear of it. */
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
