import { afterEach, describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { AppError } from "../../src/core/errors.ts";
import { commitWithinVolume, type Counted, type VolumeLimits } from "../../src/flows/accept/volume.ts";
import type { Db, Statement } from "../../src/store/engine/client.ts";
import type { Project } from "../../src/store/projects/projects.ts";
import { takeUsage, usageOf, utcDay } from "../../src/store/projects/usage.ts";
import { around } from "../support/around.ts";
import { testSender } from "../support/api.ts";
import { type TestDatabase, testDatabase } from "../support/database.ts";
import { manualClock } from "../support/manual-clock.ts";
import { noonClock } from "../support/noon-clock.ts";
import { OWNER, SERVICE_DOMAIN, startService, type TestService, verifiedDomain } from "../support/service.ts";
import { reason } from "../support/reason.ts";

/** The volume is that of a day, and the API tests check it after several calls. */
const NOON = noonClock();
const closing: (() => Promise<void> | void)[] = [];

afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

describe("a project's limit is the lower of its quota and its tier", () => {
  const rows: readonly [quota: number | null, tier: string, limit: number | null, code: string | null][] = [
    [null, "basic", 5, "trust_tier_exceeded"],
    [3, "basic", 3, "daily_quota_exceeded"],
    [5, "basic", 5, "trust_tier_exceeded"],
    [9, "basic", 5, "trust_tier_exceeded"],
    [0, "basic", 0, "daily_quota_exceeded"],
    [3, "unlimited", 3, "daily_quota_exceeded"],
    [null, "unlimited", null, null],
    [null, "gone", 4, "trust_tier_exceeded"],
  ];
  for (const [dailyQuota, trustTier, limit, code] of rows)
    test(`quota ${dailyQuota}, tier ${trustTier}: ${limit ?? "none"}`, async () => {
      const at = await openVolume({ dailyQuota, trustTier });
      const sends = counted(Array.from({ length: 12 }, () => 1));
      const refused = await at.commit(sends);
      expect(12 - refused.size).toBe(limit ?? 12);
      const codes = new Set<string | undefined>([...refused.values()].map(({ details }) => details.code));
      expect([...codes]).toEqual(code === null ? [] : [code]);
      expect(await at.used()).toBe(limit ?? 12);
    });
});

describe("the volume of a day", () => {
  test("the volume of a day starts again at midnight UTC, which a refusal names", async () => {
    const at = await openVolume({ dailyQuota: 2, trustTier: "unlimited" });
    at.clock.advance(Date.parse("2026-02-28T23:59:59.999Z") - at.clock.now());
    await at.commit(counted([2]));
    const [refusal] = (await at.commit(counted([1]))).values();
    expect(refusal).toMatchObject({
      type: "permission_error",
      details: { code: "daily_quota_exceeded", resetAt: "2026-03-01T00:00:00.000Z" },
    });
    at.clock.advance(1);
    expect((await at.commit(counted([2]))).size).toBe(0);
  });

  test("the volume of a day is used by sends in order, and a send that is too large does not block smaller ones", async () => {
    const at = await openVolume({ dailyQuota: 5, trustTier: "unlimited" });
    const sends = counted([2, 4, 2, 2, 1, 1]);
    const refused = await at.commit(sends);
    expect(sends.map((send) => refused.has(send))).toEqual([false, true, false, true, false, true]);
    expect(await at.written()).toEqual([0, 2, 4]);
    expect(await at.used()).toBe(5);
  });

  test("used by another process between the read and the write is gone: fewer sends fit, and the record says so", async () => {
    const at = await openVolume({ dailyQuota: 5, trustTier: "unlimited" }, 1);
    const sends = counted([2, 3]);
    const recorded: number[] = [];
    const refused = await at.commit(sends, (over) => void recorded.push(over.size));
    expect(sends.map((send) => refused.has(send))).toEqual([false, true]);
    expect(recorded).toEqual([0, 1]);
    expect(await at.written()).toEqual([0]);
    expect(await at.used()).toBe(3);
  });

  test("the volume of a day that other processes keep taking ends in a 503, with nothing written", async () => {
    const at = await openVolume({ dailyQuota: 100, trustTier: "unlimited" }, 10);
    const error = await at.commit(counted(Array.from({ length: 100 }, () => 1))).catch((thrown) => thrown);
    expect(error).toBeInstanceOf(AppError);
    expect(error).toMatchObject({ type: "service_unavailable", details: { retryAfterSeconds: 1 } });
    expect(await at.written()).toEqual([]);
    expect(await at.used()).toBe(10);
  });

  test("the volume of a day is not used by a write that fails for another reason", async () => {
    const at = await openVolume({ dailyQuota: 5, trustTier: "unlimited" });
    const [first] = counted([2]);
    if (first === undefined) throw new Error("no send");
    await at.commit([first]);
    expect(String(await reason(at.commit([first])))).toContain("UNIQUE");
    expect(await at.used()).toBe(2);
  });
});

describe("the API", () => {
  const mail = (to: string[], more: Record<string, unknown> = {}) => ({
    from: { email: "news@sender.test" },
    to: to.map((email) => ({ email })),
    subject: "Hi",
    text: "x",
    ...more,
  });

  async function start(env: Record<string, string> = {}): Promise<TestService> {
    const service = await startService(env, NOON);
    closing.push(() => service.stop());
    return service;
  }
  async function limited(changes: Record<string, unknown>): Promise<TestService> {
    const service = await start();
    await verifiedDomain(service, "sender.test");
    await change(service, changes);
    return service;
  }

  test("the API counts each accepted recipient once, including suppressed, simulated and scheduled ones, and refuses the next", async () => {
    const service = await limited({ dailyQuota: 5 });
    await service.call("POST", "/v1/emails", mail(["a@one.test", "A@one.test", "b@one.test"]));
    await service.app.db.write([suppress(await senderId(service), "gone@one.test")]);
    const sends = [
      mail(["gone@one.test"]),
      mail([OWNER], { from: { email: `x@onboarding.${SERVICE_DOMAIN}` } }),
      mail([`delivered@simulator.${SERVICE_DOMAIN}`], { scheduledAt: "2999-01-01T00:00:00Z" }),
      mail([`delivered@simulator.${SERVICE_DOMAIN}`], { scheduledAt: new Date(soon()).toISOString() }),
      mail(["c@one.test"]),
    ];
    const answers = [];
    for (const send of sends) answers.push(await service.call("POST", "/v1/emails", send));
    // The one scheduled too far ahead is refused, and uses no volume.
    expect(answers.map(({ status }) => status)).toEqual([202, 202, 422, 202, 403]);
    expect(answers.at(-1)?.body.error).toEqual({
      type: "permission_error",
      code: "daily_quota_exceeded",
      message: expect.stringContaining("5 recipients a UTC day"),
      resetAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT00:00:00\.000Z$/),
      requestId: expect.any(String),
    });
    expect(await usedToday(service)).toBe(5);
  });

  test("a refused send leaves no message behind, and its Idempotency-Key may be used again", async () => {
    const service = await limited({ dailyQuota: 1 });
    const once = { headers: { "idempotency-key": "one" } };
    const send = mail(["a@one.test", "b@one.test"]);
    expect((await service.call("POST", "/v1/emails", send, once)).status).toBe(403);
    expect((await service.call("GET", "/v1/emails")).body.data).toEqual([]);
    await change(service, { dailyQuota: 2 });
    expect((await service.call("POST", "/v1/emails", send, once)).status).toBe(202);
    const again = await service.call("POST", "/v1/emails", send, once);
    expect(again.status).toBe(202);
    expect(again.headers.get("idempotent-replayed")).toBe("true");
    expect(await usedToday(service)).toBe(2);
  });

  test("a batch takes its items in order until the volume is used up, and fails the rest one by one", async () => {
    const service = await start({ TIER_BASIC: "3" });
    await verifiedDomain(service, "sender.test");
    await change(service, { trustTier: "basic" });
    const emails = [
      mail(["a@one.test", "b@one.test"]),
      mail(["c@one.test"], { from: { email: "x@stranger.test" } }),
      mail(["d@one.test", "e@one.test"]),
      mail(["f@one.test"]),
      mail(["g@one.test"]),
    ];
    const once = { headers: { "idempotency-key": "batch" } };
    const batch = await service.call("POST", "/v1/emails/batch", { emails }, once);
    expect(batch.status).toBe(207);
    const codes = batch.body.data.map(
      ({ id, error }: { id?: string; error?: { code: string } }) => error?.code ?? (id && "accepted"),
    );
    const over = "trust_tier_exceeded";
    expect(codes).toEqual(["accepted", "domain_not_verified", over, "accepted", over]);
    // The interface promises these three as strings, even if no single field is at fault.
    expect(batch.body.data[4].error).toMatchObject({ code: over, param: "", message: expect.any(String) });
    expect(batch.body.data[4].error.resetAt).toMatch(/T00:00:00\.000Z$/);
    expect((await service.call("GET", "/v1/emails")).body.data).toHaveLength(2);
    const again = await service.call("POST", "/v1/emails/batch", { emails }, once);
    expect(again.body).toEqual(batch.body);
    expect(await usedToday(service)).toBe(3);
  });

  test("the API sends through two processes on one database never exceed the limit", async () => {
    const service = await limited({ dailyQuota: 25 });
    const url = `file:${service.folder}/postrider.db`;
    const masterKey = readFileSync(join(service.folder, "master.key"), "utf8").trim();
    const second = await start({ DATABASE_URL: url, MASTER_KEY: masterKey, ROLES: "api" });
    const calls = Array.from({ length: 60 }, (_, at) => {
      const to = Array.from({ length: 1 + (at % 3) }, (_, ord) => `a${at}.${ord}@one.test`);
      const [path, body] =
        at % 4 === 0 ? ["/v1/emails/batch", { emails: [mail(to), mail(to)] }] : ["/v1/emails", mail(to)];
      return (at % 2 === 0 ? service : second).call("POST", path, body, { key: service.projectKey });
    });
    const answers = await Promise.all(calls);
    expect([...new Set(answers.map(({ status }) => status))].sort()).toEqual([202, 207, 403]);
    expect(await usedToday(service)).toBe(25);
    const recipients = await service.app.db.first<{ count: number }>(
      "SELECT COUNT(*) AS count FROM recipients",
    );
    expect(recipients?.count).toBe(25);
  });

  test("the API is shown with the rest of it, to the project's own key too", async () => {
    const service = await limited({ dailyQuota: 3 });
    const quota = async (key: string) => (await service.call("GET", "/v1/quota", undefined, { key })).body;
    expect(await quota(service.projectKey)).toMatchObject({ limit: 3, used: 0, remaining: 3 });
    await service.call("POST", "/v1/emails", mail(["a@one.test", "b@one.test"]));
    const shown = await quota(service.projectKey);
    expect(shown).toEqual({
      limit: 3,
      used: 2,
      remaining: 1,
      resetAt: expect.any(String),
      resources: expect.any(Object),
    });
    expect(shown.resetAt).toMatch(/T00:00:00\.000Z$/);
    await change(service, { dailyQuota: 1 });
    expect(await quota(service.projectKey)).toMatchObject({ limit: 1, used: 2, remaining: 0 });
    await change(service, { dailyQuota: null });
    expect(await quota(service.projectKey)).toMatchObject({ limit: null, used: 2, remaining: null });
  });

  test("the API counts requests under the project's plan and refuses those over it", async () => {
    const service = await start({ PLAN_TINY: "1/3" });
    await change(service, { plan: "tiny" });
    const answers = await Promise.all(Array.from({ length: 30 }, () => service.call("GET", "/v1/emails")));
    const [passed, refused] = [200, 429].map((status) =>
      answers.filter((answer) => answer.status === status),
    );
    expect(passed?.length).toBeGreaterThanOrEqual(3);
    expect(passed?.[0]?.headers.get("ratelimit-limit")).toBe("3");
    expect(passed?.map(({ headers }) => headers.get("ratelimit-remaining"))).toContain("2");
    expect(refused?.[0]?.headers.get("retry-after")).toBe("1");
    expect(refused?.[0]?.headers.get("ratelimit-remaining")).toBe("0");
    expect(refused?.[0]?.body.error.type).toBe("rate_limited");
  });
});

