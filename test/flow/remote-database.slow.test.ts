import { afterAll, afterEach, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { createClient } from "@libsql/client";
import { join } from "node:path";
import { systemClock } from "../../src/clock.ts";
import { hashSecret } from "../../src/flows/account/api-keys.ts";
import { bootstrap } from "../../src/flows/account/bootstrap.ts";
import { ensureInstallationKey } from "../../src/flows/records/keys.ts";
import { generateDkimKey } from "../../src/mail/auth/dkim.ts";
import { type Db, openDb } from "../../src/store/engine/client.ts";
import { EngineError } from "../../src/store/sql/errors.ts";
import { findKeyByHash } from "../../src/store/projects/keys.ts";
import { migrate } from "../../src/store/engine/migrate.ts";
import { SILENCE_MS } from "../../src/store/remote/remote.ts";
import { isUnavailable } from "../../src/store/sql/errors.ts";
import { BOX_KEY } from "../support/api.ts";
import { newFolder } from "../support/folder.ts";
import { type Primary, startPrimary } from "../support/hrana-server.ts";
import { type ManualClock, manualClock } from "../support/manual-clock.ts";
import { until } from "../support/poll.ts";
import { postrider } from "./command-program.ts";

const TOKEN = "eyJ-a-token-that-nobody-may-read";
const counted: Record<string, Record<string, number>> = {};
// A start of the program takes seconds if the machine is busy.
setDefaultTimeout(90_000);

let primary: Primary;
let db: Db;
let folder: string;

beforeAll(async () => {
  folder = newFolder("remote");
  primary = await startPrimary({ token: TOKEN, idleMs: 200 });
  db = await openDb(systemClock, { url: primary.url, authToken: TOKEN, syncUrl: null });
  await migrate(db, 1);
  await db.migrate([
    { sql: "CREATE TABLE t (a TEXT PRIMARY KEY, b INTEGER NOT NULL CHECK (b >= 0)) STRICT", args: [] },
    { sql: "CREATE TABLE child (a TEXT REFERENCES t (a) DEFERRABLE INITIALLY DEFERRED) STRICT", args: [] },
  ]);
});
afterAll(async () => {
  await count("remote");
  for (const [name, counts] of Object.entries(counted))
    process.stdout.write(`${name}: ${JSON.stringify(counts)}\n`);
  await db.close();
  await primary.stop();
});

/**
 * Adds the server's requests to the count printed at the end. Called before the server is killed, which forgets
 * them.
 */
async function count(name: string): Promise<void> {
  const sum = counted[name] ?? {};
  counted[name] = sum;
  for (const [kind, times] of Object.entries(await primary.counts())) sum[kind] = (sum[kind] ?? 0) + times;
}

async function kill(): Promise<void> {
  await count("remote");
  await primary.kill();
}

const put = (a: string, b = 1) => ({ sql: "INSERT INTO t (a, b) VALUES (?, ?)", args: [a, b] });
const caught = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => null,
    (error: unknown) => error,
  );
const rowsLike = async (pattern: string, from = db) =>
  (await from.all<{ a: string }>("SELECT a FROM t WHERE a LIKE ? ORDER BY a", [pattern])).map(({ a }) => a);

function faultOf(error: unknown): string | null {
  return error instanceof EngineError ? error.fault : null;
}

