import { afterAll, beforeAll, expect, test } from "bun:test";
import { countOutcome } from "../../src/flows/deliver/reputation.ts";
import { createHitRecorder } from "../../src/flows/deliver/track.ts";
import { openMemoryQueue } from "../../src/queue/memory.ts";
import { noonClock } from "../support/noon-clock.ts";
import { receivingInboxes, SERVICE_DOMAIN, startService, type TestService } from "../support/service.ts";
import { limitsOf } from "../../src/flows/deliver/reputation.ts";

const DAY_MS = 86_400_000;
/** The statistics of a day, which several tests use. */
const clock = noonClock();
let service: TestService;
let inboxId: string;

beforeAll(async () => {
  service = await startService({ DELIVERY_RETRY_SECONDS: "0" }, clock);
  [inboxId = ""] = await receivingInboxes(service, "sender.test", ["box@sender.test"]);
});
afterAll(() => service.stop());

const simulated = (name: string) => `${name}@simulator.${SERVICE_DOMAIN}`;

const send = (...to: string[]) => service.send({ from: "news@sender.test", to });

async function stats(query = "") {
  const { status, body } = await service.call("GET", `/v1/stats${query}`);
  expect(status).toBe(200);
  return body;
}

/** The event that each figure counts. */
const EVENTS: Readonly<Record<string, string>> = {
  accepted: "accepted",
  sent: "sent",
  delivered: "delivery",
  delayed: "delivery_delayed",
  bounced: "bounce",
  complained: "complaint",
  rejected: "rejected",
  failed: "failed",
};

test("the figures equal the counts of the records' events, and simulated outcomes do not count in the rates", async () => {
  await service.call("POST", "/v1/suppressions", { email: "blocked@one.test" });
  const sent: [id: string, status: string][] = [
    [await send("a@one.test", "b@one.test", "a@two.test", "blocked@one.test"), "rejected"],
    [await send(simulated("bounced")), "bounced"],
    [await send(simulated("complained")), "complained"],
    [await send(simulated("delayed")), "delivered"],
    [await send(simulated("rejected")), "rejected"],
  ];
  const events: string[] = [];
  for (const [id, status] of sent)
    events.push(...(await service.message(id, status)).events.map(({ type }: { type: string }) => type));
  const { data, totals, rates, byDestination } = await stats();
  for (const [figure, type] of Object.entries(EVENTS))
    expect([figure, totals[figure]]).toEqual([figure, events.filter((event) => event === type).length]);
  expect(totals).toMatchObject({
    accepted: 8,
    delivered: 5,
    delayed: 1,
    bounced: 1,
    complained: 1,
    rejected: 2,
  });
  expect(rates).toEqual({ bounce: 0, complaint: 0 });
  expect(data).toHaveLength(7);
  expect(data[6]).toMatchObject(totals);
  expect(data[5]).toMatchObject({ accepted: 0, delivered: 0 });
  expect(data[6].at).toBe(new Date(Math.floor(clock.now() / DAY_MS) * DAY_MS).toISOString());
  expect(byDestination).toMatchObject([
    { domain: `simulator.${SERVICE_DOMAIN}`, delivered: 2, delayed: 1, bounced: 1 },
    { domain: "one.test", delivered: 2, delayed: 0, bounced: 0 },
    { domain: "two.test", delivered: 1, delayed: 0, bounced: 0 },
  ]);
  for (const { medianSeconds } of byDestination) expect(medianSeconds).toBeWithin(0.001, 10);
});

test("rates are computed from recipients whose outcome is known, each once", async () => {
  const { app } = service;
  const before = await service.app.db.first<{ settled: number }>("SELECT settled FROM stats");
  expect(before?.settled).toBe(3);
  const id = await send("back@one.test");
  await service.message(id, "delivered");
  // The event of a report that comes later.
  const senderId = (await service.message(id, "delivered")).senderId;
  const recipient = { senderId, status: "delivered" } as const;
  const guard = { sql: "1 = 1", args: [] };
  await app.db.write(
    countOutcome(
      { recipient, status: "bounced", mx: null, uncounted: false, guard },
      limitsOf(5),
      clock.now(),
    ),
  );
  expect((await stats()).rates).toEqual({ bounce: 0.25, complaint: 0 });
});

test("complaints are shown by provider, with a warning from 0.1 % and 0.3 %, and no verdict on a few messages", async () => {
  const { senderId } = await service.message(await send("ann@one.test"), "delivered");
  const day = Math.floor(clock.now() / DAY_MS);
  const rows = [
    ["google", 2000, 1, "good"],
    ["yahoo", 1000, 1, "warn"],
    ["outlook", 900, 3, "bad"],
    ["apple", 499, 5, null],
  ] as const;
  const { db } = service.app;
  for (const [provider, delivered] of rows)
    await db.write([
      {
        sql: "INSERT INTO stats_providers (sender_id, day, provider, delivered) VALUES (?, ?, ?, ?)",
        args: [senderId, day, provider, delivered],
      },
    ]);
  const hosts = {
    google: "aspmx.l.google.com",
    yahoo: "mta5.am0.yahoodns.net",
    apple: "mx01.mail.icloud.com",
  };
  const guard = { sql: "1 = 1", args: [] };
  for (const [provider, , complaints] of rows) {
    const mx = { ...hosts, outlook: "outlook-com.olc.protection.outlook.com" }[provider];
    const outcome = { status: "complained", mx, uncounted: false, guard } as const;
    // The recipient counts in the rates already, so these counts leave them as they are.
    for (let nth = 0; nth < complaints; nth++)
      await db.write(
        countOutcome({ recipient: { senderId, status: "complained" }, ...outcome }, limitsOf(5), clock.now()),
      );
  }
  const { byProvider } = await stats();
  const shown = byProvider.map((row: Record<string, unknown>) => [
    row.provider,
    row.delivered,
    row.complained,
    row.standing,
  ]);
  expect(shown).toEqual(rows.map((row) => [...row]));
  expect(byProvider[1]).toMatchObject({ title: "Yahoo", complaintRate: 0.001 });
});

