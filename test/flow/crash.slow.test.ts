import { afterEach, beforeEach, describe, expect, setDefaultTimeout, test } from "bun:test";
import { join } from "node:path";
import { publish, startDns, type TestDns } from "../support/dns.ts";
import { startMx, type TestMx } from "../support/mx.ts";
import { until } from "../support/poll.ts";
import { type ServiceProcess, serviceProcess } from "../support/process.ts";
import { type TestRedis, startRedis } from "../support/redis.ts";
import { reason } from "../support/reason.ts";

/** Milliseconds: on a busy machine programs take seconds to start. */
setDefaultTimeout(90_000);

const DIE_BEFORE_HINT = join(import.meta.dir, "../support/die-before-hint.ts");

/** Contacts of a broadcast that takes some seconds. */
const LETTERS = 90;
const LETTERS_PER_HOUR = 30 * 3600;

let dns: TestDns;
let peer: TestMx;
let service: ServiceProcess;
let redis: TestRedis | null = null;

async function call(method: string, path: string, body?: unknown, headers: Record<string, string> = {}) {
  const response = await fetch(`${service.url}${path}`, {
    method,
    headers: {
      authorization: `Bearer ${service.key}`,
      "x-service-product": "default",
      ...(body === undefined ? {} : { "content-type": "application/json" }),
      ...headers,
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  // biome-ignore lint/suspicious/noExplicitAny: a test reads whatever the API shows.
  const shown: any = await response.json();
  return { status: response.status, body: shown };
}

const mail = (to: string) => ({
  from: { email: "a@sender.test" },
  to: [{ email: to }],
  subject: to,
  text: "x",
});

beforeEach(async () => {
  dns = await startDns();
  peer = startMx();
  dns.add({ name: "there.test", type: "A", data: "127.0.0.1" });
  service = serviceProcess({ DELIVERY: "mx", SMTP_OUT_PORT: String(peer.port), DNS_SERVERS: dns.address });
  await service.start();
  const domain = await call("POST", "/v1/domains", { domain: "sender.test" });
  publish(dns, domain.body.records);
  await call("POST", `/v1/domains/${domain.body.id}/verify`, {});
});

afterEach(async () => {
  await service.remove();
  peer.stop();
  dns.stop();
  await redis?.stop();
  redis = null;
});

/** Recipients whose mail the peer accepted, each with its Message-IDs. */
function taken(): Map<string, Set<string>> {
  const found = new Map<string, Set<string>>();
  for (const { rcptTo, data } of peer.messages.items) {
    const id = /^Message-ID: *(\S+)/im.exec(data.toString())?.[1] ?? "";
    for (const to of rcptTo) found.set(to, (found.get(to) ?? new Set()).add(id));
  }
  return found;
}

async function settled(count: number): Promise<void> {
  const path = "/v1/emails?status=delivered&limit=100";
  await until(async () => (await call("GET", path)).body.data.length === count);
}

describe("a killed process", () => {
  test("a killed process between commit and hint delivers the message after its restart, and the client's retry makes no second one", async () => {
    await service.kill();
    await service.start({}, DIE_BEFORE_HINT);
    const key = { "idempotency-key": "the-one" };
    expect(await reason(call("POST", "/v1/emails", mail("a@there.test"), key))).toBeInstanceOf(Error);
    expect(await service.exited()).not.toBe(0);
    await service.start();
    const retried = await call("POST", "/v1/emails", mail("a@there.test"), key);
    expect(retried.status).toBe(202);
    await settled(1);
    expect([...taken().keys()]).toEqual(["a@there.test"]);
    expect(peer.messages.items.length).toBe(1);
  });

  test("a killed process keeps a draft that was saved, and sends it once if it dies while it sends it", async () => {
    const draft = (await call("POST", "/v1/drafts", mail("d@there.test"))).body;
    await service.kill();
    await service.start({}, DIE_BEFORE_HINT);
    expect((await call("GET", `/v1/drafts/${draft.id}`)).body).toMatchObject({ subject: "d@there.test" });
    const send = () =>
      call(
        "POST",
        `/v1/drafts/${draft.id}/send`,
        { version: draft.version },
        { "idempotency-key": "the-draft" },
      );
    expect(await reason(send())).toBeInstanceOf(Error);
    expect(await service.exited()).not.toBe(0);
    await service.start();
    // The message and the end of the draft were one commit: there is the one or the other.
    expect((await call("GET", `/v1/drafts/${draft.id}`)).status).toBe(404);
    expect((await send()).status).toBe(202);
    await settled(1);
    expect(peer.messages.items.map(({ rcptTo }) => rcptTo)).toEqual([["d@there.test"]]);
  });

  test("a killed process between hint and delivery delivers every message after its restart", async () => {
    let reached: () => void = () => undefined;
    const inDelivery = new Promise<void>((resolve) => {
      reached = resolve;
    });
    // The peer holds the first transactions until the process is gone.
    peer.set({ RCPT: () => new Promise<string>(() => reached()) });
    const addresses = Array.from({ length: 30 }, (_, at) => `r${at}@there.test`);
    for (const address of addresses)
      expect((await call("POST", "/v1/emails", mail(address))).status).toBe(202);
    await inDelivery;
    await service.kill();
    peer.set({ RCPT: "250 ok" });
    await service.start();
    await settled(30);
    expect([...taken().keys()].sort()).toEqual([...addresses].sort());
    expect(peer.messages.items.length).toBe(30);
  });

  test("a killed process between the peer's 250 and its own commit sends at most once more, under the same Message-ID", async () => {
    let reached: () => void = () => undefined;
    const atTheEnd = new Promise<void>((resolve) => {
      reached = resolve;
    });
    peer.set({ ".": () => new Promise<string>(() => reached()) });
    await call("POST", "/v1/emails", mail("a@there.test"));
    await atTheEnd;
    await service.kill();
    peer.set({ ".": "250 ok" });
    await service.start();
    await settled(1);
    expect(taken().get("a@there.test")?.size).toBe(1);
    expect(peer.messages.items.length).toBeLessThanOrEqual(2);
  });

  test("a process that is killed twice while it sends a broadcast sends it to each contact once", async () => {
    const emails = Array.from({ length: LETTERS }, (_, at) => `c${at}@there.test`);
    await call("POST", "/v1/contacts/batch", { contacts: emails.map((email) => ({ email })) });
    const topic = (await call("POST", "/v1/topics", { name: "News" })).body;
    const letter = { name: "May", topicId: topic.id, from: "a@sender.test", ratePerHour: LETTERS_PER_HOUR };
    const content = { subject: "Hi {{ contact.email }}", text: "News {{ unsubscribeUrl }}" };
    const { id } = (await call("POST", "/v1/broadcasts", { ...letter, ...content })).body;
    expect((await call("POST", `/v1/broadcasts/${id}/send`)).status).toBe(200);
    const read = async () => (await call("GET", `/v1/broadcasts/${id}`)).body;
    for (const share of [0, 1 / 2]) {
      await until(() => peer.messages.items.length > share * LETTERS);
      await service.kill();
      await service.start();
    }
    await until(() => taken().size === LETTERS);
    await until(async () => (await read()).status === "sent" && (await read()).counts.delivered === LETTERS);
    expect((await read()).counts).toMatchObject({ recipients: LETTERS, skipped: 0, failed: 0 });
    const mailed = taken();
    expect([...mailed.keys()].sort()).toEqual([...emails].sort());
    // One that was on its way at a kill may come again, as the same message.
    expect([...mailed.values()].filter((messageIds) => messageIds.size !== 1)).toEqual([]);
    expect(peer.messages.items.length - LETTERS).toBeLessThan(LETTERS / 3);
  });

  test("a killed process loses no mail if Redis is flushed while the process is down", async () => {
    redis = await startRedis();
    await service.kill();
    peer.set({ RCPT: "451 4.3.0 Later" });
    await service.start({ REDIS_URL: redis.url, DELIVERY_RETRY_SECONDS: "0.05" });
    const addresses = Array.from({ length: 20 }, (_, at) => `q${at}@there.test`);
    for (const address of addresses) await call("POST", "/v1/emails", mail(address));
    await redis.kill();
    await service.kill();
    await redis.restart();
    peer.set({ RCPT: "250 ok" });
    await service.start({ REDIS_URL: redis.url, DELIVERY_RETRY_SECONDS: "0.05" });
    await settled(20);
    expect([...taken().keys()].sort()).toEqual([...addresses].sort());
  });
});

describe("SIGTERM", () => {
  test("ends with 0 after running work is done, and the rest is sent after the restart", async () => {
    let release: (reply: string) => void = () => undefined;
    let reached: () => void = () => undefined;
    const inHand = new Promise<void>((resolve) => {
      reached = resolve;
    });
    peer.set({
      ".": () =>
        new Promise<string>((resolve) => {
          release = resolve;
          reached();
        }),
    });
    await call("POST", "/v1/emails", mail("a@there.test"));
    await inHand;
    const exit = service.terminate();
    release("250 ok");
    expect(await exit).toBe(0);
    peer.set({ ".": "250 ok" });
    await service.start();
    await settled(1);
    expect(peer.messages.items.length).toBe(1);
  });

  test("a second start prints no secret, and neither does the first one with ROOT_API_KEY", async () => {
    expect(service.output().stdout).not.toContain(service.key);
    await service.terminate();
    await service.start();
    expect(service.output().stdout).not.toContain("pr_");
    expect(service.output().stdout).not.toContain(service.key);
  });
});