describe("a server", () => {
  test("a server gives rows as a file database does: by name only, with numbers, text, null and bytes", async () => {
    const row = await db.first(
      "SELECT typeof(?) AS a, x'00ff' AS b, 1.5 AS c, NULL AS d, 'é' AS e, 7 AS f",
      [5],
    );
    expect(Object.getOwnPropertyNames(row)).toEqual(["a", "b", "c", "d", "e", "f"]);
    const bytes = new Uint8Array([0, 255]).buffer;
    // A number is bound as a real, as libSQL does in this process.
    expect(row).toEqual({ a: "real", b: bytes, c: 1.5, d: null, e: "é", f: 7 });
  });

  test("a server says who broke a constraint, whichever of its codes it uses", async () => {
    for (const fineCodes of [false, true]) {
      const other = await startPrimary({ fineCodes });
      const there = await openDb(systemClock, { url: other.url, authToken: null, syncUrl: null });
      await there.migrate([
        { sql: "CREATE TABLE t (a TEXT PRIMARY KEY, b INTEGER NOT NULL) STRICT", args: [] },
      ]);
      const outcomes = await Promise.allSettled([
        there.write([put("a")]),
        there.write([put("b"), put("a")]),
        there.write([{ sql: "INSERT INTO t (a, b) VALUES ('c', NULL)", args: [] }]),
        there.write([put("d")]),
      ]);
      expect(outcomes.map(({ status }) => status)).toEqual([
        "fulfilled",
        "rejected",
        "rejected",
        "fulfilled",
      ]);
      expect(outcomes[1]).toMatchObject({ reason: { unique: "t.a", notNull: null } });
      expect(outcomes[2]).toMatchObject({ reason: { unique: null, notNull: "t.b" } });
      expect(await rowsLike("%", there)).toEqual(["a", "d"]);
      await there.close();
      await other.stop();
    }
  });

  test("a server that finds a broken key only at COMMIT keeps nothing of that writer, and everything of the others", async () => {
    const outcomes = await Promise.allSettled([
      db.write([put("deferred-1")]),
      db.write([put("deferred-2"), { sql: "INSERT INTO child (a) VALUES ('nobody')", args: [] }]),
    ]);
    expect(outcomes.map(({ status }) => status)).toEqual(["fulfilled", "rejected"]);
    expect(await rowsLike("deferred-%")).toEqual(["deferred-1"]);
  });

  test("forgets an idle stream, and rolls back its transaction", async () => {
    const client = createClient({ url: primary.url, authToken: TOKEN });
    const transaction = await client.transaction("write");
    await transaction.execute("INSERT INTO t (a, b) VALUES ('idle', 1)");
    // The limit of this server is 200 ms. A writer of ours waits for the lock until then.
    await db.write([put("after-idle")]);
    expect(await caught(transaction.commit())).toMatchObject({ code: "STREAM_EXPIRED" });
    expect(await rowsLike("%idle")).toEqual(["after-idle"]);
    await client.executeMultiple("CREATE TABLE s (a); DROP TABLE s");
    client.close();
  });
});

