import { afterEach, beforeEach, expect, setDefaultTimeout, test } from "bun:test";
import { HOUR_MS, MINUTE_MS } from "../../src/core/time/units.ts";
import { startMx, type TestMx } from "../support/mx.ts";
import { until } from "../support/poll.ts";
import { startService, type TestService, verifiedDomain } from "../support/service.ts";
import { type ShiftedClock, shiftedClock } from "../support/shifted-clock.ts";

setDefaultTimeout(60_000);

const TSS04 =
  "421 4.7.0 [TSS04] Messages from 192.0.2.1 temporarily deferred due to unexpected volume or user complaints";
const S3150 =
  "550 5.7.1 Unfortunately, messages from [192.0.2.1] weren't sent. Please contact your Internet service provider since part of their network is on our block list (S3150).";

let service: TestService;
let clock: ShiftedClock;
let [first, second]: TestMx[] = [];

/** A provider with two MX hosts on the loopback, at 127.0.0.1 and 127.0.0.2. */
beforeEach(async () => {
  clock = shiftedClock();
  first = startMx({ ip: "127.0.0.1" });
  second = startMx({ ip: "127.0.0.2", port: first.port });
  service = await startService({ DELIVERY: "mx", SMTP_OUT_PORT: String(first.port) }, clock);
  await verifiedDomain(service, "sender.test");
});
afterEach(async () => {
  await service.stop();
  first?.stop();
  second?.stop();
});

function hosted(domain: string, hosts: readonly string[]): void {
  for (const [at, exchange] of hosts.entries()) {
    service.dns.add({ name: exchange, type: "A", data: `127.0.0.${at + 1}` });
    service.dns.add({ name: domain, type: "MX", data: { preference: 10 * at, exchange } });
  }
}

async function sendTo(addresses: readonly string[]): Promise<string[]> {
  const emails = addresses.map((email) => ({
    from: { email: "news@sender.test" },
    to: [{ email }],
    subject: "Hello",
    text: "Hello\n",
  }));
  const { body } = await service.call("POST", "/v1/emails/batch", { emails });
  return body.data.map((item: { id: string }) => item.id);
}

const count = (mx: TestMx | undefined, verb: string) =>
  mx?.commands.items.filter((line) => line.startsWith(verb)).length ?? 0;
const people = (domain: string, many: number) =>
  Array.from({ length: many }, (_, nth) => `p${nth}@${domain}`);

/** The data of the last event of a type. */
async function lastEvent(id: string, type: string) {
  const { events } = await service.message(id, type);
  return events.findLast((event: { type: string }) => event.type === type).data[type];
}

test("a provider that doubts our reputation is left alone until its lane opens, on all of its hosts", async () => {
  hosted("yahoo.test", ["mta5.am0.yahoodns.net", "mta6.am0.yahoodns.net"]);
  first?.set({ MAIL: TSS04 });
  second?.set({ MAIL: TSS04 });
  const ids = await sendTo(people("yahoo.test", 60));
  for (const id of ids) {
    const delayed = await lastEvent(id, "delivery_delayed");
    expect(delayed).toMatchObject({ lane: "yahoo" });
    expect(Date.parse(delayed.nextAttemptAt) - clock.now()).toBeGreaterThan(13 * MINUTE_MS);
  }
  // Those that were in flight when the first reply came.
  expect(count(first, "MAIL")).toBeLessThan(25);
  expect(second?.connections.items).toHaveLength(0);
  const before = count(first, "MAIL");
  await service.restart();
  const [late = ""] = await sendTo(["late@yahoo.test"]);
  const waits = await lastEvent(late, "delivery_delayed");
  expect(waits).toMatchObject({ lane: "yahoo", category: "reputation" });
  // The reply was to another message, which may be another project's.
  expect(waits.diagnostic).toMatch(/^Yahoo asked us to wait \(found \d+ s before\)$/);
  const { body: explained } = await service.call("GET", `/v1/emails/${late}/explain`);
  expect(explained.summary).toMatch(/The mail server of yahoo\.test asked us to wait until \d\d:\d\d UTC/);
  expect(count(first, "MAIL")).toBe(before);
  first?.set({ MAIL: "250 ok" });
  clock.shift(20 * MINUTE_MS);
  await service.message(late, "delivered");
  expect(second?.connections.items).toHaveLength(0);
});

