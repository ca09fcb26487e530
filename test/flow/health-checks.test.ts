import { describe, expect, test } from "bun:test";
import { cachedHealth, HEALTH_FRESH_MS } from "../../src/flows/health/check.ts";
import {
  CHECK_LIMIT_MS,
  CHECKS_AT_ONCE,
  type Check,
  fail,
  type Finding,
  ok,
  runHealth,
  worstOf,
} from "../../src/flows/health/check.ts";
import { clockCheck } from "../../src/flows/health/clock.ts";
import { domainChecks, MAX_DOMAINS } from "../../src/flows/health/domains/domains.ts";
import { settingsChecks } from "../../src/flows/health/settings.ts";
import { integrityCheck, QUICK_CHECK_BYTES, storageChecks } from "../../src/flows/health/storage.ts";
import { loadConfig } from "../../src/config.ts";
import type { Db, Value } from "../../src/store/engine/client.ts";
import { around } from "../support/around.ts";
import { testDatabase } from "../support/database.ts";
import type { Resolver } from "../../src/net/dns/resolver.ts";
import { manualClock } from "../support/manual-clock.ts";

function check(name: string, run: Check["run"], more: Partial<Check> = {}): Check {
  return { name, run, fix: `mend ${name}`, ...more };
}

const noDatabase = (): Db => {
  throw new Error("there is no database");
};

test.each<[string[], string]>([
  [[], "warn"],
  [["203.0.112.1", "2a00::1"], "ok"],
  // The machine's own view, behind the NAT of a cloud.
  [["10.0.0.5"], "warn"],
  [["203.0.112.1", "100.64.0.1"], "warn"],
  [["0.0.0.0"], "warn"],
])("PUBLIC_IPS are the public addresses: %p is %s", async (publicIps, status) => {
  const settings = { ...loadConfig({}), publicIps };
  const lines = await runHealth(
    manualClock(),
    settingsChecks(settings, async () => null),
  );
  expect(lines.find(({ name }) => name === "public ips")?.status).toBe(status as "ok");
});

describe("a health report", () => {
  test("a health report has a line for each check in their order, and if a check throws, only its line fails", async () => {
    const lines = await runHealth(manualClock(), [
      check("a", () => ok("fine")),
      check("b", () => {
        throw new Error("out of order");
      }),
      check("c", () => Promise.reject("a text")),
      check("d", async () => ok("fine")),
    ]);
    expect(lines).toEqual([
      { name: "a", status: "ok", message: "fine" },
      { name: "b", status: "fail", message: "out of order", fix: "mend b" },
      { name: "c", status: "fail", message: "a text", fix: "mend c" },
      { name: "d", status: "ok", message: "fine" },
    ]);
    expect(worstOf(lines)).toBe("fail");
  });

  test("a health report does not wait for a check that hangs longer than its time", async () => {
    const clock = manualClock();
    const looking = runHealth(clock, [
      check("hangs", () => new Promise(() => undefined)),
      check("a", () => ok("")),
    ]);
    await clock.armed(CHECK_LIMIT_MS);
    clock.advance(CHECK_LIMIT_MS);
    expect((await looking).map(({ name, status }) => `${status} ${name}`)).toEqual(["fail hangs", "ok a"]);
  });

  test(`runs at most ${CHECKS_AT_ONCE} checks at once, and those that block the thread after all others`, async () => {
    const order: string[] = [];
    let underWay = 0;
    let most = 0;
    const waits = Array.from({ length: CHECKS_AT_ONCE + 1 }, (_, at) =>
      check(`w${at}`, async () => {
        most = Math.max(most, ++underWay);
        await new Promise<void>((resolve) => setImmediate(resolve));
        underWay--;
        order.push("other");
        return ok("");
      }),
    );
    const last = () => {
      order.push("holds");
      return ok("");
    };
    const holds = check("holds", last, { holds: true });
    const lines = await runHealth(manualClock(), [holds, ...waits]);
    expect(most).toBe(CHECKS_AT_ONCE);
    expect(order.indexOf("holds")).toBe(waits.length);
    expect(lines[0]?.name).toBe("holds");
  });

  test("a health report is made at most every ten seconds, however many callers there are", async () => {
    const clock = manualClock();
    let looks = 0;
    const health = cachedHealth(clock, [check("a", () => ok(String(++looks)))]);
    const message = async () => (await health()).checks[0]?.message;
    expect(await Promise.all([message(), message(), message()])).toEqual(["1", "1", "1"]);
    clock.advance(HEALTH_FRESH_MS - 1);
    expect(await message()).toBe("1");
    clock.advance(1);
    expect(await message()).toBe("2");
    expect(await health()).toMatchObject({ status: "ok", checkedAt: clock.now() });
  });
});

