import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import Database from "libsql";
import { systemClock } from "../../../src/clock.ts";
import { overEngine } from "../../../src/store/engine/client.ts";
import { MAX_PREPARED } from "../../../src/store/embedded/connection.ts";
import { MAX_OCTETS_HERE, openEmbedded } from "../../../src/store/embedded/embedded.ts";
import { type Engine, type Statement, VALUES_PER_TURN } from "../../../src/store/sql/engine.ts";
import { EngineError } from "../../../src/store/sql/errors.ts";
import { contentValues } from "../../../src/store/sql/content-values.ts";
import { DeferredContent } from "../../../src/store/sql/deferred-content.ts";
import {
  StatementDecoder,
  StatementEncoder,
  type ToWriter,
} from "../../../src/store/embedded/worker-codec.ts";
import { openWorker } from "../../../src/wiring/cpu/cpu.ts";
import { type TestDatabase, testDatabase } from "../../support/database.ts";
import { reason } from "../../support/reason.ts";

const VALUES_HERE = 1000;

let database: TestDatabase;
let path: string;
let engines: Set<Engine>;
beforeEach(async () => {
  database = await testDatabase();
  path = database.url.slice("file:".length);
  engines = new Set();
  await database.db.migrate([
    { sql: "CREATE TABLE kinds (id INTEGER PRIMARY KEY, value ANY) STRICT", args: [] },
  ]);
});
afterEach(async () => {
  for (const engine of engines) await engine.close();
  await database.remove();
});

/** The messages that a thread got, by kind. */
interface Watched {
  engine: Engine;
  workers: Worker[];
  /** Transactions that it received. */
  given(): number;
}

function watched(): Watched {
  const workers: Worker[] = [];
  let given = 0;
  const open = () => {
    const worker = openWorker("write-worker.ts");
    const post = worker.postMessage.bind(worker);
    const postMessage = (message: ToWriter, handed: Bun.Transferable[]) => {
      if (message.kind === "statements" && message.last) given++;
      post(message, handed);
    };
    Object.assign(worker, { postMessage });
    workers.push(worker);
    return worker;
  };
  const engine = openEmbedded(systemClock, { path, writer: { open, maxValuesHere: VALUES_HERE } });
  engines.add(engine);
  return { engine, workers, given: () => given };
}

/** An engine whose thread has started. */
async function started(): Promise<Watched> {
  const made = watched();
  await made.engine.batch(weighing(VALUES_PER_TURN + 1));
  expect(made.given()).toBe(1);
  return made;
}

/** Statements of that many values in all that change nothing. */
const weighing = (values: number): Statement[] => [
  { sql: "DELETE FROM usage WHERE day = -?", args: [1] },
  {
    sql: `SELECT 1 WHERE 1 = 0 AND 1 IN (${Array(values - 1)
      .fill("?")
      .join(", ")})`,
    args: Array(values - 1).fill(null),
  },
];
const put = (value: Statement["args"][number]): Statement => ({
  sql: "INSERT INTO kinds (value) VALUES (?) RETURNING typeof(value) AS type, value",
  args: [value],
});
const HEAVY = weighing(VALUES_HERE);

describe("a content that is hashed and compressed where it is stored", () => {
  const plain = Buffer.from("A line of text.\r\n".repeat(100));
  const row = ({ key, encoding, bytes }: DeferredContent): Statement => ({
    sql: `INSERT INTO contents (key, sender_id, refs, size, encoding, stored_in, created_at, bytes) VALUES (?, '', 1, ?, ?, 'row', 0, ?)
      ON CONFLICT (key) DO UPDATE SET refs = refs + 1`,
    args: [key, plain.length, encoding, bytes],
  });
  const stored = () =>
    database.db.all<{ refs: number; encoding: string; key: ArrayBuffer; bytes: ArrayBuffer }>(
      "SELECT refs, encoding, key, bytes FROM contents",
    );

  test.each([
    ["in the thread", true],
    ["here", false],
  ])(
    "a content that is hashed and compressed where it is stored is stored the same, with two references: %s",
    async (_, onCpu) => {
      const { engine, given } = await started();
      const before = given();
      const content = new DeferredContent("snd_1", plain);
      await engine.batch([...(onCpu ? HEAVY : []), row(content), row(content)]);
      expect(given() - before).toBe(onCpu ? 1 : 0);
      const { key, encoding, bytes } = contentValues("snd_1", plain);
      const [kept, ...others] = await stored();
      expect(others).toEqual([]);
      expect(kept).toMatchObject({ refs: 2, encoding });
      expect(Buffer.from(kept?.key ?? new ArrayBuffer()).equals(key)).toBe(true);
      expect(Buffer.from(kept?.bytes ?? new ArrayBuffer()).equals(bytes)).toBe(true);
      expect(encoding).toBe("zstd");
    },
  );

  test("a content that is hashed and compressed where it is stored goes to the thread once, however often it is referred to, and without its hash", () => {
    const content = new DeferredContent("snd_1", plain);
    const { values, bytes } = new StatementEncoder().encode([row(content), row(content), put("x")]);
    expect(bytes?.byteLength).toBe(plain.length);
    expect(JSON.parse(values).contents).toEqual([["snd_1", 0, plain.length]]);
  });

  test("two with the same bytes in two projects stay two", () => {
    const [one, other] = [new DeferredContent("snd_1", plain), new DeferredContent("snd_2", plain)];
    const packer = new StatementEncoder();
    const opened = new StatementDecoder().decode(packer.encode([row(one), row(other)]));
    const [first, second] = opened.map(({ args }) => args[0]);
    expect(first).toEqual(one.key.value);
    expect(second).toEqual(other.key.value);
    expect(first).not.toEqual(second);
  });
});