test("while a provider refuses our address, its messages are held, and they leave when it takes one", async () => {
  hosted("outlook.test", ["outlook-com.olc.protection.outlook.com"]);
  first?.set({ MAIL: S3150 });
  const ids = await sendTo(people("outlook.test", 60));
  for (const id of ids) await lastEvent(id, "delivery_delayed");
  expect(count(first, "MAIL")).toBeLessThan(25);
  const call = async (method: string, path: string) =>
    (await service.call(method, path, undefined, { key: service.accountKey })).body;
  // A worker stores its counts once a second.
  await until(async () => (await call("GET", "/v1/lanes")).data[0]?.day.refused >= 3);
  expect(await call("GET", "/v1/lanes")).toMatchObject({
    data: [
      { name: "outlook", state: "blocked", reason: "reputation", reply: S3150, limit: 20, egress: null },
    ],
  });
  const { checks } = await call("GET", "/v1/health");
  const finding = checks.find(({ name }: { name: string }) => name === "providers");
  expect(finding).toMatchObject({ status: "fail" });
  expect(finding.fix).toContain("https://olcsupport.office.com/");
  expect(await service.metrics()).toContain('postrider_lanes{provider="outlook",state="blocked"} 1');
  first?.set({ MAIL: "250 ok" });
  clock.shift(HOUR_MS + 5 * MINUTE_MS);
  for (const id of ids) await service.message(id, "delivered");
  const { body } = await service.call("GET", "/v1/suppressions");
  expect(body.data).toEqual([]);
});

test("a recipient's own host that refuses our address closes its lane alone, and health only warns", async () => {
  hosted("mine.test", ["mx.mine.test", "mail.ru"]);
  hosted("ru.test", ["mxs.mail.ru"]);
  first?.set({ MAIL: S3150 });
  for (const id of await sendTo(people("mine.test", 5))) await lastEvent(id, "delivery_delayed");
  const key = { key: service.accountKey };
  const { body } = await service.call("GET", "/v1/lanes", undefined, key);
  expect(body.data).toMatchObject([{ name: "mail.ru+mx.mine.test", title: null, state: "blocked" }]);
  const { checks } = (await service.call("GET", "/v1/health", undefined, key)).body;
  const finding = checks.find(({ name }: { name: string }) => name === "providers");
  expect(finding).toMatchObject({ status: "warn" });
  first?.set({ MAIL: "250 ok" });
  const [other = ""] = await sendTo(["ann@ru.test"]);
  await service.message(other, "delivered");
});

test("a project sees its outcomes by provider, without those of other hosts", async () => {
  hosted("ru.test", ["mxs.mail.ru"]);
  hosted("small.test", ["mx.small.test"]);
  first?.set({ RCPT: ["250 ok", "250 ok", "450 4.2.0 try again later", "550 5.1.1 no such user"] });
  const ids = await sendTo(["a@ru.test"]);
  await service.message(ids[0] ?? "", "delivered");
  ids.push(...(await sendTo(["b@ru.test"])));
  await service.message(ids[1] ?? "", "delivered");
  ids.push(...(await sendTo(["c@ru.test"])));
  await service.message(ids[2] ?? "", "delivery_delayed");
  ids.push(...(await sendTo(["d@ru.test"])));
  await service.message(ids[3] ?? "", "bounced");
  first?.set({ RCPT: "250 ok" });
  const [small = ""] = await sendTo(["a@small.test"]);
  await service.message(small, "delivered");
  const { body } = await service.call("GET", "/v1/stats");
  const counts = { delivered: 2, delayed: 1, bounced: 1, complained: 0 };
  const few = { complaintRate: 0, standing: null };
  expect(body.byProvider).toEqual([{ provider: "mail.ru", title: "Mail.ru", ...counts, ...few }]);
});