async function found(checks: readonly Check[], name: string): Promise<Finding | undefined> {
  return (await runHealth(manualClock(), checks)).find((line) => line.name === name);
}

test.each([
  [100, "ok"],
  [10, "ok"],
  [9.9, "warn"],
  [2, "warn"],
  [1.9, "fail"],
  [0, "fail"],
])("a disk with %p %% free is %p", async (percent, status) => {
  const disk = async () => ({ free: percent * 1e9, total: 100e9 });
  expect((await found(storageChecks({ db: noDatabase, disk, minFree: 0 }), "disk"))?.status).toBe(
    status as never,
  );
});

test.each([
  [1024, "ok", "The disk has 99.0 % (1.0 GB) free."],
  [1023, "warn", "The disk has 99.0 % (1023 MB) free."],
  [100, "warn", "The disk has 99.0 % (100 MB) free."],
  [99, "fail", "The disk has 99.0 % (99 MB) free."],
])("a small disk with %p MB free is %p", async (megabytes, status, message) => {
  const free = megabytes * 1024 ** 2;
  const disk = async () => ({ free, total: free / 0.99 });
  expect(await found(storageChecks({ db: noDatabase, disk, minFree: 0 }), "disk")).toMatchObject({
    status,
    message,
  });
});

test("without a database the report says so", async () => {
  const checks = storageChecks({ db: noDatabase, disk: async () => ({ free: 1, total: 1 }), minFree: 0 });
  expect(checks.map(({ name }) => name)).toEqual(["disk", "database"]);
  expect(await found(checks, "database")).toMatchObject({ status: "fail", message: "there is no database" });
});

test.each<[string, string]>([
  ["SQLITE_CORRUPT", "restore the last backup"],
  ["SQLITE_NOTADB", "restore the last backup"],
  ["SQLITE_CANTOPEN", "Start the service"],
])("a database that answers %s: %s", async (code, says) => {
  const db = (): never => {
    throw Object.assign(new Error("it cannot be read"), { code });
  };
  const checks = storageChecks({ db, disk: () => Promise.resolve({ free: 1, total: 1 }), minFree: 0 });
  expect(await found(checks, "database")).toMatchObject({
    status: "fail",
    message: expect.stringContaining("it cannot be read"),
    fix: expect.stringContaining(says),
  });
});

test("a database that answers before a commit is on disk is a warning", async () => {
  const { db, remove } = await testDatabase("file");
  const relaxed: Db = {
    ...around(db),
    // The answer of an sqld that is not configured to wait for the disk.
    first: async <Row>(sql: string, args?: Value[]) =>
      sql === "PRAGMA synchronous" ? ({ synchronous: 1 } as Row) : db.first<Row>(sql, args),
  };
  const says = (one: Db) =>
    found(
      storageChecks({ db: () => one, disk: async () => ({ free: 1, total: 1 }), minFree: 0 }),
      "database",
    );
  expect(await says(db)).toMatchObject({ status: "ok" });
  expect(await says(relaxed)).toMatchObject({
    status: "warn",
    message: expect.stringContaining("a power cut"),
  });
  await remove();
});

