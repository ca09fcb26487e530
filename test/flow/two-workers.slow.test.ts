import { afterEach, expect, setDefaultTimeout, test } from "bun:test";
import { join } from "node:path";
import { systemClock } from "../../src/clock.ts";
import { openDb } from "../../src/store/engine/client.ts";
import { publish, startDns } from "../support/dns.ts";
import { newFolder } from "../support/folder.ts";
import { startSink } from "../support/https-sink.ts";
import { startMx } from "../support/mx.ts";
import { until } from "../support/poll.ts";
import { callRole, type RoleProcess, startRole } from "../support/role-process.ts";

/** Milliseconds: on a busy machine programs take seconds to start. */
setDefaultTimeout(180_000);

const ROOT_API_KEY = "test-root-key-0123456789-0123456789";
const SENDS = 150;

const stops: (() => unknown)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0).reverse()) await stop();
});

test("two workers on one file without Redis, with all recipients due at the same time, deliver to each once", async () => {
  const folder = newFolder("two");
  const [dns, peer, sink] = [await startDns(), startMx(), startSink()];
  dns.add({ name: "there.test", type: "A", data: "127.0.0.1" });
  stops.push(dns.stop, peer.stop, sink.stop);
  const databaseUrl = `file:${join(folder, "postrider.db")}`;
  const env = {
    DATA_DIR: folder,
    DATABASE_URL: databaseUrl,
    ROOT_API_KEY,
    DELIVERY: "mx",
    DESTINATION_RATE: "0",
    SMTP_OUT_PORT: String(peer.port),
    DNS_SERVERS: dns.address,
    WEBHOOK_RETRY_SECONDS: "0,1,1",
  };
  const processes: RoleProcess[] = [];
  const start = async (ROLES: string): Promise<RoleProcess> => {
    const one = await startRole({ ...env, ROLES });
    stops.push(() => one.kill());
    processes.push(one);
    return one;
  };
  const api = await start("api");
  const call = (method: string, path: string, body: unknown) =>
    callRole(api, ROOT_API_KEY, method, path, body);
  const { body: domain } = await call("POST", "/v1/domains", { domain: "sender.test" });
  publish(dns, domain.records);
  await call("POST", `/v1/domains/${domain.id}/verify`, {});
  await call("POST", "/v1/webhooks", { url: sink.url, eventTypes: ["delivery"] });
  for (let at = 0; at < SENDS; at += 50) {
    const emails = Array.from({ length: 50 }, (_, nth) => ({
      from: { email: "a@sender.test" },
      subject: "x",
      text: "x",
      to: [{ email: `r${at + nth}@there.test` }],
    }));
    const { body } = await call("POST", "/v1/emails/batch", { emails });
    expect(body.data.filter(({ status }: { status: string }) => status === "queued")).toHaveLength(50);
  }
  // No worker has run yet, so both find the same due recipients, in the same order.
  const held = Promise.withResolvers<string>();
  peer.set({ ".": () => held.promise });
  await Promise.all([start("worker"), start("worker")]);
  const db = await openDb(systemClock, { url: databaseUrl, authToken: null, syncUrl: null });
  stops.push(() => db.close());
  const count = async (sql: string) => (await db.first<{ n: number }>(sql))?.n;
  await until(async () => (await count("SELECT COUNT(DISTINCT claimed_by) AS n FROM recipients")) === 2);
  held.resolve("250 ok");
  await until(
    async () =>
      (await count("SELECT COUNT(*) AS n FROM webhook_deliveries WHERE status = 'succeeded'")) === SENDS,
  );
  const recipients = peer.messages.items.map(({ rcptTo }) => String(rcptTo));
  expect(recipients.length).toBe(SENDS);
  expect(new Set(recipients).size).toBe(SENDS);
  expect(
    await count("SELECT COUNT(*) AS n FROM recipients WHERE status = 'delivered' AND attempts = 1"),
  ).toBe(SENDS);
  expect(await count("SELECT COUNT(*) AS n FROM attempts")).toBe(SENDS);
  expect(await count("SELECT COUNT(*) AS n FROM events WHERE type = 'sending'")).toBe(SENDS);
  const pushed = sink.requests.items.map(({ body }) => JSON.parse(body).id);
  expect(new Set(pushed).size).toBe(SENDS);
  expect(pushed.length).toBe(SENDS);
  for (const one of processes) expect(await one.terminate()).toBe(0);
});
