import { afterAll, afterEach, beforeAll, beforeEach, expect, setDefaultTimeout, test } from "bun:test";
import { DAY_MS, HOUR_MS, SECOND_MS } from "../../src/core/time/units.ts";
import { startMx, type TestMx } from "../support/mx.ts";
import { until } from "../support/poll.ts";
import { type ShiftedClock, shiftedClock } from "../support/shifted-clock.ts";
import { type CallOptions, startService, type TestService, verifiedDomain } from "../support/service.ts";

setDefaultTimeout(60_000);

/** Cap of the first day of a warm-up. */
const FIRST_CAP = 50;
const EGRESS = ["127.0.0.11", "127.0.0.12"];

let service: TestService;
let clock: ShiftedClock;
let mx: TestMx;
let domainId: string;
let [first, second]: TestMx[] = [];

beforeAll(async () => {
  clock = shiftedClock();
  // No day may end while a test counts.
  clock.shift(DAY_MS - (clock.now() % DAY_MS) + DAY_MS / 2);
  mx = startMx();
  const env = { DELIVERY: "mx", SMTP_OUT_PORT: String(mx.port), EGRESS: `${EGRESS[0]},${EGRESS[1]}@fresh` };
  service = await startService({ ...env, LANES: "yahoo:5/50/0" }, clock);
  domainId = await verifiedDomain(service, "sender.test");
  await verifiedDomain(service, "other.test");
  const exchange = "mta5.am0.yahoodns.net";
  service.dns.add({ name: exchange, type: "A", data: "127.0.0.1" });
  service.dns.add({ name: "yahoo.test", type: "MX", data: { preference: 10, exchange } });
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

const wide = (method: string, path: string, body?: unknown, options: CallOptions = {}) =>
  service.call(method, path, body, { key: service.accountKey, ...options });

let count = 0;

async function newRoute(body: Record<string, unknown>): Promise<string> {
  const answer = await wide("POST", "/v1/routes", { name: `route ${++count}`, ...body });
  expect(answer).toMatchObject({ status: 201 });
  return answer.body.id;
}

const relay = (peer: TestMx | undefined, more: Record<string, unknown> = {}) =>
  newRoute({ kind: "relay", relayUrl: `smtp://127.0.0.1:${peer?.port}?insecure=1`, ...more });

async function projectPath(): Promise<string> {
  const { body } = await wide("GET", "/v1/senders");
  return `/v1/senders/${body.data[0].id}`;
}

async function take(...routeIds: string[]): Promise<void> {
  expect(await wide("PATCH", await projectPath(), { routeIds })).toMatchObject({ status: 200 });
}

async function domainTakes(...routeIds: string[]): Promise<void> {
  const { body } = await wide("GET", "/v1/senders");
  const headers = { "x-service-product": body.data[0].id };
  const answer = await wide("PATCH", `/v1/domains/${domainId}`, { routeIds }, { headers });
  expect(answer).toMatchObject({ status: 200, body: { routeIds } });
}

function newDomain(): string {
  const domain = `d${++count}.test`;
  service.dns.add({ name: domain, type: "A", data: "127.0.0.1" });
  return domain;
}

const send = (from: string, domain = newDomain()) =>
  service.send({ from: { email: `news@${from}` }, to: [{ email: `a@${domain}` }] });

async function attempts(id: string): Promise<{ routeId: string | null; egress: string | null }[]> {
  return (await service.call("GET", `/v1/emails/${id}/attempts`)).body.data;
}

const lastRoute = async (id: string) => (await attempts(id)).at(-1)?.routeId;

test("a domain's routes come before the project's, also for mail to one recipient domain", async () => {
  const [ofProject, ofDomain] = [await relay(first), await relay(second)];
  await take(ofProject);
  await domainTakes(ofDomain);
  const to = newDomain();
  const [own, other] = [await send("sender.test", to), await send("other.test", to)];
  for (const id of [own, other]) await service.message(id, "sent");
  expect([await lastRoute(own), await lastRoute(other)]).toEqual([ofDomain, ofProject]);
  await domainTakes();
  const again = await send("sender.test");
  await service.message(again, "sent");
  expect(await lastRoute(again)).toBe(ofProject);
});

test("mail that waited for a domain's routes when they were taken away follows the project's", async () => {
  first?.set({ EHLO: "421 busy" });
  await take();
  await domainTakes(await relay(first));
  const id = await send("sender.test");
  await service.message(id, "delivery_delayed");
  await domainTakes();
  await service.restart({ DELIVERY_RETRY_SECONDS: "1" });
  clock.shift(HOUR_MS);
  await service.message(id, "delivered");
  expect(await lastRoute(id)).toBeNull();
});

test("a project's key may not choose the routes of its domain", async () => {
  const answer = await service.call("PATCH", `/v1/domains/${domainId}`, { routeIds: ["default"] });
  expect(answer).toMatchObject({ status: 403, body: { error: { param: "routeIds" } } });
});

test("a route that a domain names, or into which a warm-up overflows, cannot be deleted", async () => {
  const [named, overflow] = [await relay(first), await relay(second)];
  await domainTakes(named);
  const warmUp = { targetPerDay: 100, overflowRouteId: overflow };
  const warming = await relay(first, { warmUp });
  for (const id of [named, overflow])
    expect(await wide("DELETE", `/v1/routes/${id}`)).toMatchObject({ status: 409 });
  await domainTakes();
  await wide("PATCH", `/v1/routes/${warming}`, { warmUp: null });
  for (const id of [named, overflow])
    expect(await wide("DELETE", `/v1/routes/${id}`)).toMatchObject({ status: 204 });
});

test("a broadcast takes its own routes before those of its domain, and keeps them from being deleted until it is sent", async () => {
  const [ofDomain, ofLetter] = [await relay(first), await relay(second)];
  await domainTakes(ofDomain);
  const { body } = await wide("GET", "/v1/senders");
  const headers = { "x-service-product": body.data[0].id };
  const own = (method: string, path: string, more?: object) => wide(method, path, more, { headers });
  const topic = (await own("POST", "/v1/topics", { name: "News" })).body;
  await own("POST", "/v1/contacts", { email: `a@${newDomain()}` });
  const letter = {
    name: "May",
    topicId: topic.id,
    from: "news@sender.test",
    subject: "Hi",
    text: "{{ unsubscribeUrl }}",
  };
  const refused = await service.call("POST", "/v1/broadcasts", { ...letter, routeIds: [ofLetter] });
  expect(refused).toMatchObject({ status: 403, body: { error: { param: "routeIds" } } });
  expect(await own("POST", "/v1/broadcasts", { ...letter, routeIds: ["rte_x"] })).toMatchObject({
    status: 422,
  });
  const { id } = (await own("POST", "/v1/broadcasts", { ...letter, routeIds: [ofLetter] })).body;
  expect(await wide("DELETE", `/v1/routes/${ofLetter}`)).toMatchObject({ status: 409 });
  await own("POST", `/v1/broadcasts/${id}/send`);
  const read = async () => (await own("GET", `/v1/broadcasts/${id}`)).body;
  await until(async () => {
    clock.shift(SECOND_MS);
    return (await read()).status === "sent";
  });
  const [message] = (await own("GET", `/v1/broadcasts/${id}/recipients`)).body.data;
  expect(await lastRoute(message.id)).toBe(ofLetter);
  expect(await wide("DELETE", `/v1/routes/${ofLetter}`)).toMatchObject({ status: 204 });
  await domainTakes();
});

/** Sends messages and returns how many of them each route took. */
async function sendMany(number: number, status: string, domain?: string): Promise<Map<unknown, number>> {
  const ids: string[] = [];
  for (let sent = 0; sent < number; sent++) ids.push(await send("sender.test", domain));
  const counts = new Map<unknown, number>();
  for (const id of ids) {
    await service.message(id, status);
    const route = (await attempts(id)).at(-1)?.routeId;
    counts.set(route, (counts.get(route) ?? 0) + 1);
  }
  return counts;
}

test("what is above the warm-up cap of a relay leaves at once by the overflow route", async () => {
  const overflow = await relay(second);
  const warming = await relay(first, { warmUp: { targetPerDay: 100, overflowRouteId: overflow } });
  await take(warming);
  const counts = await sendMany(FIRST_CAP + 12, "sent");
  expect([counts.get(warming), counts.get(overflow)]).toEqual([FIRST_CAP, 12]);
  await until(async () => {
    const { body } = await wide("GET", "/v1/lanes");
    const lane = body.data.find(({ name }: { name: string }) => name === `relay:${warming}`);
    return Bun.deepEquals(lane?.warmUp, { day: 1, cap: FIRST_CAP, used: FIRST_CAP });
  });
});

test("without an overflow route what is above the cap waits for the next day, which has the target as its cap", async () => {
  const target = FIRST_CAP + 3;
  const warming = await relay(first, { warmUp: { targetPerDay: target } });
  await take(warming);
  await sendMany(FIRST_CAP, "sent");
  const late = await send("sender.test");
  const { recipients } = await service.message(late, "delivery_delayed");
  expect(recipients[0].diagnostic).toContain(`its ${FIRST_CAP} messages of the day have left`);
  await until(async () => {
    const sql = "SELECT SUM(accepted) AS stored FROM lane_figures WHERE lane = ?";
    return (await service.app.db.first<{ stored: number }>(sql, [`relay:${warming}`]))?.stored === FIRST_CAP;
  });
  clock.shift(DAY_MS);
  await service.message(late, "sent");
  await sendMany(target - 1, "sent");
  await service.message(await send("sender.test"), "delivery_delayed");
});

test("the overflow route takes nothing while the relay is below its cap, even if that cannot be reached", async () => {
  first?.stop();
  const warming = await relay(first, {
    warmUp: { targetPerDay: 100, overflowRouteId: await relay(second) },
  });
  await take(warming);
  await service.message(await send("sender.test"), "delivery_delayed");
  expect(second?.connections.items).toHaveLength(0);
});

test("the addresses of a warming pool take the cap of each provider, and the default route the rest", async () => {
  const warmUp = { targetPerDay: 1000, overflowRouteId: "default" };
  const warming = await newRoute({ kind: "mx", pool: "fresh", warmUp });
  await take(warming);
  const counts = await sendMany(FIRST_CAP + 7, "delivered", "yahoo.test");
  expect([counts.get(warming), counts.get(null)]).toEqual([FIRST_CAP, 7]);
});

test("a warm-up shows when it began, and a new target does not begin it again", async () => {
  const id = await relay(first, { warmUp: { targetPerDay: 500, overflowRouteId: "default" } });
  const { warmUp } = (await wide("GET", `/v1/routes/${id}`)).body;
  expect(warmUp).toMatchObject({ targetPerDay: 500, overflowRouteId: "default" });
  clock.shift(DAY_MS);
  const changed = await wide("PATCH", `/v1/routes/${id}`, { warmUp: { targetPerDay: 900 } });
  expect(changed.body.warmUp).toEqual({
    targetPerDay: 900,
    overflowRouteId: null,
    startedAt: warmUp.startedAt,
  });
});

test.each([
  ["a route that is unknown", "rte_unknown"],
  ["the route itself", null],
])("a warm-up that overflows into %s is refused", async (_, overflowRouteId) => {
  const id = await relay(first);
  const warmUp = { targetPerDay: 500, overflowRouteId: overflowRouteId ?? id };
  const answer = await wide("PATCH", `/v1/routes/${id}`, { warmUp });
  expect(answer).toMatchObject({
    status: 422,
    body: { error: { issues: [{ param: "warmUp.overflowRouteId" }] } },
  });
});

test("the default route is the last of the list, on its own page too, and shows what the settings say", async () => {
  const shown = { id: "default", name: "default", kind: "mx", relayHost: null, createdAt: null };
  expect(await wide("GET", "/v1/routes/default")).toMatchObject({ status: 200, body: shown });
  await relay(first);
  let [cursor, seen]: [string | null, string[]] = [null, []];
  do {
    const query = cursor === null ? "" : `&cursor=${cursor}`;
    const { body }: { body: { data: { id: string }[]; nextCursor: string | null } } = await wide(
      "GET",
      `/v1/routes?limit=1${query}`,
    );
    seen = [...seen, ...body.data.map(({ id }) => id)];
    cursor = body.nextCursor;
  } while (cursor !== null);
  expect(seen.at(-1)).toBe("default");
  expect(seen.filter((id) => id === "default")).toHaveLength(1);
});

test("the default route cannot be changed, deleted or named like another, and says which settings make it", async () => {
  for (const answer of [
    await wide("PATCH", "/v1/routes/default", { name: "mine" }),
    await wide("DELETE", "/v1/routes/default"),
  ]) {
    expect(answer).toMatchObject({ status: 409, body: { error: { code: "invalid_state" } } });
    expect(answer.body.error.message).toContain("DELIVERY and SMTP_RELAY_URL");
  }
  expect((await wide("POST", "/v1/routes", { name: "default", kind: "mx" })).status).toBe(409);
});