test("a thread writes the same as the event loop, and returns the same", async () => {
  const memory = new Uint8Array([9, 9, 0, 1, 2, 255, 9]);
  const values = [
    "",
    "text",
    "a\0b",
    "😀 ü \u2028",
    "\ud800 alone",
    '"quoted" \\',
    "[0,1]",
    "x".repeat(70_000),
    0,
    -1,
    1.5,
    1e300,
    Number.MAX_SAFE_INTEGER,
    Number.MIN_SAFE_INTEGER,
    null,
    memory.subarray(2, 6),
    new Uint8Array(0),
    memory,
  ];
  const statements = [
    ...values.map(put),
    { sql: "UPDATE kinds SET value = value WHERE id > ?", args: [3] },
    { sql: "UPDATE kinds SET value = 1 WHERE id = ? RETURNING value", args: [0] },
  ];
  const here = openEmbedded(systemClock, { path, writer: null });
  engines.add(here);
  const written = await here.batch([...statements, ...HEAVY]);
  const rows = await here.all("SELECT value, typeof(value) AS type FROM kinds ORDER BY id", []);
  await here.batch([{ sql: "DELETE FROM kinds", args: [] }]);
  const { engine, given } = await started();
  expect(await engine.batch([...statements, ...HEAVY])).toEqual(written);
  expect(given()).toBe(2);
  expect(await here.all("SELECT value, typeof(value) AS type FROM kinds ORDER BY id", [])).toEqual(rows);
  expect(written.length).toBe(statements.length + HEAVY.length);
  expect(rows.length).toBe(values.length);
});

describe("the transactions for the thread", () => {
  test("the transactions for the thread are those with many values, or with much content or text", async () => {
    const { engine, given } = await started();
    const begun = given();
    await engine.batch(weighing(VALUES_HERE));
    await engine.batch([put(new Uint8Array(MAX_OCTETS_HERE))]);
    await engine.batch([put("x".repeat(MAX_OCTETS_HERE))]);
    expect(given()).toBe(begun);
    await engine.batch(weighing(VALUES_HERE + 1));
    await engine.batch([put(new Uint8Array(MAX_OCTETS_HERE + 1))]);
    await engine.batch([put("x".repeat(MAX_OCTETS_HERE + 1))]);
    expect(given()).toBe(begun + 3);
  });

  test("the transactions for the thread wait for its start only if they are very long", async () => {
    const { engine, workers, given } = watched();
    await engine.batch([put(1)]);
    expect(workers.length).toBe(0);
    await engine.batch([put(2), ...HEAVY]);
    expect([workers.length, given()]).toEqual([1, 0]);
    await engine.batch(weighing(VALUES_PER_TURN));
    expect([workers.length, given()]).toEqual([1, 0]);
    await engine.batch([put(3), ...weighing(VALUES_PER_TURN)]);
    expect([workers.length, given()]).toEqual([1, 1]);
    expect(await engine.first("SELECT count(*) AS n FROM kinds", [])).toEqual({ n: 3 });
  });
});

test("a refused statement gives the same error as on the event loop, and its transaction leaves nothing", async () => {
  const { engine } = await started();
  const twice: Statement[] = [put(1), { sql: "INSERT INTO kinds (id) VALUES (1)", args: [] }, ...HEAVY];
  const here = (await reason(openedHere().batch(twice))) as EngineError;
  const error = (await reason(engine.batch(twice))) as EngineError;
  expect(error).toBeInstanceOf(EngineError);
  expect([error.message, error.code, error.fault, error.statement]).toEqual([
    here.message,
    here.code,
    "constraint",
    1,
  ]);
  const unknown = (await reason(
    engine.batch([put(1), ...HEAVY, { sql: "SELECT nothing", args: [] }]),
  )) as EngineError;
  expect([unknown.code, unknown.statement]).toEqual(["SQLITE_ERROR", HEAVY.length + 1]);
  expect(await engine.first("SELECT count(*) AS n FROM kinds", [])).toEqual({ n: 0 });
  await engine.batch([put(1), ...HEAVY]);
  expect(await engine.first("SELECT count(*) AS n FROM kinds", [])).toEqual({ n: 1 });
});

function openedHere(): Engine {
  const engine = openEmbedded(systemClock, { path, writer: null });
  engines.add(engine);
  return engine;
}

