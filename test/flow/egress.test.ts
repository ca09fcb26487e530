import { afterEach, beforeEach, expect, setDefaultTimeout, test } from "bun:test";
import { startMx, type TestMx } from "../support/mx.ts";
import { until } from "../support/poll.ts";
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

beforeEach(() => {
  mx = startMx();
});
afterEach(async () => {
  await service.stop();
  mx.stop();
});

async function startWith(EGRESS: string): Promise<void> {
  service = await startService({ DELIVERY: "mx", SMTP_OUT_PORT: String(mx.port), EGRESS });
  await verifiedDomain(service, "sender.test");
  service.dns.add({ name: "mx.many.test", type: "A", data: "127.0.0.1" });
}

function hosted(domain: string, exchange = "mx.many.test"): void {
  service.dns.add({ name: domain, type: "MX", data: { preference: 10, exchange } });
}

async function send(email: string, more: Record<string, unknown> = {}): Promise<string> {
  const { body } = await service.call("POST", "/v1/emails", {
    ...{ from: { email: "news@sender.test" }, to: [{ email }], subject: "Hello", text: "Hello\n", ...more },
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

test("an address of a family that the hosts lack is not used, and SMTP_OUT_IPV6=0 leaves IPv6 out", async () => {
  service = await startService({
    ...{ DELIVERY: "mx", SMTP_OUT_PORT: String(mx.port), EGRESS: `::1,${USUAL[0]}`, SMTP_OUT_IPV6: "0" },
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
