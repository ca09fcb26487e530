import { afterAll, afterEach, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { systemClock } from "../../src/clock.ts";
import { type Db, openDb } from "../../src/store/engine/client.ts";
import { ConstraintError, EngineError } from "../../src/store/sql/errors.ts";
import { type Primary, startPrimary } from "../support/hrana-server.ts";
import { NO_SQLD, SQLD, startSqld } from "../support/sqld.ts";

/** Milliseconds: on a busy machine programs take seconds to start. */
setDefaultTimeout(90_000);

/** More than the streams that are kept, and more than the requests at a time. */
const MANY = 60;
/** Idle time after which the stand-in ends a stream. */
const IDLE_MS = 200;
/** Characters of a row, and rows: together more than sqld answers in one piece. */
const LARGE = 3_000_000;
const LARGE_ROWS = 5;
/** Less than the time after which we no longer use an idle stream. */
const STEP_MS = 4000;
/** Age after which we close a stream. */
const AGE_MS = 60_000;

const put = (a: string) => ({ sql: "INSERT INTO t (a) VALUES (?)", args: [a] });
const caught = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => null,
    (error: unknown) => error,
  );
const like = async (db: Db, pattern: string): Promise<string[]> =>
  (await db.all<{ a: string }>("SELECT a FROM t WHERE a LIKE ? ORDER BY a", [pattern])).map(({ a }) => a);

interface Server {
  url: string;
  kill(): Promise<void>;
  restart(): Promise<void>;
  stop(): Promise<void>;
}

const SERVERS: readonly (readonly [name: string, start: () => Promise<Server>, missing: string | null])[] = [
  ["our stand-in", () => startPrimary({ idleMs: IDLE_MS }), null],
  [`sqld (${NO_SQLD ?? SQLD})`, () => startSqld(), NO_SQLD],
];

for (const [name, start, missing] of SERVERS)
  describe.skipIf(missing !== null)(`streams of ${name}`, () => {
    let server: Server;
    let db: Db;
    let other: Db;
    let proxy: Bun.Server<undefined> | null = null;
    const opened = (url = server.url) => openDb(systemClock, { url, authToken: null, syncUrl: null });

    beforeAll(async () => {
      server = await start();
      db = await opened();
      other = await opened();
      await db.migrate([{ sql: "CREATE TABLE t (a TEXT PRIMARY KEY) STRICT", args: [] }]);
    });
    afterEach(async () => {
      await proxy?.stop(true);
      proxy = null;
    });
    afterAll(async () => {
      await db?.close();
      await other?.close();
      await server?.stop();
    });

    test("answer each of many requests at once with its own rows", async () => {
      const names = Array.from({ length: MANY }, (_, at) => `many-${at}`);
      await Promise.all(names.map((one) => db.write([put(one)])));
      const rows = await Promise.all(
        names.map((one) =>
          db.first<{ a: string; b: string }>("SELECT a, ? AS b FROM t WHERE a = ?", [one, one]),
        ),
      );
      expect(rows).toEqual(names.map((a) => ({ a, b: a })));
      expect((await like(other, "many-%")).sort()).toEqual(names.sort());
    });

    test("bring an answer of any size, and half of a surrogate pair as a file stores it", async () => {
      for (let at = 0; at < LARGE_ROWS; at++) await db.write([put(`large ${at} ${"x".repeat(LARGE)}`)]);
      const rows = await like(db, "large %");
      expect(rows.map((row) => [row.slice(0, 8), row.length])).toEqual(
        rows.map((_, at) => [`large ${at} `, LARGE + 8]),
      );
      expect(rows).toHaveLength(LARGE_ROWS);
      expect(await db.first("SELECT ? AS a", ["half \ud800"])).toEqual({ a: "half \ufffd" });
    });

    test("after a restart of the server ended a stream, the next write is made once, on another", async () => {
      await db.write([put("before the restart")]);
      await server.kill();
      await server.restart();
      await db.write([put("after the restart")]);
      expect(await like(other, "% the restart")).toEqual(["after the restart", "before the restart"]);
    });

    test("a stream on which a write failed holds no lock and no row", async () => {
      await db.write([put("taken")]);
      const undone = [
        [put("undone-1"), put("taken")],
        // SQLite itself rolls back, so the ROLLBACK after it fails.
        [put("undone-2"), { sql: "INSERT OR ROLLBACK INTO t (a) VALUES ('taken')", args: [] }],
      ];
      for (const statements of undone)
        expect(await caught(db.write(statements))).toBeInstanceOf(ConstraintError);
      expect(await caught(db.all("SELECT nothing FROM nowhere"))).toBeInstanceOf(EngineError);
      // Another client needs the write lock now.
      await other.write([put("by another")]);
      await db.write([put("by the same")]);
      expect(await like(other, "undone-%")).toEqual([]);
      expect(await like(db, "by %")).toEqual(["by another", "by the same"]);
    });

    test("carry out a request once if something on the way repeats it, and its outcome counts as unknown", async () => {
      let repeats = false;
      proxy = Bun.serve({
        hostname: "127.0.0.1",
        port: 0,
        async fetch(request) {
          const url = server.url + new URL(request.url).pathname;
          const body = await request.text();
          const pass = () => fetch(url, { method: "POST", body, headers: request.headers });
          if (repeats) await (await pass()).text();
          const answer = await pass();
          return new Response(await answer.text(), { status: answer.status });
        },
      });
      const there = await opened(`http://127.0.0.1:${proxy.port}`);
      await there.write([put("not repeated")]);
      repeats = true;
      const error = await caught(there.write([put("repeated")]));
      repeats = false;
      expect(error).toMatchObject({ fault: "lost" });
      expect(await like(there, "%repeated")).toEqual(["not repeated", "repeated"]);
      await there.close();
    });
  });

