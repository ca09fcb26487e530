import {
  afterAll,
  afterEach,
  beforeAll,
  beforeEach,
  describe,
  expect,
  setDefaultTimeout,
  test,
} from "bun:test";
import { startMx, type TestMx } from "../support/mx.ts";
import { until } from "../support/poll.ts";
import { startService, type TestService, verifiedDomain } from "../support/service.ts";

setDefaultTimeout(60_000);

const SECRET = "s3cret-of-the-relay";
const BULK = "127.0.0.13";

let service: TestService;
let mx: TestMx;
let [first, second]: TestMx[] = [];

beforeAll(async () => {
  mx = startMx();
  service = await startService({
    DELIVERY: "mx",
    SMTP_OUT_PORT: String(mx.port),
    EGRESS: `127.0.0.11,${BULK}@bulk`,
  });
  await verifiedDomain(service, "sender.test");
  service.dns.add({ name: "to.test", type: "A", data: "127.0.0.1" });
});
afterAll(async () => {
  await service.stop();
  mx.stop();
});
beforeEach(() => {
  [first, second] = [startMx(), startMx()];
});
afterEach(() => {
  first?.stop();
  second?.stop();
});

const wide = (method: string, path: string, body?: unknown) =>
  service.call(method, path, body, { key: service.accountKey });

let count = 0;

async function newRoute(body: Record<string, unknown>): Promise<string> {
  const answer = await wide("POST", "/v1/routes", { name: `route ${++count}`, ...body });
  expect(answer.status).toBe(201);
  return answer.body.id;
}

const relay = (peer: TestMx | undefined, login = "", more: Record<string, unknown> = {}) =>
  newRoute({ kind: "relay", relayUrl: `smtp://${login}127.0.0.1:${peer?.port}?insecure=1`, ...more });

async function project(): Promise<string> {
  const { body } = await wide("GET", "/v1/senders");
  return `/v1/senders/${body.data[0].id}`;
}

/** Makes the project take these routes from now on. */
async function take(...routeIds: string[]): Promise<void> {
  const answer = await wide("PATCH", await project(), { routeIds });
  expect(answer).toMatchObject({ status: 200, body: { routeIds } });
}

async function send(more: Record<string, unknown> = {}): Promise<string> {
  // Each domain is looked up when its first message comes, so the routes are those of now.
  const domain = `d${++count}.test`;
  service.dns.add({ name: domain, type: "A", data: "127.0.0.1" });
  const { body } = await service.call("POST", "/v1/emails", {
    from: { email: "news@sender.test" },
    to: [{ email: `a@${domain}` }],
    subject: "Hello",
    text: "Hello\n",
    ...more,
  });
  return body.id;
}

async function attempts(id: string): Promise<{ routeId: string | null; egress: string | null }[]> {
  const { body } = await service.call("GET", `/v1/emails/${id}/attempts`);
  return body.data;
}

const routesOf = async (id: string) => (await attempts(id)).map(({ routeId }) => routeId);

test("mail takes the project's route, and one of the default route takes the project's mail back", async () => {
  const own = await relay(first);
  await take(own);
  const id = await send();
  await service.message(id, "sent");
  expect(await routesOf(id)).toEqual([own]);
  expect(first?.messages.items).toHaveLength(1);
  await take("default");
  const direct = await send();
  await service.message(direct, "delivered");
  expect(await routesOf(direct)).toEqual([null]);
});

describe("the next route is tried at once after", () => {
  test.each([
    [
      "a refused connection",
      async () => {
        first?.stop();
        return relay(first);
      },
    ],
    [
      "a refused login",
      async () => {
        first?.set({ EHLO: "250-relay.test\r\n250 AUTH PLAIN", AUTH: "535 5.7.8 wrong" });
        return relay(first, `user:${SECRET}@`);
      },
    ],
    [
      "a relay that is busy",
      async () => {
        first?.set({ EHLO: "421 busy" });
        return relay(first);
      },
    ],
  ])("%s", async (_, broken) => {
    const [bad, good] = [await broken(), await relay(second)];
    await take(bad, good);
    const id = await send();
    await service.message(id, "sent");
    expect(await routesOf(id)).toEqual([bad, good]);
  });
});

test.each([
  ["the relay refuses the recipient", { RCPT: "550 5.1.1 unknown user" }, "bounced"],
  [
    "the connection breaks after the content, so the outcome is unknown",
    { ".": "close" },
    "delivery_delayed",
  ],
  ["the relay defers the content", { ".": "451 4.3.0 later" }, "delivery_delayed"],
])("the next route is not tried if %s", async (_, answers, status) => {
  first?.set(answers);
  await take(await relay(first), await relay(second));
  await service.message(await send(), status);
  expect(second?.connections.items).toHaveLength(0);
});