const soon = (): number => NOON.now() + 60_000;

async function senderId(service: TestService): Promise<string> {
  const senders = await service.call("GET", "/v1/senders", undefined, { key: service.accountKey });
  return senders.body.data[0].id;
}

async function change(service: TestService, changes: Record<string, unknown>): Promise<void> {
  const path = `/v1/senders/${await senderId(service)}`;
  const changed = await service.call("PATCH", path, changes, { key: service.accountKey });
  expect(changed.status).toBe(200);
}

async function usedToday(service: TestService): Promise<number> {
  return usageOf(service.app.db, await senderId(service), utcDay(NOON.now()));
}

function suppress(id: string, email: string): Statement {
  return {
    sql: "INSERT INTO suppressions (id, sender_id, email, reason, created_at) VALUES ('sup', ?, ?, 'manual', 0)",
    args: [id, email],
  };
}

let writes = 0;

/** Sends of that many recipients each, whose write stores its number. If a number repeats, it breaks a key. */
function counted(sizes: readonly number[]): Counted[] {
  return sizes.map((recipients, at) => ({
    recipients,
    captured: false,
    statements: [
      {
        sql: "INSERT INTO instances (id, host, pid, heartbeat_at, started_at) VALUES (?, 'test', 0, 0, ?)",
        args: [`i${++writes}`, at],
      },
    ],
  }));
}