test("a write in several pieces that fails in the first leaves nothing of the others", async () => {
  const { engine } = await started();
  const many = Array.from({ length: 4 * VALUES_PER_TURN }, (_, at) => put(at));
  const error = await reason(engine.batch([{ sql: "SELECT nothing", args: [] }, ...many]));
  expect((error as EngineError).statement).toBe(0);
  expect(await engine.first("SELECT count(*) AS n FROM kinds", [])).toEqual({ n: 0 });
  await engine.batch(many);
  expect(await engine.first("SELECT count(*) AS n FROM kinds", [])).toEqual({ n: many.length });
});

test("a write that cannot be sent whole leaves nothing, and blocks no other", async () => {
  const { engine } = await started();
  const many = Array.from({ length: VALUES_PER_TURN + 1 }, (_, at) => put(at));
  // JSON has no such value.
  const unknown = { sql: "SELECT ?", args: [1n as never] };
  expect(await reason(engine.batch([...many, unknown]))).toBeInstanceOf(TypeError);
  const db = overEngine(engine, systemClock);
  await db.write([put(1)]);
  await db.write([put(2), ...weighing(VALUES_PER_TURN)]);
  expect(await engine.first("SELECT count(*) AS n FROM kinds", [])).toEqual({ n: 2 });
});

test("a transaction waits until another process releases the file", async () => {
  const { engine, given } = await started();
  const db = overEngine(engine, systemClock);
  const other = new Database(path, { timeout: 0 });
  other.exec("BEGIN IMMEDIATE");
  expect(((await reason(engine.batch([put(1), ...HEAVY, ...HEAVY]))) as EngineError).fault).toBe("busy");
  const before = given();
  const write = db.write([put(1), ...HEAVY, ...HEAVY]);
  while (given() < before + 2) await Bun.sleep(1);
  other.exec("COMMIT");
  other.close();
  await write;
  expect(await db.first("SELECT count(*) AS n FROM kinds")).toEqual({ n: 1 });
});

test("transactions given at once run one after the other", async () => {
  const { engine } = await started();
  const all = Array.from({ length: 5 }, (_, at) => engine.batch([put(at), ...HEAVY, ...HEAVY]));
  expect((await Promise.all(all)).map(([first]) => first?.rows[0]?.value)).toEqual([0, 1, 2, 3, 4]);
});

test("texts are known by their numbers, however many there are", async () => {
  const { engine } = await started();
  for (let round = 0; round < 3; round++) {
    const own = Array.from({ length: MAX_PREPARED }, (_, at) => ({
      sql: `INSERT INTO kinds (value) VALUES (? || ' ${round} ${at}')`,
      args: ["value"],
    }));
    await engine.batch([put(round), ...own, ...HEAVY]);
  }
  const rows = await engine.all("SELECT value FROM kinds WHERE typeof(value) = 'text' ORDER BY id", []);
  const expected = Array.from(
    { length: 3 * MAX_PREPARED },
    (_, at) => `value ${Math.floor(at / MAX_PREPARED)} ${at % MAX_PREPARED}`,
  );
  expect(rows.map(({ value }) => value)).toEqual(expected);
});

test("if the thread has ended, its open writes have an unknown outcome, and later ones run on the event loop", async () => {
  const { engine, workers, given } = await started();
  const write = engine.batch([put(1), ...weighing(VALUES_PER_TURN)]);
  workers[0]?.terminate();
  const error = (await reason(write)) as EngineError;
  expect([error.fault, given()]).toEqual(["lost", 2]);
  const db = overEngine(engine, systemClock);
  await db.write([put(2), ...weighing(VALUES_PER_TURN)]);
  expect([workers.length, given()]).toEqual([1, 2]);
  expect((await db.all("SELECT value FROM kinds")).at(-1)).toEqual({ value: 2 });
});

test("if the thread fails in the middle of a transaction, later writes continue", async () => {
  const { engine, workers } = await started();
  const [worker] = workers;
  const post = worker?.postMessage.bind(worker);
  const postMessage = (message: ToWriter, handed: Bun.Transferable[]) =>
    post?.(
      message.kind === "statements" && !message.first
        ? { ...message, encoded: { ...message.encoded, values: "no JSON" } }
        : message,
      handed,
    );
  Object.assign(worker ?? {}, { postMessage });
  const many = Array.from({ length: 4 * VALUES_PER_TURN }, (_, at) => put(at));
  expect(((await reason(engine.batch(many))) as EngineError).fault).toBe("lost");
  // By its own connection, which waits for no lock.
  expect(await openedHere().batch([put(1)])).toHaveLength(1);
  expect(await engine.first("SELECT count(*) AS n FROM kinds", [])).toEqual({ n: 1 });
});

test("a thread ends when the engine is closed, after its open writes", async () => {
  const { engine, workers } = await started();
  const ended = new Promise((resolve) => workers[0]?.addEventListener("close", resolve));
  const write = engine.batch([put(1), ...HEAVY]);
  engines.delete(engine);
  await engine.close();
  expect((await write).length).toBe(1 + HEAVY.length);
  await ended;
  const other = new Database(path, { timeout: 0 });
  other.exec("BEGIN EXCLUSIVE; ROLLBACK");
  other.close();
});
