import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { systemClock } from "../../src/clock.ts";
import { ASK_AWAY_MS } from "../../src/queue/optional-redis.ts";
import { type Db, openDb } from "../../src/store/engine/client.ts";
import { MIGRATIONS } from "../../src/store/engine/migrations.ts";
import { startServer } from "../support/database.ts";
import { publish, startDns, type TestDns } from "../support/dns.ts";
import { newFolder } from "../support/folder.ts";
import { type HttpsSink, startSink } from "../support/https-sink.ts";
import { startMx, type TestMx } from "../support/mx.ts";
import { until } from "../support/poll.ts";
import { startRedis, type TestRedis } from "../support/redis.ts";
import { deliverTo } from "../support/mail-in.ts";
import { callRole, type RoleProcess, startRole } from "../support/role-process.ts";

/** Milliseconds: on a busy machine programs take seconds to start. */

const ROOT_API_KEY = "test-root-key-0123456789-0123456789";
const LIMIT_MS = 120_000;
setDefaultTimeout(LIMIT_MS);

/** The database that the processes share: a server, or a file of this machine. */
type Shared = "server" | "file";
const SHARED: readonly Shared[] = ["server", "file"];

interface Ground {
  folder: string;
  databaseUrl: string;
  db(): Promise<Db>;
  remove(): Promise<void>;
}

async function ground(shared: Shared): Promise<Ground> {
  const folder = newFolder("several");
  const primary = shared === "server" ? await startServer() : null;
  const databaseUrl = primary?.url ?? `file:${join(folder, "postrider.db")}`;
  return {
    folder,
    databaseUrl,
    db: () => openDb(systemClock, { url: databaseUrl, authToken: null, syncUrl: null }),
    async remove() {
      await primary?.stop();
    },
  };
}

describe.each([...SHARED])("first starts at once on an empty %s", (shared) => {
  test("make one schema, one account, one pair of keys printed by one of them, and one master key", async () => {
    const there = await ground(shared);
    const env = {
      DATA_DIR: there.folder,
      DATABASE_URL: there.databaseUrl,
      ROLES: "api",
      DELIVERY: "capture",
    };
    const started = await Promise.all([startRole(env), startRole(env), startRole(env)]);
    const told = started.filter(({ output }) => output().stdout.includes("First start."));
    expect(told).toHaveLength(1);
    const key = /project key +(\S+)/.exec(told[0]?.output().stdout ?? "")?.[1] ?? "";
    // The printed keys work at all of them.
    for (const one of started) expect((await callRole(one, key, "GET", "/v1/emails")).status).toBe(200);
    const db = await there.db();
    const count = async (table: string) =>
      (await db.first<{ n: number }>(`SELECT COUNT(*) AS n FROM ${table}`))?.n;
    expect(await count("accounts")).toBe(1);
    expect(await count("senders")).toBe(1);
    expect(await count("api_keys")).toBe(2);
    expect(await count("dkim_keys")).toBe(1);
    expect(await count("schema_migrations")).toBe(MIGRATIONS.length);
    expect(await count("instances")).toBe(3);
    expect(readdirSync(there.folder).filter((name) => name.startsWith("master"))).toEqual(["master.key"]);
    expect(await Promise.all(started.map((one) => one.terminate()))).toEqual([0, 0, 0]);
    // Each has signed off, so the next start finds no dead process.
    expect(await count("instances")).toBe(0);
    await db.close();
    await there.remove();
  });
});