test.each([
  ["our reputation", TSS04, "opensAt"],
  ["our address", S3150, "refusals"],
])(
  "each write of a reply about %s stores the lane too, so that a killed process loses nothing",
  async (_, reply, sign) => {
    hosted("yahoo.test", ["mta5.am0.yahoodns.net"]);
    first?.set({ MAIL: reply });
    // The database itself looks at each write that ends an attempt. One without the lane's state fails.
    await service.app.db.write([
      { sql: "CREATE TABLE looked (ord INTEGER)", args: [] },
      {
        sql: `CREATE TRIGGER lane_is_stored BEFORE UPDATE OF claimed_by ON recipients WHEN NEW.smtp_code IS NOT NULL BEGIN
          INSERT INTO looked VALUES (NEW.ord);
          SELECT RAISE(ABORT, 'the lane is not stored') WHERE NOT EXISTS (
            SELECT 1 FROM lanes WHERE name = 'yahoo' AND json_extract(state, '$.${sign}') > 0);
        END`,
        args: [],
      },
    ]);
    for (const id of await sendTo(people("yahoo.test", 10))) await lastEvent(id, "delivery_delayed");
    const looked = await service.app.db.first<{ n: number }>("SELECT COUNT(*) AS n FROM looked");
    expect(looked?.n).toBeGreaterThan(0);
  },
);

test("an operator opens a blocked lane, and the next message leaves at once", async () => {
  hosted("outlook.test", ["outlook-com.olc.protection.outlook.com"]);
  first?.set({ MAIL: S3150 });
  for (const id of await sendTo(people("outlook.test", 5))) await lastEvent(id, "delivery_delayed");
  first?.set({ MAIL: "250 ok" });
  const key = { key: service.accountKey };
  const opened = await service.call("POST", "/v1/lanes/outlook/open", undefined, key);
  expect(opened).toMatchObject({ status: 200, body: { name: "outlook", state: "slowed", opensAt: null } });
  // Workers look once a second.
  await until(async () => (await sendTo(["next@outlook.test"])) && count(first, "DATA") > 0);
  expect((await service.call("POST", "/v1/lanes/nobody/open", undefined, key)).status).toBe(404);
  expect((await service.call("GET", "/v1/lanes")).status).toBe(403);
});

test("a message that a blocked lane holds until its give-up time has failed, and suppresses nobody", async () => {
  hosted("outlook.test", ["outlook-com.olc.protection.outlook.com"]);
  first?.set({ MAIL: S3150 });
  const ids = await sendTo(people("outlook.test", 5));
  for (const id of ids) await lastEvent(id, "delivery_delayed");
  clock.shift(80 * HOUR_MS);
  for (const id of ids) expect(await lastEvent(id, "failed")).toMatchObject({ reason: "retries_exhausted" });
  const { body } = await service.call("GET", "/v1/suppressions");
  expect(body.data).toEqual([]);
});

test("the customers of a provider share its connections", async () => {
  const hosts = Array.from({ length: 12 }, (_, nth) => `c${nth}-test.mail.protection.outlook.com`);
  for (const [nth, host] of hosts.entries()) hosted(`c${nth}.test`, [host]);
  const held = Promise.withResolvers<string>();
  // Until a lane has answered, one message tries it.
  first?.set({ ".": ["250 ok", () => held.promise] });
  const ids = await sendTo(hosts.flatMap((_, nth) => people(`c${nth}.test`, 2)));
  await until(async () => count(first, "DATA") >= 6);
  expect(first?.connections.items).toHaveLength(5);
  held.resolve("250 ok");
  for (const id of ids) await service.message(id, "delivered");
  const open = (first?.connections.items.length ?? 0) - (first?.closed.items.length ?? 0);
  expect(open).toBeLessThanOrEqual(5);
});

const explanation = async (id: string) => (await service.call("GET", `/v1/emails/${id}/explain`)).body;

