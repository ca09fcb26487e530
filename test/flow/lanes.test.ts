import { afterEach, expect, setDefaultTimeout, test } from "bun:test";
import { systemClock } from "../../src/clock.ts";
import { TRIAL_MS } from "../../src/flows/dispatch/dispatch.ts";
import { type MxOptions, startMx, type TestMx } from "../support/mx.ts";
import { startService, type TestService, verifiedDomain } from "../support/service.ts";

setDefaultTimeout(60_000);

let service: TestService;
const peers: TestMx[] = [];

afterEach(async () => {
  // Peers that hang would use up the whole grace period.
  await service.app.stop(1_000);
  await service.stop();
  for (const peer of peers.splice(0)) peer.stop();
});

/** Peers at 127.0.0.1, 127.0.0.2 … on one port, which the service uses as the port of MX hosts. */
async function startWith(options: MxOptions[], env: Record<string, string> = {}): Promise<TestMx[]> {
  const started: TestMx[] = [];
  for (const [at, one] of options.entries())
    started.push(
      startMx({ ...one, ip: `127.0.0.${at + 1}`, ...(at > 0 ? { port: started[0]?.port ?? 0 } : {}) }),
    );
  peers.push(...started);
  service = await startService({ DELIVERY: "mx", SMTP_OUT_PORT: String(started[0]?.port), ...env });
  await verifiedDomain(service, "sender.test");
  return started;
}

/** A domain with its own MX host at the address. */
function domainAt(domain: string, ip: string): void {
  service.dns.add({ name: domain, type: "A", data: ip });
}

/** Domains whose mail one host receives. */
function hostedAt(host: string, ip: string, domains: readonly string[]): void {
  service.dns.add({ name: host, type: "A", data: ip });
  for (const name of domains) service.dns.add({ name, type: "MX", data: { preference: 10, exchange: host } });
}

const mail = (email: string) => ({
  from: { email: "news@sender.test" },
  to: [{ email }],
  subject: "Hello",
  text: "Hello\n",
});

/** Sends one message to each address. Returns the ids in order. */
async function sendAll(addresses: readonly string[]): Promise<string[]> {
  const ids: string[] = [];
  for (let from = 0; from < addresses.length; from += 100) {
    const emails = addresses.slice(from, from + 100).map(mail);
    const { body } = await service.call("POST", "/v1/emails/batch", { emails });
    ids.push(...body.data.map((item: { id: string }) => item.id));
  }
  return ids;
}

const names = (count: number) => Array.from({ length: count }, (_, at) => `d${at}.test`);
const at = (domains: readonly string[]) => domains.map((domain) => `a@${domain}`);

/**
 * A message to a good destination must arrive within this many milliseconds. Waiting for a bad one would take
 * longer, and a busy machine takes a while.
 */
const AT_ONCE_MS = TRIAL_MS - 1_000;

/** Sends one message to good.test and waits until its peer has it. Returns the time. */
async function sendGood(good: TestMx): Promise<number> {
  const before = good.messages.items.length;
  const startedAt = systemClock.now();
  await service.call("POST", "/v1/emails", mail("a@good.test"));
  await good.messages.reached(before + 1);
  return systemClock.now() - startedAt;
}

test.each([
  ["that never greet", { banner: "silent" }],
  ["that never answer MAIL", { answers: { MAIL: "silent" } }],
  ["that never answer the message", { answers: { ".": "silent" } }],
] as [string, MxOptions][])("three hundred destinations %s delay no other", async (_, hung) => {
  const [good, bad] = await startWith([{}, hung]);
  if (good === undefined || bad === undefined) throw new Error("no peers");
  domainAt("good.test", good.ip);
  for (const domain of names(300)) domainAt(domain, bad.ip);
  await sendAll(at(names(300)));
  await bad.connections.reached(250);
  expect(await sendGood(good)).toBeLessThan(AT_ONCE_MS);
  expect(await sendGood(good)).toBeLessThan(AT_ONCE_MS);
});

test("if a thousand domains share a provider that hangs, they have one lane and delay no other", async () => {
  const [good, bad] = await startWith([{}, { banner: "silent" }]);
  if (good === undefined || bad === undefined) throw new Error("no peers");
  domainAt("good.test", good.ip);
  hostedAt("mx.provider.test", bad.ip, names(1000));
  await sendAll(at(names(1000)));
  await bad.connections.reached(1);
  expect(await sendGood(good)).toBeLessThan(AT_ONCE_MS);
  expect(bad.connections.items.length).toBeLessThanOrEqual(5);
});