/** A project's volume on a new database. Before each of the first `rivals` writes, another process uses one. */
async function openVolume(changes: Partial<Project>, rivals = 0) {
  const database: TestDatabase = await testDatabase();
  closing.push(() => database.remove());
  const clock = manualClock();
  const project = { ...testSender("acc", "project", clock.now()), ...changes };
  const volume: VolumeLimits = { tiers: { basic: 5, unlimited: null, low: 4 }, defaultTrustTier: "low" };
  let left = rivals;
  const db: Db = {
    ...around(database.db),
    async first<Row>(sql: string, args: Parameters<Db["first"]>[1]) {
      const found = await database.db.first<Row>(sql, args);
      if (left-- > 0) await database.db.write([takeUsage(project.id, utcDay(clock.now()), 1, null)]);
      return found;
    },
  };
  return {
    clock,
    commit: (sends: readonly Counted[], told: (refused: ReadonlyMap<Counted, AppError>) => void = () => {}) =>
      commitWithinVolume({ db, clock, volume }, project, sends, (refused) => {
        told(refused);
        return [];
      }),
    used: () => usageOf(database.db, project.id, utcDay(clock.now())),
    async written(): Promise<number[]> {
      const rows = await database.db.all<{ started_at: number }>(
        "SELECT started_at FROM instances ORDER BY started_at",
      );
      return rows.map((row) => row.started_at);
    },
  };
}