test("the content of a large database is checked only on request", async () => {
  const { db, remove } = await testDatabase();
  const integrity = (bytes: number, deep: boolean) =>
    found([integrityCheck({ db: () => db, octets: () => bytes }, deep)], "integrity");
  expect((await integrity(QUICK_CHECK_BYTES, false))?.message).toContain("are intact");
  expect((await integrity(QUICK_CHECK_BYTES + 1, false))?.message).toContain("was not checked");
  expect((await integrity(QUICK_CHECK_BYTES + 1, true))?.message).toContain("are intact");
  await remove();
});

test.each<[ms: number, status: string, says: RegExp]>([
  [0, "ok", /the same/],
  [-999, "ok", /the same/],
  [5_000, "warn", /5\.0 s behind/],
  [-59_999, "warn", /60\.0 s ahead/],
  [60_000, "fail", /60\.0 s behind/],
])("a clock %p ms behind another is %p", async (ms, status, says) => {
  const clock = manualClock();
  const other = { name: "the other", read: async () => clock.now() + ms };
  const line = (await runHealth(clock, [clockCheck(clock, [other])]))[0];
  expect(line?.status).toBe(status as never);
  expect(line?.message).toMatch(says);
});

test("a clock is reported as wrong only by more than the time that the answer took", async () => {
  const clock = manualClock();
  const slow = async () => {
    const then = clock.now();
    clock.advance(4_000);
    return then + 1_000;
  };
  expect((await runHealth(clock, [clockCheck(clock, [{ name: "it", read: slow }])]))[0]?.message).toContain(
    "the same",
  );
});

const NO_RESOLVER: Resolver = { resolve: async () => ({ status: "nxdomain" }) };

test(`with more than ${MAX_DOMAINS} domains the oldest are checked, and the report says so`, async () => {
  const { db, remove } = await testDatabase();
  await db.write([
    {
      sql: "INSERT INTO accounts (id, name, owner_email, created_at) VALUES ('a', 'a', 'a@a.test', 1)",
      args: [],
    },
    {
      sql: `INSERT INTO senders (id, account_id, external_id, name, plan, trust_tier, created_at)
        VALUES ('s', 'a', 'a', 'a', 'p', 't', 1)`,
      args: [],
    },
  ]);
  const add = (count: number, from: number) =>
    db.write(
      Array.from({ length: count }, (_, at) => ({
        sql: `INSERT INTO domains (id, account_id, sender_id, name, status, created_at)
          VALUES (?, 'a', 's', ?, 'pending', 1)`,
        args: [`dom_${1000 + from + at}`, `d${from + at}.test`],
      })),
    );
  const nothing = async () => ({ status: "nxdomain" }) as const;
  const lookups = { cname: nothing, txt: nothing, mx: nothing, ns: nothing, a: nothing, aaaa: nothing };
  const parts = {
    db,
    clock: manualClock(),
    lookups,
    serviceDomain: "mail.test",
    publicIps: [],
    isCaptureDomain: () => false,
    publicUrl: "https://api.example.com",
    signersOf: async () => [],
    linkFaultOf: null,
    resolver: NO_RESOLVER,
  };
  await add(MAX_DOMAINS, 0);
  expect(await domainChecks(parts)).toHaveLength(MAX_DOMAINS);
  await add(1, MAX_DOMAINS);
  const checks = await domainChecks(parts);
  expect([checks.length, checks.at(-1)?.name]).toEqual([MAX_DOMAINS + 1, "more domains"]);
  const [first] = await runHealth(manualClock(), checks.slice(0, 1));
  expect(first).toMatchObject({
    name: "domain d0.test",
    status: "warn",
    message: "The domain is pending, and these records are missing: dkim, spf, dmarc.",
  });
  expect(worstOf([{ status: "ok" }, fail("", "")])).toBe("fail");
  await remove();
});