test("the explanation of a message that waits its turn says how many wait with it, and their rate", async () => {
  await service.restart({ LANES: "yahoo:5/50/1" });
  hosted("yahoo.test", ["mta5.am0.yahoodns.net"]);
  const ids = await sendTo(people("yahoo.test", 30));
  const last = ids.at(-1) ?? "";
  await until(async () => /It waits among \d+ messages/.test((await explanation(last)).summary));
  const { summary, recipients } = await explanation(last);
  expect(summary).toMatch(
    /^The message waits to be sent\. It waits among \d+ messages to Yahoo, which leave at 1 a second\.$/,
  );
  expect(recipients).toMatchObject([{ status: "queued", who: "us" }]);
});

test("the explanation of a message that waits for its lane to open says until when, also for one never tried", async () => {
  hosted("yahoo.test", ["mta5.am0.yahoodns.net"]);
  first?.set({ MAIL: "421 4.7.0 Too many messages, try again in 100 seconds" });
  const [tried = ""] = await sendTo(["a@yahoo.test"]);
  await lastEvent(tried, "delivery_delayed");
  const [waiting = ""] = await sendTo(["b@yahoo.test"]);
  await until(async () => (await explanation(waiting)).recipients[0].nextAttemptAt !== undefined);
  const { recipients } = await explanation(waiting);
  expect(recipients[0]).toMatchObject({ status: "queued", who: "provider" });
  expect(recipients[0].why).toMatch(/^Yahoo asked us to wait until \d\d:\d\d UTC/);
  const opensIn = Date.parse(recipients[0].nextAttemptAt) - clock.now();
  expect(opensIn).toBeGreaterThan(MINUTE_MS);
});

/** A host of Yahoo's that rests, at the address of the second server. */
async function restingYahoo(): Promise<void> {
  service.dns.add({ name: "mta5.am0.yahoodns.net", type: "A", data: "127.0.0.2" });
  mixed("yahoo.test", ["mta5.am0.yahoodns.net"]);
  second?.set({ MAIL: TSS04 });
  const [id = ""] = await sendTo(["a@yahoo.test"]);
  await lastEvent(id, "delivery_delayed");
}

function mixed(domain: string, hosts: readonly string[]): void {
  for (const [at, exchange] of hosts.entries())
    service.dns.add({ name: domain, type: "MX", data: { preference: 10 * at, exchange } });
}

test.each([
  ["before", ["mx.own.test", "mta5.am0.yahoodns.net"]],
  ["after", ["mta5.am0.yahoodns.net", "mx.own.test"]],
])("a domain's own host %s a provider's takes its mail while that one rests", async (_, hosts) => {
  service.dns.add({ name: "mx.own.test", type: "A", data: "127.0.0.1" });
  await restingYahoo();
  mixed("both.test", hosts);
  const before = count(second, "MAIL");
  for (const id of await sendTo(people("both.test", 20))) await service.message(id, "delivered");
  expect(first?.messages.items).toHaveLength(20);
  expect(count(second, "MAIL")).toBe(before);
});

test("a domain that lists a dead host before a provider's reaches that one at the provider's pace alone", async () => {
  service.dns.add({ name: "mx.dead.test", type: "A", data: "127.0.0.3" });
  await restingYahoo();
  mixed("both.test", ["mx.dead.test", "mta5.am0.yahoodns.net"]);
  const before = count(second, "MAIL");
  const ids = await sendTo(people("both.test", 20));
  for (const id of ids) await lastEvent(id, "delivery_delayed");
  expect(count(second, "MAIL")).toBe(before);
  second?.set({ MAIL: "250 ok" });
  clock.shift(HOUR_MS);
  for (const id of ids) await service.message(id, "delivered");
  const { body } = await service.call("GET", `/v1/emails/${ids[0]}/attempts`);
  expect(body.data.at(-1)).toMatchObject({ mx: "mta5.am0.yahoodns.net" });
});

test("mail to Google waits while its host offers no TLS, and is never sent in the clear", async () => {
  hosted("google.test", ["aspmx.l.google.com"]);
  const [id = ""] = await sendTo(["ann@google.test"]);
  expect((await lastEvent(id, "delivery_delayed")).diagnostic).toMatch(/TLS/);
  expect(count(first, "MAIL")).toBe(0);
  hosted("other.test", ["mx.other.test"]);
  const [plain = ""] = await sendTo(["ann@other.test"]);
  await service.message(plain, "delivered");
});
