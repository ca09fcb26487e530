import { afterAll, afterEach, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { systemClock } from "../../src/clock.ts";
import { type Db, openDb } from "../../src/store/engine/client.ts";
import { EngineError, isUnavailable } from "../../src/store/sql/errors.ts";
import { commitsReachDisk } from "../../src/store/installation/health.ts";
import { newFolder } from "../support/folder.ts";
import { until } from "../support/poll.ts";
import { NO_SQLD, SQLD, type Sqld, startSqld } from "../support/sqld.ts";

/** Milliseconds: on a busy machine programs take seconds to start. */
setDefaultTimeout(90_000);

const ROUND_TRIP_MS = 50;
const WRITERS = 8;
const KILLS = 4;

const put = (a: string) => ({ sql: "INSERT INTO t (a) VALUES (?)", args: [a] });
const caught = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => null,
    (error: unknown) => error,
  );
const names = async (db: Db): Promise<string[]> =>
  (await db.all<{ a: string }>("SELECT a FROM t ORDER BY a")).map(({ a }) => a);
const faultOf = (error: unknown) => (error instanceof EngineError ? error.fault : null);

describe.skipIf(NO_SQLD !== null)(`a real libSQL server (${NO_SQLD ?? SQLD})`, () => {
  let sqld: Sqld;
  const open: Db[] = [];

  /** A clock whose elapsed time a test moves ahead. */
  let ahead = 0;
  const clock = { ...systemClock, elapsed: () => systemClock.elapsed() + ahead };

  /** Opens the server, or a new replica of it. */
  async function opened(kind: "server" | "replica", token = sqld.token): Promise<Db> {
    const options =
      kind === "server"
        ? { url: sqld.url, authToken: token, syncUrl: null }
        : { url: `file:${newFolder("replica")}/replica.db`, authToken: token, syncUrl: sqld.url };
    const db = await openDb(clock, options);
    open.push(db);
    return db;
  }

  beforeAll(async () => {
    sqld = await startSqld({ auth: true, roundTripMs: ROUND_TRIP_MS });
    await (await opened("server")).migrate([{ sql: "CREATE TABLE t (a TEXT PRIMARY KEY) STRICT", args: [] }]);
  });
  afterEach(async () => {
    for (const db of open.splice(0)) await db.close();
    ahead = 0;
  });
  afterAll(() => sqld?.stop());

  test("waits for its disk at each commit only if it is told to", async () => {
    const relaxed = await startSqld({ durable: false });
    const db = await openDb(systemClock, { url: relaxed.url, authToken: null, syncUrl: null });
    expect(await commitsReachDisk(db)).toBe(false);
    expect(await commitsReachDisk(await opened("server"))).toBe(true);
    expect(await commitsReachDisk(await opened("replica"))).toBe(true);
    await db.close();
    await relaxed.stop();
  });

  test("takes the token of its key, from replicas too, and no other", async () => {
    for (const kind of ["server", "replica"] as const) {
      const db = await opened(kind);
      await db.write([put(`token of a ${kind}`)]);
      expect(await names(db)).toContain(`token of a ${kind}`);
      const refused = await caught(opened(kind, "another-token").then(names));
      expect(String(refused)).toContain("refuses the token (DATABASE_AUTH_TOKEN): HTTP 401");
      expect(Bun.inspect(refused)).not.toContain("another-token");
    }
  });

  test.each(["server", "replica"] as const)(
    "killed and restarted under load, loses and doubles no write of a client (%s)",
    async (kind) => {
      const db = await opened(kind);
      const said = new Map<string, "written" | "unknown" | "refused">();
      let over = false;
      const writer = async (id: number): Promise<void> => {
        for (let at = 0; !over; at++) {
          const name = `${kind} ${id} ${at}`;
          const error = await caught(db.write([put(name)]));
          if (error === null) {
            said.set(name, "written");
            // The client that has an answer reads its own write.
            const read = await caught(
              db.first("SELECT 1 FROM t WHERE a = ?", [name]).then((row) => expect(row).not.toBeNull()),
            );
            if (read !== null) expect(isUnavailable(read)).toBe(true);
          } else said.set(name, faultOf(error) === "lost" ? "unknown" : "refused");
          if (error !== null) expect(isUnavailable(error)).toBe(true);
        }
      };
      const writers = Array.from({ length: WRITERS }, (_, id) => writer(id));
      for (let kill = 0; kill < KILLS; kill++) {
        const before = [...said.values()].filter((one) => one === "written").length;
        await until(() => [...said.values()].filter((one) => one === "written").length > before + WRITERS);
        await sqld.kill();
        await sqld.restart();
      }
      over = true;
      await Promise.all(writers);
      const stored = new Set(await names(await opened("server")));
      for (const [name, outcome] of said)
        if (outcome !== "unknown") expect([name, stored.has(name)]).toEqual([name, outcome === "written"]);
      // None is stored that was never tried.
      const tried = [...stored].filter((name) => /^\w+ \d+ \d+$/.test(name) && name.startsWith(kind));
      expect(tried.filter((name) => !said.has(name))).toEqual([]);
    },
  );

  test("cut off from a replica: reads for ten seconds, then none, and everything when the line is back", async () => {
    const replica = await opened("replica");
    await replica.write([put("before the cut")]);
    await sqld.link?.become("cut");
    expect(await names(replica)).toContain("before the cut");
    expect(isUnavailable(await caught(replica.write([put("in the cut")])))).toBe(true);
    ahead = 10_001;
    expect(isUnavailable(await caught(names(replica)))).toBe(true);
    await sqld.link?.become("whole");
    const other = await opened("server");
    await other.write([put("by another process")]);
    await replica.write([put("after the cut")]);
    const now = await names(replica);
    expect(now).toContain("by another process");
    expect(now).toContain("after the cut");
    expect(now).not.toContain("in the cut");
  });

  test("stalled on the way to a replica: a write that got no answer is read at the primary when the line is back", async () => {
    const replica = await opened("replica");
    await sqld.link?.become("stalled");
    const write = caught(replica.write([put("in the stall")]));
    await Bun.sleep(ROUND_TRIP_MS);
    await sqld.link?.become("whole");
    const error = await write;
    const isStored = (await names(await opened("server"))).includes("in the stall");
    if (error === null) expect(isStored).toBe(true);
    else expect(["lost", "unreachable"]).toContain(faultOf(error) ?? "");
    expect((await names(replica)).includes("in the stall")).toBe(isStored);
  });

  test("far away, shows a replica the writes of other processes by itself", async () => {
    const replica = await opened("replica");
    const other = await opened("server");
    for (const name of ["far", "farther"]) {
      await other.write([put(name)]);
      await until(async () => (await names(replica)).includes(name));
    }
  });
});