describe("trouble with a server", () => {
  const OUT_OF_REACH = /^the database at 127\.0\.0\.1:\d+ cannot be reached: \w+$/;

  test("while a server is down, reads and writes fail at once, as unavailable, and work again when it is back", async () => {
    await kill();
    for (const work of [db.first("SELECT 1"), db.write([put("down")])]) {
      const error = await caught(work);
      expect(faultOf(error)).toBe("unreachable");
      expect(isUnavailable(error)).toBe(true);
      expect(String(error instanceof Error && error.message)).toMatch(OUT_OF_REACH);
    }
    await primary.restart();
    await db.write([put("back")]);
    expect(await rowsLike("down")).toEqual([]);
  });

  test("if a server's reply is lost after the commit, no writer is retried, and each gets an unknown outcome", async () => {
    await primary.make({ loseReplies: 1 });
    const errors = await Promise.all([
      caught(db.write([put("lost-1")])),
      caught(db.write([put("lost-2"), { sql: "UPDATE t SET b = b + 1 WHERE a = 'back'", args: [] }])),
    ]);
    expect(errors.map(faultOf)).toEqual(["lost", "lost"]);
    expect(errors.map(isUnavailable)).toEqual([true, true]);
    expect(await rowsLike("lost-%")).toEqual(["lost-1", "lost-2"]);
    expect(await db.first("SELECT b FROM t WHERE a = 'back'")).toEqual({ b: 2 });
  });

  test("behind a proxy that answers 502: a read is retried, a write is not", async () => {
    await primary.make({ status: { code: 502, times: 2 } });
    expect(await db.first("SELECT 1 AS one")).toEqual({ one: 1 });
    await primary.make({ status: { code: 502, times: 1 } });
    const error = await caught(db.write([put("bad-gateway")]));
    expect(faultOf(error)).toBe("lost");
    expect(await rowsLike("bad-gateway")).toEqual([]);
  });

  test.each([
    ["a page", "<html>back soon</html>"],
    ["nothing", ""],
    ["half an answer", '{"baton":null,"resu'],
  ])(
    "behind a proxy that answers 200 with %s: the outcome is unknown, and no writer is retried",
    async (_what, body) => {
      const posts: string[] = [];
      const proxy = Bun.serve({
        hostname: "127.0.0.1",
        port: 0,
        fetch(request) {
          if (request.method === "POST") posts.push(request.url);
          return new Response(body);
        },
      });
      const there = await openDb(systemClock, {
        url: `http://127.0.0.1:${proxy.port}`,
        authToken: TOKEN,
        syncUrl: null,
      });
      const told = await Promise.all([caught(there.write([put("one")])), caught(there.write([put("two")]))]);
      expect(told.map(faultOf)).toEqual(["lost", "lost"]);
      expect(told.every(isUnavailable)).toBe(true);
      expect(posts).toHaveLength(1);
      expect(String(told[0])).toContain(`no usable answer from the database at 127.0.0.1:${proxy.port}`);
      await there.close();
      await proxy.stop(true);
    },
  );

  test("a server that refuses the token is reported, without the token", async () => {
    const other = await openDb(systemClock, { url: primary.url, authToken: "a-wrong-token", syncUrl: null });
    for (const error of [await caught(other.first("SELECT 1")), await caught(other.write([put("x")]))]) {
      const said = Bun.inspect(error);
      expect(said).toContain("refuses the token (DATABASE_AUTH_TOKEN): HTTP 401");
      expect(said).not.toContain("a-wrong-token");
    }
    await other.close();
  });

  test("a server that hangs is waited for no longer than the limit, and a write in that time is not made twice", async () => {
    const clock = manualClock();
    const patient = await openDb(clock, { url: primary.url, authToken: TOKEN, syncUrl: null });
    primary.freeze();
    for (const work of [() => patient.first("SELECT 1"), () => patient.write([put("hung")])]) {
      const asked = caught(work());
      await timerSet(clock);
      clock.advance(SILENCE_MS - 1);
      expect(await Promise.race([asked, Bun.sleep(20).then(() => "waits")])).toBe("waits");
      clock.advance(1000);
      const error = await asked;
      expect(error).toMatchObject({ code: "ETIMEDOUT", fault: "lost" });
      expect(isUnavailable(error)).toBe(true);
    }
    primary.thaw();
    expect((await rowsLike("hung")).length).toBeLessThanOrEqual(1);
    await patient.close();
  });

  test("at the first start, keys whose commit lost its reply are still printed", async () => {
    const empty = await startPrimary();
    const there = await openDb(systemClock, { url: empty.url, authToken: null, syncUrl: null });
    await migrate(there, 1);
    const deps = { db: there, clock: systemClock, boxKey: BOX_KEY, generateDkimKey };
    await ensureInstallationKey(deps, Date.now());
    await empty.make({ loseReplies: 1 });
    const { firstStart: told } = await bootstrap(deps, {
      ownerEmail: "o@example.com",
      rootApiKey: null,
      defaultTracking: { opens: true, clicks: true },
    });
    expect(await findKeyByHash(there, hashSecret(told?.accountKey ?? ""))).not.toBeNull();
    await there.close();
    await empty.stop();
  });
});

describe("a start", () => {
  const rows: readonly [name: string, env: () => Record<string, string>, says: RegExp][] = [
    [
      "with its database down",
      () => ({ DATABASE_URL: "http://127.0.0.1:1" }),
      /^postrider: the database at 127\.0\.0\.1:1 cannot be reached: \w+$/m,
    ],
    [
      "with the primary of its replica down",
      () => ({ DATABASE_SYNC_URL: "http://127.0.0.1:1" }),
      /^postrider: the database at 127\.0\.0\.1:1 cannot be reached: \w+$/m,
    ],
    [
      "with a wrong token",
      () => ({ DATABASE_URL: primary.url, DATABASE_AUTH_TOKEN: "a-wrong-token" }),
      /refuses the token \(DATABASE_AUTH_TOKEN\): HTTP 401$/m,
    ],
    [
      "with a wrong token for its replica",
      () => ({ DATABASE_SYNC_URL: primary.url, DATABASE_AUTH_TOKEN: "a-wrong-token" }),
      /refuses the token \(DATABASE_AUTH_TOKEN\): HTTP 401$/m,
    ],
  ];
  test.each(rows)("%s ends with exit code 69 and says why", async (_name, env, says) => {
    const ran = await postrider(["serve"], { DATA_DIR: folder, PORT: "0", SMTP_PORT: "0", ...env() });
    expect(ran.stderr).toMatch(says);
    expect(ran.stdout + ran.stderr).not.toContain("a-wrong-token");
    expect(ran.code).toBe(69);
  });
});

