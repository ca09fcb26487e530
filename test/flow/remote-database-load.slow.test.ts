import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { systemClock } from "../../src/clock.ts";
import { openDb } from "../../src/store/engine/client.ts";
import { type DatabaseServer, startServer } from "../support/database.ts";
import { publish, startDns, type TestDns } from "../support/dns.ts";
import { newFolder } from "../support/folder.ts";
import { startMx, type TestMx } from "../support/mx.ts";
import { deliverTo } from "../support/mail-in.ts";
import { until } from "../support/poll.ts";
import { callRole, type RoleProcess, startRole } from "../support/role-process.ts";

/** Milliseconds: on a busy machine programs take seconds to start. */

const ROOT_API_KEY = "test-root-key-0123456789-0123456789";
/** How long the database is away, and how long the load lasts before and after, in milliseconds. */
const AWAY_MS = 5000;
const NEXT_TO_MS = 1000;
const PAUSE_MS = 25;
const LIMIT_MS = 270_000;
setDefaultTimeout(LIMIT_MS);

let primary: DatabaseServer;
let dns: TestDns;
let peer: TestMx;
let service: RoleProcess;
let folder: string;

const call = (method: string, path: string, body?: unknown, headers?: Record<string, string>) =>
  callRole(service, ROOT_API_KEY, method, path, body, headers);

beforeAll(async () => {
  folder = newFolder("load");
  primary = await startServer();
  dns = await startDns();
  dns.add({ name: "there.test", type: "A", data: "127.0.0.1" });
  peer = startMx();
  service = await startRole({
    DATA_DIR: folder,
    DATABASE_URL: primary.url,
    ROOT_API_KEY,
    DELIVERY: "mx",
    SMTP_OUT_PORT: String(peer.port),
    DNS_SERVERS: dns.address,
    DESTINATION_RATE: "0",
    // A delivery that our side could not finish is tried again.
    DELIVERY_RETRY_SECONDS: "1",
  });
  const { body: domain } = await call("POST", "/v1/domains", { domain: "sender.test" });
  publish(dns, domain.records);
  await call("POST", `/v1/domains/${domain.id}/verify`, {});
  const { body: receiving } = await call("PATCH", `/v1/domains/${domain.id}/receiving`, { enabled: true });
  publish(dns, receiving.records);
  await call("POST", "/v1/inboxes", { address: "desk@sender.test" });
}, LIMIT_MS);
afterAll(async () => {
  await service.kill();
  peer.stop();
  dns.stop();
  await primary.stop();
});

interface Load {
  accepted: Map<string, string>;
  unavailable: unknown[];
  taken: string[];
  putOff: string[];
  other: string[];
}

/** Sends one message after another. Each keeps its Idempotency-Key until it is accepted, as a client should. */
async function sends(load: Load, name: string, stopped: () => boolean): Promise<void> {
  for (let at = 0; !stopped(); at++) {
    const to = `${name}-${at}@there.test`;
    const mail = { from: { email: "a@sender.test" }, to: [{ email: to }], subject: to, text: "x" };
    for (;;) {
      const sent = await call("POST", "/v1/emails", mail, { "idempotency-key": to });
      if (sent.status === 503) load.unavailable.push(sent.body);
      else if (sent.status === 202) load.accepted.set(to, sent.body.id);
      // The first try may still be waiting for its answer when its client tries again.
      else if (sent.body.error.code !== "idempotency_in_flight") load.other.push(JSON.stringify(sent));
      if (sent.status === 202) break;
      await Bun.sleep(PAUSE_MS);
    }
  }
}

/** Delivers one message after another, each again until it is accepted, as a mail server does. */
async function arrives(load: Load, name: string, stopped: () => boolean): Promise<void> {
  for (let at = 0; !stopped(); at++) {
    const subject = `${name}-${at}`;
    const headers = [`Subject: ${subject}`, `Message-ID: <${subject}@client.test>`];
    for (;;) {
      const reply = await deliverTo(service.smtpPort, { to: "desk@sender.test", headers });
      if (reply.startsWith("250 ")) load.taken.push(subject);
      else if (/^4\d\d /.test(reply)) load.putOff.push(reply);
      else load.other.push(reply);
      if (reply.startsWith("250 ")) break;
      await Bun.sleep(PAUSE_MS);
    }
  }
}

test("if the database is away for five seconds under load, clients get 503 and 4xx, and then everything arrives once", async () => {
  const load: Load = { accepted: new Map(), unavailable: [], taken: [], putOff: [], other: [] };
  let over = false;
  const stopped = () => over;
  const running = [
    ...["a", "b", "c"].map((name) => sends(load, name, stopped)),
    ...["x", "y"].map((name) => arrives(load, name, stopped)),
  ];
  await Bun.sleep(NEXT_TO_MS);
  await primary.kill();
  await Bun.sleep(AWAY_MS);
  const before = load.accepted.size;
  await primary.restart();
  // One more reply is lost with the server up: the client's next try must find the result of the first.
  await primary.loseReply?.();
  await Bun.sleep(NEXT_TO_MS);
  over = true;
  await Promise.all(running);
  expect(load.other).toEqual([]);
  expect(load.unavailable.length).toBeGreaterThan(0);
  for (const body of load.unavailable)
    expect(body).toMatchObject({ error: { type: "service_unavailable", requestId: expect.any(String) } });
  expect(load.putOff.length).toBeGreaterThan(0);
  // It recovers by itself.
  expect(load.accepted.size).toBeGreaterThan(before);

  const wanted = [...load.accepted.keys()].sort();
  await until(() => new Set(peer.messages.items.flatMap(({ rcptTo }) => rcptTo)).size === wanted.length);
  const db = await openDb(systemClock, { url: primary.url, authToken: null, syncUrl: null });
  const undelivered = "SELECT COUNT(*) AS n FROM recipients WHERE status <> 'delivered'";
  await until(async () => (await db.first<{ n: number }>(undelivered))?.n === 0);
  expect(peer.messages.items.flatMap(({ rcptTo }) => rcptTo).sort()).toEqual(wanted);
  const stored = await db.all<{ id: string; direction: string; subject: string }>(
    "SELECT id, direction, subject FROM messages ORDER BY subject",
  );
  await db.close();
  const outbound = stored.filter(({ direction }) => direction === "outbound");
  expect(outbound.map(({ id, subject }) => [subject, id])).toEqual([...load.accepted].sort());
  const inbound = stored.filter(({ direction }) => direction === "inbound");
  expect(inbound.map(({ subject }) => subject).sort()).toEqual(load.taken.sort());
  const { accepted, unavailable, taken, putOff } = load;
  process.stdout.write(
    `database away: ${accepted.size} sent, ${unavailable.length} answered 503; ${taken.length} taken, ${putOff.length} put off\n`,
  );
});