describe.each([...SHARED])("two APIs, two workers and an SMTP listener on one Redis and one %s", (shared) => {
  const SENDS = 200;
  const LETTERS = 20;
  let there: Ground;
  let redis: TestRedis;
  let dns: TestDns;
  let peer: TestMx;
  let sink: HttpsSink;
  let apis: RoleProcess[] = [];
  let workers: RoleProcess[] = [];
  let smtp: RoleProcess;
  let env: Record<string, string>;

  const call = (at: number, method: string, path: string, body?: unknown, headers?: Record<string, string>) =>
    callRole(apis[at % apis.length] ?? smtp, ROOT_API_KEY, method, path, body, headers);

  beforeAll(async () => {
    [there, redis, dns] = await Promise.all([ground(shared), startRedis(), startDns()]);
    dns.add({ name: "there.test", type: "A", data: "127.0.0.1" });
    peer = startMx();
    sink = startSink();
    env = {
      DATA_DIR: there.folder,
      DATABASE_URL: there.databaseUrl,
      REDIS_URL: redis.url,
      ROOT_API_KEY,
      DELIVERY: "mx",
      SMTP_OUT_PORT: String(peer.port),
      DNS_SERVERS: dns.address,
      DESTINATION_RATE: "0",
      PLAN_TIGHT: "1/20",
      WEBHOOK_RETRY_SECONDS: "0,1,1,1",
    };
    const start = (...roles: string[]) => Promise.all(roles.map((ROLES) => startRole({ ...env, ROLES })));
    const started = await start("api", "api", "smtp", "worker", "worker");
    [apis, workers] = [started.slice(0, 2), started.slice(3)];
    smtp = started[2] ?? smtp;
    const { body: domain } = await call(0, "POST", "/v1/domains", { domain: "sender.test" });
    publish(dns, domain.records);
    await call(1, "POST", `/v1/domains/${domain.id}/verify`, {});
    const { body: receiving } = await call(0, "PATCH", `/v1/domains/${domain.id}/receiving`, {
      enabled: true,
    });
    publish(dns, receiving.records);
    await call(1, "POST", "/v1/inboxes", { address: "desk@sender.test" });
    await call(0, "POST", "/v1/webhooks", { url: sink.url, eventTypes: ["delivery", "inbound_received"] });
  }, LIMIT_MS);
  afterAll(async () => {
    await Promise.all([...apis, ...workers, smtp].map((one) => one.kill()));
    peer.stop();
    dns.stop();
    await sink.stop();
    await redis.stop();
    await there.remove();
  });

  /** Number of requests allowed of 80 at once over both APIs, and the tokens that came back in that time. */
  async function burst(name: string): Promise<{ passed: number; refilled: number }> {
    const { body: made } = await call(0, "POST", "/v1/senders", { externalId: name, name });
    const { body: project } = await call(1, "PATCH", `/v1/senders/${made.id}`, { plan: "tight" });
    expect(project.plan).toBe("tight");
    const startedAt = systemClock.now();
    const product = { "x-service-product": name };
    const answers = await Promise.all(
      Array.from({ length: 80 }, (_, at) => call(at, "GET", "/v1/emails", undefined, product)),
    );
    const statuses = answers.map(({ status }) => status);
    expect([...new Set(statuses)].sort()).toEqual([200, 429]);
    const passed = statuses.filter((status) => status === 200).length;
    return { passed, refilled: Math.ceil((systemClock.now() - startedAt) / 1000) };
  }

  test("a burst over both APIs gets as much as at one", async () => {
    // If a process waits too long for Redis, it counts locally, so a burst on a stalled machine proves nothing.
    let over = 0;
    for (const name of ["tight", "tighter", "tightest"]) {
      // A process that missed an answer of Redis asks again a second later.
      if (over > 0) await Bun.sleep(2 * ASK_AWAY_MS);
      const { passed, refilled } = await burst(name);
      expect(passed).toBeGreaterThanOrEqual(20);
      over = passed - 20 - refilled;
      if (over <= 0) break;
    }
    expect(over).toBeLessThanOrEqual(0);
  });

  test("deliver each recipient once and push every event, even if a worker is killed at work", async () => {
    // Some transactions are open at the kill: the peer answers none from the fiftieth on, until then.
    const held = Promise.withResolvers<void>();
    const reached = Promise.withResolvers<void>();
    let ends = 0;
    peer.set({
      ".": async () => {
        if (++ends > 50) {
          reached.resolve();
          await held.promise;
        }
        return "250 ok";
      },
    });
    const send = (at: number, key: string) => {
      const to = `r${key}@there.test`;
      const mail = { from: { email: "a@sender.test" }, to: [{ email: to }], subject: to, text: "x" };
      return call(at, "POST", "/v1/emails", mail, { "idempotency-key": key });
    };
    // Each key goes to both APIs at the same time: one makes the message, both return it.
    const ids = await Promise.all(
      Array.from({ length: SENDS }, async (_, at) => {
        const both = await Promise.all([send(0, String(at)), send(1, String(at))]);
        expect(both.map(({ status }) => status)).toEqual([202, 202]);
        expect(both[0]?.body.id).toBe(both[1]?.body.id);
        return both[0]?.body.id as string;
      }),
    );
    expect(new Set(ids).size).toBe(SENDS);
    const letters = Array.from({ length: LETTERS }, (_, at) => `letter-${at}`);
    for (const subject of letters) {
      const headers = [`Subject: ${subject}`, `Message-ID: <${subject}@client.test>`];
      expect(await deliverTo(smtp.smtpPort, { to: "desk@sender.test", headers })).toStartWith("250 ");
    }

    await reached.promise;
    const db = await there.db();
    const dead = await busiest(db, workers);
    await dead.kill();
    const inHand = new Set(
      (
        await db.all<{ email: string }>(
          "SELECT r.email FROM recipients r JOIN instances i ON i.id = r.claimed_by WHERE i.pid = ?",
          [dead.pid],
        )
      ).map(({ email }) => email),
    );
    expect(inHand.size).toBeGreaterThan(0);
    held.resolve();
    peer.set({ ".": "250 ok" });
    // A process that starts on the same machine frees the dead one's claims, without waiting for the lease.
    workers = [...workers.filter((one) => one !== dead), await startRole({ ...env, ROLES: "worker" })];

    const left = async () =>
      (
        await db.first<{ n: number }>(
          `SELECT (SELECT COUNT(*) FROM recipients WHERE status <> 'delivered')
              + (SELECT COUNT(*) FROM webhook_deliveries WHERE status <> 'succeeded') AS n`,
        )
      )?.n;
    await until(async () => (await left()) === 0);
    await db.close();

    const taken = new Map<string, number>();
    for (const { rcptTo } of peer.messages.items)
      for (const to of rcptTo) taken.set(to, (taken.get(to) ?? 0) + 1);
    expect([...taken.keys()].sort()).toEqual(ids.map((_, at) => `r${at}@there.test`).sort());
    const twice = [...taken].filter(([, times]) => times > 1).map(([to]) => to);
    // The peer may have accepted claimed mail that the dead worker could not record. Nothing else arrives twice.
    expect(twice.filter((to) => !inHand.has(to))).toEqual([]);
    expect(Math.max(...taken.values())).toBeLessThanOrEqual(2);

    const pushed = sink.requests.items.map(({ body }) => JSON.parse(body));
    const told = new Set(pushed.map(({ type, data }) => `${type} ${data.messageId}`));
    expect(told.size).toBe(SENDS + LETTERS);
    expect(ids.filter((id) => !told.has(`delivery ${id}`))).toEqual([]);
    process.stdout.write(
      `${shared}: ${ids.length} sends, ${taken.size} delivered, ${inHand.size} in hand of the killed worker, ${twice.length} of them twice, ${pushed.length} pushes\n`,
    );
  });
});

/** The worker with the most claims. */
async function busiest(db: Db, workers: readonly RoleProcess[]): Promise<RoleProcess> {
  const [first] = await db.all<{ pid: number }>(
    `SELECT i.pid FROM recipients r JOIN instances i ON i.id = r.claimed_by
      GROUP BY i.id ORDER BY COUNT(*) DESC LIMIT 1`,
  );
  const found = workers.find(({ pid }) => pid === first?.pid);
  if (found === undefined) throw new Error("no worker has anything in hand");
  return found;
}