describe("a replica", () => {
  let replica: Db;
  const options = (name: string) => ({
    url: `file:${join(folder, name)}`,
    authToken: TOKEN,
    syncUrl: primary.url,
  });
  afterEach(async () => {
    await replica.close();
  });

  test("a replica reads in its own file, writes at the primary, and reads its own writes", async () => {
    replica = await openDb(systemClock, options("reads.db"));
    const before = await primary.counts();
    for (let turn = 0; turn < 20; turn++) {
      await replica.write([put(`own-${turn}`, turn)]);
      expect(await replica.first("SELECT b FROM t WHERE a = ?", [`own-${turn}`])).toEqual({ b: turn });
    }
    const after = await primary.counts();
    expect((after.batch ?? 0) - (before.batch ?? 0)).toBe(20);
    expect(after.execute).toBe(before.execute ?? 0);
    expect(after.push).toBeUndefined();
    expect(await rowsLike("own-%")).toHaveLength(20);
  });

  test("a replica works as well if the primary speaks sqld's gRPC instead of Turso's HTTP", async () => {
    const sqld = await startPrimary({ sync: "grpc" });
    const settings = { url: `file:${join(folder, "grpc.db")}`, authToken: null, syncUrl: sqld.url };
    replica = await openDb(systemClock, settings);
    await replica.migrate([
      { sql: "CREATE TABLE t (a TEXT PRIMARY KEY, b INTEGER NOT NULL) STRICT", args: [] },
    ]);
    for (let turn = 0; turn < 20; turn++) {
      await replica.write([put(`own-${turn}`, turn)]);
      expect(await replica.first("SELECT b FROM t WHERE a = ?", [`own-${turn}`])).toEqual({ b: turn });
    }
    await replica.close();
    replica = await openDb(systemClock, settings);
    expect(await rowsLike("%", replica)).toHaveLength(20);
    const counts = await sqld.counts();
    counted["sqld's replication"] = counts;
    // One of them, at each start, asks whether the primary answers.
    expect(counts.execute).toBe(2);
    expect(counts.BatchLogEntries).toBeGreaterThanOrEqual(20);
    await sqld.stop();
  });

  test("a replica whose primary cannot give newer frames reads there, until it can", async () => {
    const sqld = await startPrimary({ sync: "grpc" });
    const other = await openDb(systemClock, { url: sqld.url, authToken: null, syncUrl: null });
    // Its clock stands still, so its file is never too old by time alone.
    const clock = { ...systemClock, elapsed: () => 0 };
    replica = await openDb(clock, {
      url: `file:${join(folder, "snapshot.db")}`,
      authToken: null,
      syncUrl: sqld.url,
    });
    await other.migrate([
      { sql: "CREATE TABLE t (a TEXT PRIMARY KEY, b INTEGER NOT NULL) STRICT", args: [] },
    ]);
    await until(async () => (await caught(rowsLike("%", replica))) === null);
    await sqld.make({ noFrames: true });
    await other.write([put("of another")]);
    await until(async () => (await rowsLike("of another", replica)).length > 0);
    await replica.write([put("of its own")]);
    expect(await rowsLike("of %", replica)).toEqual(["of another", "of its own"]);
    await sqld.make({ noFrames: false });
    // Once the file has it, reads use the file again.
    await until(async () => {
      const { execute } = await sqld.counts();
      await rowsLike("of another", replica);
      return (await sqld.counts()).execute === execute;
    });
    await other.close();
    await sqld.stop();
  });

  test("a replica opens while its primary cannot give newer frames, and follows once it can", async () => {
    const sqld = await startPrimary({ sync: "grpc" });
    const settings = { url: `file:${join(folder, "opens.db")}`, authToken: null, syncUrl: sqld.url };
    const other = await openDb(systemClock, { url: sqld.url, authToken: null, syncUrl: null });
    await other.migrate([
      { sql: "CREATE TABLE t (a TEXT PRIMARY KEY, b INTEGER NOT NULL) STRICT", args: [] },
    ]);
    await (await openDb(systemClock, settings)).close();
    await other.write([put("while it was closed")]);
    await sqld.make({ noFrames: true });
    const opening = openDb(systemClock, settings);
    await Bun.sleep(300);
    await sqld.make({ noFrames: false });
    replica = await opening;
    expect(await rowsLike("%", replica)).toEqual(["while it was closed"]);
    await other.close();
    await sqld.stop();
  });

  test("sees the writes of other processes, and is still a replica after a restart", async () => {
    // Its clock stands still: its last read is never too old to be used, so it must be notified.
    replica = await openDb({ ...systemClock, elapsed: () => 0 }, options("reads.db"));
    for (const name of ["by another", "by another later"]) {
      await db.write([put(name)]);
      await until(async () => (await rowsLike(name, replica)).length > 0);
    }
    await replica.close();
    await db.write([put("while away")]);
    replica = await openDb(systemClock, options("reads.db"));
    expect(await rowsLike("while away", replica)).toEqual(["while away"]);
  });

  test("sees the reason if a write of its own was refused", async () => {
    replica = await openDb(systemClock, options("refused.db"));
    await db.write([put("taken", 5)]);
    const error = await caught(replica.write([put("taken", 6)]));
    expect(error).toMatchObject({ unique: "t.a" });
    expect(await replica.first("SELECT b FROM t WHERE a = 'taken'")).toEqual({ b: 5 });
  });

  test("a replica does not trust its file after a write whose reply was lost, because it may have been committed", async () => {
    replica = await openDb(systemClock, options("lost.db"));
    await primary.make({ loseReplies: 1 });
    expect(faultOf(await caught(replica.write([put("told nobody", 7)])))).toBe("lost");
    expect(await replica.first("SELECT b FROM t WHERE a = 'told nobody'")).toEqual({ b: 7 });
    // Once the file has it, reads use the file again.
    await until(async () => {
      const { execute } = await primary.counts();
      await rowsLike("told nobody", replica);
      return (await primary.counts()).execute === execute;
    });
  });

  test("a replica whose primary is down reads for ten seconds, then no more, and follows again by itself", async () => {
    let ahead = 0;
    const clock = { ...systemClock, elapsed: () => systemClock.elapsed() + ahead };
    replica = await openDb(clock, options("stale.db"));
    await kill();
    expect(await rowsLike("back", replica)).toEqual(["back"]);
    expect(faultOf(await caught(replica.write([put("nowhere")])))).toBe("unreachable");
    ahead = 10_001;
    expect(isUnavailable(await caught(rowsLike("back", replica)))).toBe(true);
    await primary.restart();
    await replica.write([put("followed")]);
    expect(await rowsLike("followed", replica)).toEqual(["followed"]);
  });

  test("a replica that another process uses is left alone: the second process works at the primary", async () => {
    replica = await openDb(systemClock, options("shared.db"));
    const second = await openDb(systemClock, options("shared.db"));
    await second.write([put("second")]);
    expect(await rowsLike("second", second)).toEqual(["second"]);
    await second.close();
  });

  test("a replica is not made of a file that is a separate database", async () => {
    replica = await openDb(systemClock, options("other.db"));
    const own = await openDb(systemClock, {
      url: `file:${join(folder, "own.db")}`,
      authToken: null,
      syncUrl: null,
    });
    await own.close();
    const error = await caught(openDb(systemClock, options("own.db")));
    expect(String(error)).toContain("is a database but not a replica");
  });

  test("a replica does not block the event loop while it syncs", async () => {
    replica = await openDb(systemClock, options("slow.db"));
    await primary.make({ delayMs: 300 });
    let turns = 0;
    let done = false;
    const write = replica.write([put("slow")]).finally(() => {
      done = true;
    });
    while (!done) {
      await Bun.sleep(1);
      turns++;
    }
    await write;
    await primary.make({ delayMs: 0 });
    // Two round trips of 300 ms: a blocked loop turns only a handful of times.
    expect(turns).toBeGreaterThan(50);
  });
});

const timerSet = (clock: ManualClock): Promise<void> => until(() => clock.pending() > 0);
