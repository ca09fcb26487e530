import { afterEach, beforeEach, expect, setDefaultTimeout, test } from "bun:test";
import { DAY_MS, HOUR_MS } from "../../src/core/time/units.ts";
import { egressesOf } from "../../src/flows/deliver/egress.ts";
import { startMx, type TestMx } from "../support/mx.ts";
import { until } from "../support/poll.ts";
import { type ShiftedClock, shiftedClock } from "../support/shifted-clock.ts";
import { startService, type TestService, verifiedDomain } from "../support/service.ts";

setDefaultTimeout(60_000);

const USUAL = ["127.0.0.11", "127.0.0.12"];
const BULK = "127.0.0.13";
/** Outside the loopback's network, so no socket can be bound to it. */
const NOT_OURS = "192.0.2.9";
const S3150 =
  "550 5.7.1 Unfortunately, messages from [127.0.0.11] weren't sent, because our address is on our block list (S3150).";

let service: TestService;
let mx: TestMx;
let clock: ShiftedClock;

beforeEach(() => {
  clock = shiftedClock();
  mx = startMx();
});
afterEach(async () => {
  await service.stop();
  mx.stop();
});

async function startWith(EGRESS: string, more: Record<string, string> = {}): Promise<void> {
  const env = { DELIVERY: "mx", SMTP_OUT_PORT: String(mx.port), EGRESS, ...more };
  service = await startService(env, clock);
  await verifiedDomain(service, "sender.test");
  service.dns.add({ name: "mx.many.test", type: "A", data: "127.0.0.1" });
}

function hosted(domain: string, exchange = "mx.many.test"): void {
  service.dns.add({ name: domain, type: "MX", data: { preference: 10, exchange } });
}

async function send(email: string, more: Record<string, unknown> = {}): Promise<string> {
  const { body } = await service.call("POST", "/v1/emails", {
    from: { email: "news@sender.test" },
    to: [{ email }],
    subject: "Hello",
    text: "Hello\n",
    ...more,
  });
  return body.id;
}

/** Our own addresses that the attempts of a message came from. */
async function egresses(id: string): Promise<(string | null)[]> {
  const { body } = await service.call("GET", `/v1/emails/${id}/attempts`);
  return body.data.map(({ egress }: { egress: string | null }) => egress);
}

test("mail of a domain leaves from one address, and the domains share the addresses of their stream", async () => {
  await startWith(`${USUAL[0]},${USUAL[1]}=out.example.com,${BULK}@bulk`);
  const domains = Array.from({ length: 12 }, (_, nth) => `d${nth}.test`);
  for (const domain of domains) hosted(domain);
  const seen = new Map<string, Set<string | null>>();
  for (const [nth, domain] of [...domains, ...domains].entries()) {
    const id = await send(`p${nth}@${domain}`);
    await service.message(id, "delivered");
    const [egress = null] = await egresses(id);
    seen.set(domain, (seen.get(domain) ?? new Set()).add(egress));
  }
  for (const addresses of seen.values()) expect(addresses.size).toBe(1);
  expect(new Set([...seen.values()].flatMap((one) => [...one]))).toEqual(new Set(USUAL));
  const bulk = await send("p@d0.test", { stream: "bulk" });
  await service.message(bulk, "delivered");
  expect(await egresses(bulk)).toEqual([BULK]);
  expect(new Set(mx.remotes.items)).toEqual(new Set([...USUAL, BULK]));
  expect(mx.commands.items).toContain("EHLO out.example.com");
});

test("while a provider refuses one address, its mail leaves from the next one of the pool, and from no other", async () => {
  await startWith(`${USUAL[0]},${USUAL[1]},${BULK}@bulk`);
  const exchange = "outlook-com.olc.protection.outlook.com";
  service.dns.add({ name: exchange, type: "A", data: "127.0.0.1" });
  hosted("outlook.test", exchange);
  const first = await send("first@outlook.test");
  await service.message(first, "delivered");
  const [refused = null] = await egresses(first);
  const other = USUAL.find((ip) => ip !== refused);
  mx.set({ MAIL: (_, remote) => (remote === refused ? S3150 : "250 ok") });
  const ids: string[] = [];
  for (let nth = 0; nth < 6; nth++) ids.push(await send(`p${nth}@outlook.test`));
  await until(async () => (await Promise.all(ids.map(egresses))).every((one) => one.length > 0));
  const late = await send("late@outlook.test");
  await service.message(late, "delivered");
  expect(await egresses(late)).toEqual([other ?? null]);
  expect(mx.remotes.items).not.toContain(BULK);
});