test("domains at one provider share its five connections", async () => {
  const gate = Promise.withResolvers<string>();
  const [provider] = await startWith([
    { extensions: [], answers: { ".": ["250 first", () => gate.promise, () => gate.promise] } },
  ]);
  if (provider === undefined) throw new Error("no peer");
  hostedAt("mx.provider.test", provider.ip, names(20));
  await sendAll(at(names(20)));
  await provider.connections.reached(5);
  gate.resolve("250 ok");
  await provider.messages.reached(20);
  expect(provider.connections.items.length).toBe(5);
});

test("a destination gets no more messages in a second than its rate", async () => {
  const times: number[] = [];
  const [slow, good] = await startWith(
    [{ answers: { ".": () => `250 ${times.push(systemClock.now())}` } }, {}],
    { DESTINATION_RATE: "10" },
  );
  if (slow === undefined || good === undefined) throw new Error("no peers");
  domainAt("good.test", good.ip);
  hostedAt("mx.slow.test", slow.ip, names(25));
  const startedAt = systemClock.now();
  await sendAll(at(names(25)));
  expect(await sendGood(good)).toBeLessThan(AT_ONCE_MS);
  await slow.messages.reached(25);
  // Counted from the beginning, because a busy machine may use a moment late but never early.
  for (const [index, time] of times.entries()) expect(time - startedAt).toBeGreaterThanOrEqual(index * 100);
});

test("one failed try puts off all mail of a dead destination, each with its reason and its next try", async () => {
  const [, bad] = await startWith([{}, { banner: "421 4.3.2 closed for today" }]);
  if (bad === undefined) throw new Error("no peer");
  hostedAt("mx.provider.test", bad.ip, names(60));
  const ids = await sendAll(at(names(60)));
  for (const id of ids) await service.message(id, "delivery_delayed");
  expect(bad.connections.items.length).toBeLessThanOrEqual(5);
  const rows = await service.app.db.all<{ transcript: string; diagnostic: string; mx: string }>(
    "SELECT transcript, diagnostic, mx FROM attempts",
    [],
  );
  expect(rows.length).toBe(60);
  const notTried = rows.filter(({ transcript }) => transcript.includes("not tried"));
  expect(notTried.length).toBeGreaterThan(50);
  for (const row of notTried) {
    expect(row.diagnostic).toContain("421 ");
    expect(row.diagnostic).toContain("closed for today");
    expect(row.mx).toBe("mx.provider.test");
  }
  const record = await service.message(ids[59] ?? "", "delivery_delayed");
  expect(record.recipients[0].attempts).toBe(1);
  const delayed = record.events.find((event: { type: string }) => event.type === "delivery_delayed");
  expect(Date.parse(delayed.data.delivery_delayed.nextAttemptAt)).toBeGreaterThan(systemClock.now() + 30_000);
});

test("mail of a dead destination is sent by its retries once it is back", async () => {
  const [moody] = await startWith([{ banner: "421 busy" }], { DELIVERY_RETRY_SECONDS: "1" });
  if (moody === undefined) throw new Error("no peer");
  hostedAt("mx.provider.test", moody.ip, names(30));
  const ids = await sendAll(at(names(30)));
  for (const id of ids) await service.message(id, "delivery_delayed");
  const { port, ip } = moody;
  moody.stop();
  const healthy = startMx({ port, ip });
  peers.push(healthy);
  await healthy.messages.reached(30);
  for (const id of ids) await service.message(id, "delivered");
});

test.each(["silent", "servfail"] as const)(
  "name servers that are %s for five hundred domains delay only those",
  async (behaviour) => {
    const [good] = await startWith([{}]);
    if (good === undefined) throw new Error("no peer");
    domainAt("good.test", good.ip);
    for (const domain of names(500)) service.dns.behave(behaviour, domain);
    const ids = await sendAll(at(names(500)));
    expect(await sendGood(good)).toBeLessThan(AT_ONCE_MS);
    if (behaviour === "servfail") {
      const record = await service.message(ids[499] ?? "", "delivery_delayed");
      expect(record.recipients[0].diagnostic).toContain("MX lookup of d499.test: servfail");
    }
  },
);

test("a name server that never answers puts mail off", async () => {
  const [good] = await startWith([{}]);
  if (good === undefined) throw new Error("no peer");
  domainAt("good.test", good.ip);
  service.dns.stop();
  const [id = ""] = await sendAll(["a@good.test"]);
  expect((await service.message(id, "delivery_delayed")).recipients[0].diagnostic).toContain("MX lookup");
});