describe("a stream", () => {
  let server: Primary;
  let db: Db;
  let ahead = 0;
  const clock = { ...systemClock, elapsed: () => systemClock.elapsed() + ahead };

  beforeAll(async () => {
    server = await startPrimary({ idleMs: IDLE_MS });
    db = await openDb(clock, { url: server.url, authToken: null, syncUrl: null });
    await db.migrate([{ sql: "CREATE TABLE t (a TEXT PRIMARY KEY) STRICT", args: [] }]);
  });
  afterAll(async () => {
    await db.close();
    await server.stop();
  });

  test("serves requests that follow one another, and also those after a write that broke a constraint", async () => {
    await db.write([put("first")]);
    const before = await server.counts();
    for (let at = 0; at < MANY; at++) {
      expect(await caught(db.write([put("first")]))).toBeInstanceOf(ConstraintError);
      await db.write([put(`kept-${at}`)]);
      expect(await like(db, `kept-${at}`)).toEqual([`kept-${at}`]);
    }
    const after = await server.counts();
    expect(after.batch).toBe((before.batch ?? 0) + 2 * MANY);
    expect(after.execute).toBe((before.execute ?? 0) + MANY);
    expect(after.pipeline).toBe((before.pipeline ?? 0) + 3 * MANY);
    // On a busy machine it may be idle for too long now and then.
    expect((after.stream ?? 0) - (before.stream ?? 0)).toBeLessThan(MANY / 2);
  });

  test("a stream that expired: a write is made once, on another", async () => {
    await db.write([put("before it expired")]);
    await Bun.sleep(2 * IDLE_MS);
    const before = await server.counts();
    await db.write([put("after it expired")]);
    const after = await server.counts();
    expect(after.batch).toBe((before.batch ?? 0) + 1);
    expect(after.stream).toBe((before.stream ?? 0) + 1);
    expect(await like(db, "% it expired")).toEqual(["after it expired", "before it expired"]);
  });

  test("a stream is closed after a minute, because a server's settings hold for the connections that it opens later", async () => {
    const before = await server.counts();
    const steps = AGE_MS / STEP_MS + 2;
    for (let at = 0; at < steps; at++, ahead += STEP_MS) await db.write([put(`old-${at}`)]);
    const after = await server.counts();
    expect(after.batch).toBe((before.batch ?? 0) + steps);
    expect(after.close).toBeGreaterThan(before.close ?? 0);
    expect(await like(db, "old-%")).toHaveLength(steps);
  });

  test("a stream sends a text once that many statements of a write have", async () => {
    const before = await server.counts();
    const names = Array.from({ length: MANY }, (_, at) => `text-${at}`);
    await db.write(names.map(put));
    const after = await server.counts();
    expect(after.store_sql).toBe((before.store_sql ?? 0) + 1);
    expect((await like(db, "text-%")).sort()).toEqual(names.sort());
    // SQL strings that are stored and not removed would fill the stream.
    for (let at = 0; at < MANY; at++)
      await db.write(
        [1, 2].map((turn) => ({
          sql: `INSERT INTO t (a) VALUES (? || '${at}')`,
          args: [`many texts ${turn} `],
        })),
      );
    expect(await like(db, "many texts %")).toHaveLength(2 * MANY);
  });
});