test("a recipient's open and click count once, however often they happen, and those of machines do not", async () => {
  const id = await send("reader@one.test", "other@one.test");
  await service.message(id, "delivered");
  const record = createHitRecorder({
    db: service.app.db,
    clock,
    publicUrl: "http://x.test",
    trackingKey: new Uint8Array(32),
    queue: openMemoryQueue({ clock, log: { info: () => undefined, warn: () => undefined } }),
  });
  // A moment ago is too early for a person, because a scanner visits at once.
  const read = {
    sql: "UPDATE recipients SET last_event_at = last_event_at - 3600000 WHERE message_id = ?",
    args: [id],
  };
  await service.app.db.write([read]);
  const person = {
    method: "GET",
    ip: "192.0.2.1",
    userAgent: "Mozilla/5.0 (X11; Linux x86_64) Thunderbird/128.0",
    purpose: null,
  };
  const machine = { ...person, userAgent: "GoogleImageProxy" };
  const hit = (ord: number, url: string | null, visit: typeof person) =>
    record({ recipient: { messageId: id, ord }, url, visit });
  await hit(0, null, machine);
  for (let times = 0; times < 3; times++) await hit(0, null, person);
  for (let times = 0; times < 2; times++) await hit(0, "https://a.test/", person);
  await hit(1, null, machine);
  await hit(1, null, person);
  const { totals } = await stats();
  const { events } = (await service.call("GET", `/v1/emails/${id}`)).body;
  expect(events.filter(({ type }: { type: string }) => type === "open")).toHaveLength(6);
  expect(totals).toMatchObject({ opened: 2, clicked: 1 });
});

test("received mail counts, and figures outlive the messages", async () => {
  for (let times = 0; times < 2; times++)
    expect((await service.call("POST", "/v1/inbound/simulate", { inboxId, text: "x" })).status).toBe(202);
  const before = await stats();
  expect(before.totals.received).toBe(2);
  await service.app.db.write([
    { sql: "DELETE FROM threads", args: [] },
    { sql: "DELETE FROM messages", args: [] },
  ]);
  expect((await service.call("GET", "/v1/emails")).body.data).toEqual([]);
  expect(await stats()).toEqual(before);
});

test("a range by the hour has its hours", async () => {
  const to = new Date(Math.ceil(clock.now() / 3_600_000) * 3_600_000);
  const from = new Date(to.getTime() - 24 * 3_600_000);
  const { data, totals } = await stats(`?interval=hour&from=${from.toISOString()}&to=${to.toISOString()}`);
  expect(data).toHaveLength(24);
  expect(data[0].at).toBe(from.toISOString());
  expect(totals).toEqual((await stats()).totals);
  expect((await stats("?interval=hour")).data).toHaveLength(168);
});

test("a day includes all of it, at either end of a range", async () => {
  const { data } = await stats("?from=2026-01-01&to=2026-01-03");
  expect(data.map(({ at }: { at: string }) => at.slice(0, 10))).toEqual([
    "2026-01-01",
    "2026-01-02",
    "2026-01-03",
  ]);
});

test.each([
  ["from=yesterday", 422, "from"],
  ["to=2026-02-30", 422, "to"],
  ["to=2026-02-30T00:00:00Z", 422, "to"],
  ["from=2026-01-01&to=2026-01-01", 200, null],
  ["to=0000-01-01T00:00:00Z", 422, "from"],
  ["to=0000-01-02T00:00:00%2B24:00", 422, "to"],
  ["from=0000-01-01T00:00:00%2B00:01&to=0000-01-02", 422, "from"],
  ["from=0000-01-01&to=0000-01-01", 200, null],
  ["from=9999-12-31&to=9999-12-31", 200, null],
  ["from=9999-12-31T00:00:00Z&to=9999-12-31T23:59:59.999-00:01", 422, "to"],
  ["from=2026-01-02&to=2026-01-01", 422, "from"],
  ["interval=week", 422, "interval"],
  ["from=2026-01-02T00:00:00Z&to=2026-01-02T00:00:00Z", 422, "from"],
  ["interval=hour&from=2026-01-01T00:00:00Z&to=2026-02-01T00:00:00.001Z", 422, "from"],
  ["interval=hour&from=2026-01-01T00:00:00Z&to=2026-02-01T00:00:00Z", 200, null],
  ["from=2024-01-01T00:00:00Z&to=2025-01-01T00:00:00.001Z", 422, "from"],
  ["from=2024-01-01T00:00:00Z&to=2025-01-01T00:00:00Z", 200, null],
])("a range of %s is answered %i", async (query, status, param) => {
  const answer = await service.call("GET", `/v1/stats?${query}`);
  expect([answer.status, answer.body.error?.param ?? null]).toEqual([status, param]);
  for (const { at } of answer.body.data ?? []) expect(at).toMatch(/^\d{4}-/);
});
