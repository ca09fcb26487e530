import { afterEach, beforeEach, expect, test } from "bun:test";
import { systemClock } from "../../../src/clock.ts";
import { RESOLVED_PER_TURN } from "../../../src/store/engine/group-commit.ts";
import { overEngine } from "../../../src/store/engine/client.ts";
import { openEmbedded } from "../../../src/store/embedded/embedded.ts";
import { type Engine, type Statement, VALUES_PER_TURN } from "../../../src/store/sql/engine.ts";
import { openWorker } from "../../../src/wiring/cpu/cpu.ts";
import { type TestDatabase, testDatabase } from "../../support/database.ts";

let database: TestDatabase;
let engine: Engine;
beforeEach(async () => {
  database = await testDatabase();
  const path = database.url.slice("file:".length);
  engine = openEmbedded(systemClock, {
    path,
    writer: { open: () => openWorker("write-worker.ts"), maxValuesHere: VALUES_HERE },
  });
});
afterEach(async () => {
  await engine.close();
  await database.remove();
});

const VALUES_HERE = 1000;
const VALUES_OF_ONE = 4;
const insert = (id: number): Statement => ({
  sql: "INSERT INTO accounts (id, name, owner_email, created_at) VALUES (?, ?, ?, ?)",
  args: [`acc_${id}`, "one of many", "a@a.test", 0],
});
const inserts = (rows: number, from = 0) => Array.from({ length: rows }, (_, at) => insert(from + at));
const COUNT = "SELECT count(*) AS n FROM accounts";
const count = async () => Number((await engine.first(COUNT, []))?.n);

/** The reads of other requests in each tick of the event loop until the write ends, and its result. */
async function meanwhile<Answer>(write: Promise<unknown>, read: () => Promise<Answer>) {
  const answers: Answer[] = [];
  let end: string | null = null;
  write.then(
    () => {
      end = "written";
    },
    (error: unknown) => {
      end = String(error);
    },
  );
  for (;;) {
    await new Promise<void>((resolve) => setImmediate(resolve));
    if (end !== null) return { answers, end: String(end) };
    answers.push(await read());
  }
}

const FEW = VALUES_PER_TURN / VALUES_OF_ONE;

test("during a write of many values other requests get turns, and read the state before it, twice in a turn too", async () => {
  await engine.batch([insert(-1)]);
  const twice = async () => [await count(), await count()];
  const { answers, end } = await meanwhile(engine.batch(inserts(5 * FEW)), twice);
  expect(answers.length).toBeGreaterThan(1);
  // Committed data may be read before its writer resumes.
  expect([[1, 5 * FEW + 1], [1]]).toContainEqual([...new Set(answers.flat())]);
  expect(end).toBe("written");
  expect(await count()).toBe(5 * FEW + 1);
});

test("a write of few values takes no turn, and later reads see it", async () => {
  const few = VALUES_HERE / VALUES_OF_ONE;
  const write = engine.batch(inserts(few));
  expect(await count()).toBe(few);
  await write;
});

test("a long write that is refused at its end leaves nothing, and the next one can begin", async () => {
  const { answers, end } = await meanwhile(engine.batch([...inserts(5 * FEW), insert(0)]), count);
  expect(new Set(answers)).toEqual(new Set([0]));
  expect(end).toContain("UNIQUE");
  expect(await count()).toBe(0);
  await engine.batch([insert(0)]);
  expect(await count()).toBe(1);
});

test("cached configuration stays valid until a long write is over", async () => {
  const db = overEngine(engine, systemClock);
  const query = { sql: COUNT, read: ({ n }: { n: number }) => n };
  expect(await db.readConfig(query, [])).toBe(0);
  const { answers } = await meanwhile(db.write(inserts(5 * FEW)), () => db.readConfig(query, []));
  expect(answers[0]).toBe(0);
  expect([[0], [0, 5 * FEW]].map((seen) => JSON.stringify(seen))).toContain(
    JSON.stringify([...new Set(answers)]),
  );
  expect(await db.readConfig(query, [])).toBe(5 * FEW);
});

test("writers share a commit up to a number of values, and a larger one has its own commit", async () => {
  const sizes: number[] = [];
  const batch = engine.batch.bind(engine);
  const watched: Engine = {
    ...engine,
    batch(statements) {
      sizes.push(statements.length);
      return batch(statements);
    },
  };
  const db = overEngine(watched, systemClock);
  const of = (values: number): Statement => {
    const args = Array.from({ length: values }, () => null);
    return { sql: `SELECT 1 WHERE 1 IN (${args.map(() => "?").join(", ")})`, args };
  };
  const [half, one] = [of(VALUES_PER_TURN / 2), of(1)];
  const writes = [[half], [half], [one], [half, half, one], [half]];
  await Promise.all(writes.map((statements) => db.write(statements)));
  expect(sizes).toEqual([2, 1, 3, 1]);
});

test("writers that shared a commit are resumed some at a time, in their order", async () => {
  const db = overEngine(engine, systemClock);
  const told: number[] = [];
  const all = Promise.all(
    Array.from({ length: 3 * RESOLVED_PER_TURN }, async (_, at) => {
      await db.write([insert(at)]);
      told.push(at);
    }),
  );
  const steps = new Set<number>();
  while (told.length < 3 * RESOLVED_PER_TURN) {
    await new Promise<void>((resolve) => setImmediate(resolve));
    steps.add(told.length);
  }
  await all;
  expect([...steps]).toEqual([0, RESOLVED_PER_TURN, 2 * RESOLVED_PER_TURN, 3 * RESOLVED_PER_TURN]);
  expect(told).toEqual(told.toSorted((a, b) => a - b));
});