test("each relay has its own pace", async () => {
  await take(await relay(first, "", { ratePerSecond: 5 }));
  const since = performance.now();
  const ids = await Promise.all(Array.from({ length: 6 }, () => send()));
  for (const id of ids) await service.message(id, "sent");
  expect(performance.now() - since).toBeGreaterThan(900);
});

test("a new rate of a relay holds for mail that comes after it", async () => {
  const own = await relay(first, "", { ratePerSecond: 0.01 });
  await take(own);
  await service.message(await send(), "sent");
  await wide("PATCH", `/v1/routes/${own}`, { ratePerSecond: null });
  for (const id of await Promise.all([1, 2, 3].map(() => send()))) await service.message(id, "sent");
});

test("mail whose relay's URL cannot be unsealed waits, and other mail leaves", async () => {
  const own = await relay(first);
  await service.app.db.write([
    { sql: "UPDATE routes SET sealed_relay_url = 'c2VhbGVk' WHERE id = ?", args: [own] },
  ]);
  await take(own);
  const { recipients } = await service.message(await send(), "delivery_delayed");
  expect(recipients[0].diagnostic).toContain("internal error");
  await take(await relay(second));
  await service.message(await send(), "sent");
});

test("a route of kind mx sends from its pool, whatever the stream", async () => {
  const own = await newRoute({ kind: "mx", pool: "bulk" });
  await take(own);
  const id = await send({ stream: "transactional" });
  await service.message(id, "delivered");
  expect(await attempts(id)).toMatchObject([{ routeId: own, egress: BULK }]);
});

test("a changed login is used within the time of a lookup, and is shown and stored nowhere in the clear", async () => {
  first?.set({ EHLO: "250-relay.test\r\n250 AUTH PLAIN", AUTH: "235 in" });
  const own = await relay(first, `user:${SECRET}@`);
  await take(own);
  await service.message(await send(), "sent");
  const { body } = await wide("GET", `/v1/routes/${own}`);
  expect(body).toMatchObject({ id: own, kind: "relay", relayHost: `127.0.0.1:${first?.port}` });
  expect(JSON.stringify(body)).not.toContain(SECRET);
  const row = await service.app.db.first<Record<string, unknown>>("SELECT * FROM routes WHERE id = ?", [own]);
  expect(JSON.stringify(row)).not.toContain(SECRET);
  await wide("PATCH", `/v1/routes/${own}`, { relayUrl: `smtp://127.0.0.1:${second?.port}` });
  await service.message(await send(), "sent");
  await until(async () => (second?.messages.items.length ?? 0) === 1);
});

test("a route that a project names cannot be deleted, one that none names can", async () => {
  const own = await newRoute({ kind: "mx" });
  await take(own);
  expect(await wide("DELETE", `/v1/routes/${own}`)).toMatchObject({ status: 409 });
  await take();
  expect(await wide("DELETE", `/v1/routes/${own}`)).toMatchObject({ status: 204 });
  expect(await wide("GET", `/v1/routes/${own}`)).toMatchObject({ status: 404 });
});

test.each([
  ["a relay without a URL", { kind: "relay" }, "relayUrl"],
  ["a URL that is none", { kind: "relay", relayUrl: "http://relay.test" }, "relayUrl"],
  ["half a login", { kind: "relay", relayUrl: "smtp://user@relay.test" }, "relayUrl"],
  ["a URL for a way to MX hosts", { kind: "mx", relayUrl: "smtp://relay.test" }, "relayUrl"],
  ["a pool that EGRESS lacks", { kind: "mx", pool: "other" }, "pool"],
  ["a pool for a relay", { kind: "relay", relayUrl: "smtp://relay.test", pool: "bulk" }, "pool"],
  ["a rate of 0", { kind: "relay", relayUrl: "smtp://relay.test", ratePerSecond: 0 }, "ratePerSecond"],
  ["a rate for MX hosts", { kind: "mx", ratePerSecond: 1 }, "ratePerSecond"],
])("a route with %s is refused", async (_, body, param) => {
  const answer = await wide("POST", "/v1/routes", { name: "bad", ...body });
  expect(answer).toMatchObject({ status: 422, body: { error: { issues: [{ param }] } } });
});

test("a name that is taken, a route that is unknown and a fourth route are refused", async () => {
  await newRoute({ name: "twice", kind: "mx" });
  expect((await wide("POST", "/v1/routes", { name: "twice", kind: "mx" })).status).toBe(409);
  const path = await project();
  expect((await wide("PATCH", path, { routeIds: ["rte_unknown"] })).status).toBe(422);
  const four = await Promise.all([1, 2, 3, 4].map(() => newRoute({ kind: "mx" })));
  expect((await wide("PATCH", path, { routeIds: four })).status).toBe(422);
});