test("a message leaves at once from another address if no connection can be had from its own", async () => {
  await startWith(`${NOT_OURS},${USUAL[0]}`);
  const domains = Array.from({ length: 8 }, (_, nth) => `d${nth}.test`);
  const ids: string[] = [];
  for (const domain of domains) {
    hosted(domain);
    ids.push(await send(`a@${domain}`));
  }
  for (const id of ids) await service.message(id, "delivered");
  const tried = await Promise.all(ids.map(egresses));
  for (const each of tried) expect(each.at(-1)).toBe(USUAL[0] ?? null);
  expect(tried.flat()).toContain(NOT_OURS);
});

/** Sends to so many people at a provider. Returns how many messages left from each address, once all have ended so. */
async function sendMany(count: number, status: string): Promise<Map<string | null, number>> {
  const emails = Array.from({ length: count }, (_, nth) => ({
    from: { email: "news@sender.test" },
    to: [{ email: `p${nth}@yahoo.test` }],
    subject: "Hello",
    text: "Hello\n",
  }));
  const { body } = await service.call("POST", "/v1/emails/batch", { emails });
  const counts = new Map<string | null, number>();
  for (const { id } of body.data) {
    await service.message(id, status);
    const from = (await egresses(id)).at(-1) ?? null;
    counts.set(from, (counts.get(from) ?? 0) + 1);
  }
  return counts;
}

function hostedAtYahoo(): void {
  const exchange = "mta5.am0.yahoodns.net";
  service.dns.add({ name: exchange, type: "A", data: "127.0.0.1" });
  hosted("yahoo.test", exchange);
}

const today = () => new Date(clock.now()).toISOString().slice(0, 10);

test("what is above the cap of a new address leaves at once from the other address of its pool", async () => {
  const lots = USUAL.map((ip) => ({ ip, pool: null, name: null }));
  const [fresh] = egressesOf(lots, null, "yahoo.test");
  await startWith(USUAL.join(","), { WARM_UP: `${fresh?.ip}:${today()}`, LANES: "yahoo:5/50/0" });
  hostedAtYahoo();
  const counts = await sendMany(80, "delivered");
  expect(counts.get(fresh?.ip ?? "")).toBe(50);
  expect(counts.get(USUAL.find((ip) => ip !== fresh?.ip) ?? "")).toBe(30);
});

test("without another address, what is above the cap waits for the next day, which has the next cap", async () => {
  await startWith(USUAL[0] ?? "", { WARM_UP: `${USUAL[0]}:${today()}`, LANES: "yahoo:5/50/0" });
  hostedAtYahoo();
  const first = await sendMany(50, "delivered");
  expect(first.get(USUAL[0] ?? "")).toBe(50);
  const late = await send("late@yahoo.test");
  const { events } = await service.message(late, "delivery_delayed");
  const { delivery_delayed: delayed } = events.findLast(
    ({ type }: { type: string }) => type === "delivery_delayed",
  ).data;
  expect(delayed).toMatchObject({ category: "rate", lane: `yahoo@${USUAL[0]}` });
  expect(delayed.diagnostic).toContain("its 50 messages of the day have left");
  expect(Date.parse(delayed.nextAttemptAt)).toBeGreaterThan(Date.parse(today()) + DAY_MS - 1);
  // Counts that are not stored yet would count for the next day.
  await until(async () => {
    const sql = "SELECT SUM(accepted) AS stored FROM lane_figures";
    return (await service.app.db.first<{ stored: number }>(sql, []))?.stored === 50;
  });
  clock.shift(DAY_MS + HOUR_MS);
  await service.message(late, "delivered");
});

test("an address of a family that the hosts lack is not used, and SMTP_OUT_IPV6=0 leaves IPv6 out", async () => {
  service = await startService({
    DELIVERY: "mx",
    SMTP_OUT_PORT: String(mx.port),
    EGRESS: `::1,${USUAL[0]}`,
    SMTP_OUT_IPV6: "0",
  });
  await verifiedDomain(service, "sender.test");
  service.dns.add({ name: "four.test", type: "A", data: "127.0.0.1" });
  service.dns.add({ name: "six.test", type: "AAAA", data: "::1" });
  const four = await send("a@four.test");
  await service.message(four, "delivered");
  expect(await egresses(four)).toEqual([USUAL[0] ?? null]);
  const six = await send("a@six.test");
  const { recipients } = await service.message(six, "delivery_delayed");
  expect(recipients[0].diagnostic).toContain("no mail host of six.test has an address that we can reach");
});
