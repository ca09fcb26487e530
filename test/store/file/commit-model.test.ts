import { expect, test } from "bun:test";
import { ConstraintError, overEngine } from "../../../src/store/engine/client.ts";
import type { Engine, Statement, Written } from "../../../src/store/sql/engine.ts";
import { EngineError } from "../../../src/store/sql/errors.ts";
import { type Chance, chanceOf, steppingClock } from "../../support/chance.ts";

/** Number of schedules, each with its own seed. */
const SCHEDULES = 400;
const MAX_STEPS = 5_000;
const turn = () => new Promise<void>((resolve) => setImmediate(resolve));

const failure = (code: string, statement: number | null, fault?: "lost" | "unreachable"): EngineError =>
  new EngineError(new Error(code), code, statement, fault === undefined ? {} : { fault });

/** Rows by key, with the writer that stored them. A batch takes effect completely or not at all. */
function modelEngine(chance: Chance, wait: (ms: number) => Promise<void>, trouble: number) {
  const rows = new Map<string, string>();
  const state = { batches: 0, running: 0, most: 0, lost: 0 };
  const apply = (statements: readonly Statement[]): Written[] => {
    const next = new Map<string, string>();
    const written = statements.map(({ sql, args }, at): Written => {
      const [key, writer] = args.map(String);
      if (key === undefined || writer === undefined) throw new Error("no row");
      if (sql === "broken") throw failure("SQLITE_ERROR", chance.happens(0.5) ? at : null);
      if (rows.has(key) || next.has(key)) throw failure("SQLITE_CONSTRAINT_UNIQUE", at);
      next.set(key, writer);
      return { rows: [{ key, writer }], changes: 1 };
    });
    if (chance.happens(trouble / 4)) throw failure("SQLITE_FULL", null);
    for (const [key, writer] of next) rows.set(key, writer);
    return written;
  };
  const engine: Engine = {
    writesOnCpu: chance.happens(0.5),
    all: async () => [],
    first: async () => null,
    close: async () => undefined,
    async batch(statements) {
      state.batches++;
      state.most = Math.max(state.most, ++state.running);
      try {
        if (chance.happens(0.5)) await wait(chance.below(50));
        if (chance.happens(trouble)) throw failure("SQLITE_BUSY", null);
        if (chance.happens(trouble / 10)) throw failure("ECONNREFUSED", null, "unreachable");
        const isLost = chance.happens(trouble / 10);
        if (isLost) state.lost++;
        if (isLost && chance.happens(0.5)) throw failure("ECONNRESET", null, "lost");
        const written = apply(statements);
        if (isLost) throw failure("ECONNRESET", null, "lost");
        return written;
      } finally {
        state.running--;
      }
    },
  };
  return { engine, rows, state };
}

async function schedule(seed: number): Promise<string[]> {
  const chance = chanceOf(seed);
  const clock = steppingClock();
  const faults: string[] = [];
  const wait = (ms: number): Promise<void> => new Promise((resolve) => void clock.after(ms, resolve));
  const { engine, rows, state } = modelEngine(chance, wait, chance.pick([0, 0.1, 0.5, 1]));
  const db = overEngine(engine, clock);
  const keys = 1 + chance.below(60);
  const writers = 1 + chance.below(40);
  let told = 0;

  async function write(writer: string): Promise<void> {
    const statements = Array.from({ length: 1 + chance.below(4) }, () => ({
      sql: chance.happens(0.02) ? "broken" : "put",
      args: [chance.happens(0.3) ? `k${chance.below(keys)}` : `${writer}-${chance.number()}`, writer],
    }));
    const mine = statements.map(({ args }) => String(args[0]));
    const has = (): number => mine.filter((key) => rows.get(key) === writer).length;
    try {
      const written = await db.write(statements);
      const got = written.map(({ rows: [row] }) => `${row?.key} ${row?.writer}`);
      if (got.join() !== mine.map((key) => `${key} ${writer}`).join())
        faults.push(`${writer} was told what others wrote: ${got}`);
      if (has() !== statements.length) faults.push(`${writer} was told yes, and has ${has()} rows`);
    } catch (error) {
      const lost = error instanceof EngineError && error.fault === "lost";
      if (!lost && has() > 0) faults.push(`${writer} was told no, and has ${has()} rows: ${error}`);
      const taken = mine.some((key, at) => rows.has(key) || mine.indexOf(key) !== at);
      if (error instanceof ConstraintError && !taken) faults.push(`${writer} was refused for nobody's row`);
      const broken = statements.some(({ sql }) => sql === "broken");
      const isOther = error instanceof EngineError && error.code === "SQLITE_ERROR";
      if (isOther && !broken) faults.push(`${writer} was told the error of another`);
    }
    told++;
  }

  for (let at = 0; at < writers; at++) clock.after(chance.below(30), () => void write(`w${at}`));
  if (chance.happens(0.2))
    clock.after(chance.below(100), () => clock.step(chance.pick([-3_600_000, 3_600_000])));
  for (let step = 0; step < MAX_STEPS; step++) {
    await turn();
    if (told === writers) break;
    while (clock.next() && chance.happens(0.5));
  }
  if (state.most > 1) faults.push("two commits at a time");
  if (told === writers) await db.close();
  else faults.push(`${writers - told} of ${writers} writers were told nothing`);
  return faults;
}

test(`${SCHEDULES} random schedules of writers and engine failures: each writer gets its own outcome`, async () => {
  const failed: string[] = [];
  for (let seed = 1; seed <= SCHEDULES && failed.length < 10; seed++) {
    const faults = await schedule(seed);
    if (faults.length > 0) failed.push(`seed ${seed}: ${faults.slice(0, 3).join("; ")}`);
  }
  expect(failed).toEqual([]);
});
