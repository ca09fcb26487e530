import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { systemClock } from "../../src/clock.ts";
import type { Clock } from "../../src/core/time/clock.ts";
import { type ManualClock, manualClock } from "../support/manual-clock.ts";
import { type MxOptions, startMx, type TestMx } from "../support/mx.ts";
import { startService, type TestService, verifiedDomain } from "../support/service.ts";

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const START_MS = 90_000;

let clock: ManualClock;
const peers: TestMx[] = [];
let service: TestService;
let port: number;
let cases = 0;

/** Starts the service on a clock that stands still, unless the machine's clock is requested. */
async function start(own?: Clock): Promise<void> {
  clock = manualClock();
  // No server listens at its address: it keeps the port for the peers of the cases.
  const keeper = startMx({ ip: "127.0.1.1" });
  peers.push(keeper);
  port = keeper.port;
  service = await startService({ DELIVERY: "mx", SMTP_OUT_PORT: String(port) }, own ?? clock);
  await verifiedDomain(service, "sender.test");
  const url = "http://127.0.0.1:9/hook";
  expect((await service.call("POST", "/v1/webhooks", { url, eventTypes: ["*"] })).status).toBe(201);
}

async function stop(): Promise<void> {
  const stopped = service.stop();
  // A running try at a silent peer ends by its timeout.
  clock.advance(HOUR_MS);
  await stopped;
  for (const peer of peers.splice(0)) peer.stop();
}

/** A new domain for a case, and the server for it. If null, no server listens there. */
function domainFor(options: MxOptions | null): string {
  const ip = `127.0.2.${++cases}`;
  const name = `case${cases}.test`;
  if (options !== null) peers.push(startMx({ ip, port, ...options }));
  service.dns.add({ name, type: "A", data: ip });
  return name;
}

const send = (to: string[]) => service.send({ from: "news@sender.test", to });

interface Counts {
  settled: number;
  bounced: number;
  /** Bounces that are no reason to suspend. */
  excused: number;
}

/** Figures of the test's project. Mail of the service itself, such as a notice, is in a hidden one. */
async function reputation(): Promise<Counts> {
  const row = await service.app.db.first<Counts>(
    "SELECT COALESCE(SUM(settled), 0) AS settled, COALESCE(SUM(bounced), 0) AS bounced, COALESCE(SUM(excused), 0) AS excused FROM reputation WHERE sender_id IN (SELECT id FROM senders WHERE external_id = 'default')",
  );
  return row ?? { settled: 0, bounced: 0, excused: 0 };
}

/** The suppression of an address: its bounce type and its duration in days, or null if there is none. */
async function suppression(email: string) {
  const row = await service.app.db.first<{
    bounce_type: string;
    expires_at: number | null;
    created_at: number;
  }>("SELECT bounce_type, expires_at, created_at FROM suppressions WHERE email = ? AND reason = 'bounce'", [
    email,
  ]);
  if (row === null) return null;
  const days = row.expires_at === null ? null : (row.expires_at - row.created_at) / DAY_MS;
  return { type: row.bounce_type, days };
}

const HARD = { type: "hard", days: null };
const SOFT = { type: "soft", days: 7 };

/** Types of a message's events and of its webhook deliveries, each in order. */
async function tellings(id: string): Promise<{ events: string[]; pushes: string[] }> {
  const ofRows = (rows: { type: string }[]) => rows.map(({ type }) => type);
  const { db } = service.app;
  return {
    events: ofRows(await db.all("SELECT type FROM events WHERE message_id = ? ORDER BY id", [id])),
    pushes: ofRows(
      await db.all("SELECT type FROM webhook_deliveries WHERE message_id = ? ORDER BY event_id", [id]),
    ),
  };
}

type End = "delivered" | "delivery_delayed" | "bounced" | "failed";

const WHY = ["category", "smtpCode", "enhancedCode", "diagnostic", "mx"];

/** The effects of each end: its event with at least these details, and its part of the sender's counts. */
const ENDS: Readonly<Record<End, { event: string; details: string[]; counts: Omit<Counts, "excused"> }>> = {
  delivered: {
    event: "delivery",
    details: ["mx", "tls", "smtpCode", "response"],
    counts: { settled: 1, bounced: 0 },
  },
  delivery_delayed: {
    event: "delivery_delayed",
    details: [...WHY, "attempt", "nextAttemptAt"],
    counts: { settled: 0, bounced: 0 },
  },
  bounced: { event: "bounce", details: [...WHY, "type"], counts: { settled: 1, bounced: 1 } },
  failed: { event: "failed", details: [...WHY, "reason"], counts: { settled: 1, bounced: 0 } },
};

interface Case {
  peer: MxOptions | null;
  end: End;
  data: Record<string, unknown>;
  suppressed?: typeof HARD | typeof SOFT;
}

const answering = (verb: string, answer: string): MxOptions => ({ answers: { [verb]: answer } });
const delayed = (smtpCode: number | null, enhancedCode: string | null): Pick<Case, "end" | "data"> => ({
  end: "delivery_delayed",
  data: { attempt: 1, smtpCode, enhancedCode },
});
const failed = (smtpCode: number, enhancedCode: string | null): Pick<Case, "end" | "data"> => ({
  end: "failed",
  data: { smtpCode, enhancedCode },
});
const bounced = (type: "hard" | "soft", smtpCode: number, enhancedCode: string | null) => ({
  end: "bounced" as const,
  data: { type, smtpCode, enhancedCode },
  suppressed: type === "hard" ? HARD : SOFT,
});

const TABLE: [string, Case][] = [
  [
    "the MX takes it",
    {
      peer: answering(".", "250 2.0.0 taken"),
      end: "delivered",
      data: { tls: null, smtpCode: 250, response: "250 2.0.0 taken" },
    },
  ],
  ["421 in the greeting", { peer: { banner: "421 4.3.2 busy" }, ...delayed(421, "4.3.2") }],
  ["450 to EHLO", { peer: answering("EHLO", "450 later"), ...delayed(450, null) }],
  ["451 to MAIL", { peer: answering("MAIL", "451 4.7.1 slow down"), ...delayed(451, "4.7.1") }],
  ["450 to RCPT", { peer: answering("RCPT", "450 4.2.1 greylisted"), ...delayed(450, "4.2.1") }],
  [
    "452 with a full mailbox to RCPT",
    { peer: answering("RCPT", "452 4.2.2 full"), ...delayed(452, "4.2.2") },
  ],
  ["451 to DATA", { peer: answering("DATA", "451 4.3.0 later"), ...delayed(451, "4.3.0") }],
  ["452 to the message", { peer: answering(".", "452 4.3.1 no space"), ...delayed(452, "4.3.1") }],
  ["554 in the greeting", { peer: { banner: "554 no service for you" }, ...failed(554, null) }],
  ["550 to MAIL", { peer: answering("MAIL", "550 not from you"), ...failed(550, null) }],
  ["a bare 550 to RCPT", { peer: answering("RCPT", "550 no"), ...bounced("hard", 550, null) }],
  ["550 5.1.1 to RCPT", { peer: answering("RCPT", "550 5.1.1 no"), ...bounced("hard", 550, "5.1.1") }],
  ["552 5.2.2 to RCPT", { peer: answering("RCPT", "552 5.2.2 full"), ...bounced("soft", 552, "5.2.2") }],
  ["550 5.7.1 to RCPT", { peer: answering("RCPT", "550 5.7.1 blocked"), ...failed(550, "5.7.1") }],
  ["554 to DATA", { peer: answering("DATA", "554 no"), ...failed(554, null) }],
  ["550 5.1.1 to the message", { peer: answering(".", "550 5.1.1 no"), ...bounced("hard", 550, "5.1.1") }],
  ["552 5.2.2 to the message", { peer: answering(".", "552 5.2.2 full"), ...bounced("soft", 552, "5.2.2") }],
  ["a bare 554 to the message", { peer: answering(".", "554 no"), ...failed(554, null) }],
  ["554 5.6.0 to the message", { peer: answering(".", "554 5.6.0 odd"), ...failed(554, "5.6.0") }],
  [
    "a SIZE that is smaller than the message",
    {
      peer: { extensions: ["SIZE 10"] },
      end: "failed",
      data: { category: "content", enhancedCode: "5.3.4" },
    },
  ],
  ["hanging up at EHLO", { peer: answering("EHLO", "close"), ...delayed(null, null) }],
  ["hanging up at MAIL", { peer: answering("MAIL", "close"), ...delayed(null, null) }],
  ["hanging up after the message", { peer: answering(".", "close"), ...delayed(null, null) }],
  ["nobody there", { peer: null, ...delayed(null, null) }],
];

/** The details of a record's only event of the type. */
function detailsOf(
  record: { events: { type: string; email: string; data: Record<string, unknown> }[] },
  type: string,
) {
  const found = record.events.filter((event) => event.type === type);
  expect(found.length).toBe(1);
  return Object(found[0]?.data[type]);
}

/** Sends one message and checks its effects against its case. */
async function check(to: string, wanted: Omit<Case, "peer">, during = async () => {}): Promise<void> {
  const before = await reputation();
  const id = await send([to]);
  await during();
  const { end, data, suppressed = null } = wanted;
  const { event, details, counts } = ENDS[end];
  const record = await service.message(id, end);
  const told = detailsOf(record, event);
  expect(told).toMatchObject(data);
  expect(Object.keys(told)).toEqual(expect.arrayContaining(details));
  const shown = ["smtpCode", "enhancedCode"].filter((name) => Object.hasOwn(data, name));
  for (const name of shown) expect(record.recipients[0][name]).toBe(data[name]);
  expect(record.recipients[0]).toMatchObject({ email: to, status: end, attempts: 1 });
  const expected = ["accepted", "queued", "sending", event];
  expect(await tellings(id)).toEqual({ events: expected, pushes: expected });
  expect(await suppression(to)).toEqual(suppressed);
  const after = await reputation();
  expect({
    settled: after.settled - before.settled,
    bounced: after.bounced - before.bounced,
    excused: after.excused - before.excused,
  }).toEqual({ ...counts, excused: suppressed === SOFT ? 1 : 0 });
}

describe("an attempt that ends in", () => {
  beforeAll(() => start(), START_MS);
  afterAll(stop);

  test.each(TABLE)("%s has its documented effects", async (_, { peer, ...wanted }) => {
    await check(`a@${domainFor(peer)}`, wanted);
  });

  test.each([
    ["EHLO", 1],
    ["MAIL", 2],
    ["RCPT", 3],
    ["DATA", 4],
    [".", 5],
  ])("silence after %s is retried", async (verb, commands) => {
    const domain = domainFor({ ...answering(verb, "silent"), extensions: [] });
    const peer = peers.at(-1);
    await check(`a@${domain}`, delayed(null, null), async () => {
      await peer?.commands.reached(commands);
      clock.advance(HOUR_MS);
    });
  });

  test.each([
    [
      "a domain that does not exist",
      "nowhere.test",
      { end: "bounced", data: { type: "hard" }, suppressed: HARD },
    ],
    ["a null MX", "null.test", { end: "bounced", data: { type: "hard" }, suppressed: HARD }],
    ["a name server in trouble", "broken.test", delayed(null, null)],
  ] as [string, string, Omit<Case, "peer">][])(
    "%s leaves what it means behind",
    async (_, domain, wanted) => {
      service.dns.add({ name: "null.test", type: "MX", data: { preference: 0, exchange: "." } });
      service.dns.behave("servfail", "broken.test");
      await check(`a@${domain}`, wanted);
    },
  );
});

describe("a recipient that is deferred again and again", () => {
  beforeAll(() => start(), START_MS);
  afterAll(stop);

  /**
   * RFC 5321 §4.5.4.1 suggests giving up after four to five days at the earliest. These delays are the service's
   * own, in minutes.
   */
  const DELAYS_MIN = [1, 5, 15, 30, 60, 120, 240, 360];
  const GIVE_UP_MS = 72 * HOUR_MS;
  const JITTER = 0.2;

  test("a recipient that is deferred again and again is retried by the schedule, announced each time, and given up after 72 hours as a soft bounce", async () => {
    const to = `full@${domainFor(answering("RCPT", "452 4.2.2 full"))}`;
    const before = await reputation();
    const began = clock.now();
    const id = await send([to]);
    for (let attempt = 1; ; attempt++) {
      const record = await settled(id, attempt);
      const at = clock.now();
      if (record.status === "bounced") break;
      const last = record.events.at(-1);
      const { nextAttemptAt, ...details } = last.data.delivery_delayed;
      expect(details).toMatchObject({
        attempt,
        category: "mailbox-full",
        smtpCode: 452,
        enhancedCode: "4.2.2",
      });
      const delay = Date.parse(nextAttemptAt) - Date.parse(last.createdAt);
      const wanted = (DELAYS_MIN[attempt - 1] ?? 360) * 60_000;
      expect(Math.abs(delay - wanted)).toBeLessThanOrEqual(JITTER * wanted);
      // Not a moment before. The sweep runs every second.
      clock.advance(Date.parse(nextAttemptAt) - 2000 - at);
      await turns();
      expect((await service.call("GET", `/v1/emails/${id}`)).body.recipients[0].attempts).toBe(attempt);
      clock.advance(2000);
    }
    const record = await service.message(id, "bounced");
    const { attempts } = record.recipients[0];
    expect(record.events.at(-1).data.bounce).toMatchObject({
      type: "soft",
      reason: "retries_exhausted",
      smtpCode: 452,
      enhancedCode: "4.2.2",
    });
    const events = await tellings(id);
    expect(events.events.filter((type) => type === "sending").length).toBe(attempts);
    expect(events.events.filter((type) => type === "delivery_delayed").length).toBe(attempts - 1);
    expect(events.pushes).toEqual(events.events);
    expect(Date.parse(record.events.at(-1).createdAt) - began).toBeGreaterThanOrEqual(GIVE_UP_MS);
    expect(await suppression(to)).toEqual(SOFT);
    const after = await reputation();
    expect(after.bounced - before.bounced).toBe(1);
  });

  /** The record once the attempt of that number has been settled. */
  async function settled(id: string, attempt: number) {
    for (;;) {
      const { body } = await service.call("GET", `/v1/emails/${id}`);
      const [recipient] = body.recipients;
      if (recipient.attempts === attempt && recipient.status !== "sending") return body;
      // The sweep's timer is set again only when its turn is over. If time advanced in the middle of a try, the try
      // would time out.
      if (recipient.status !== "sending") clock.advance(1000);
      await turns();
    }
  }

  /** Lets running work continue. */
  async function turns(): Promise<void> {
    for (let turn = 0; turn < 50; turn++) await new Promise((resolve) => setImmediate(resolve));
  }
});

describe("several recipients", () => {
  // The pace of one destination needs time that advances.
  beforeAll(() => start(systemClock), START_MS);
  afterAll(stop);

  test("recipients of one message each have their own end, and the message shows the worst", async () => {
    const answers: Record<string, string> = {
      good: "250 ok",
      unknown: "550 5.1.1 no",
      policy: "550 5.7.1 no",
    };
    const domain = domainFor({
      answers: { RCPT: (line) => answers[/<(\w+)@/.exec(line)?.[1] ?? ""] ?? "451 4.3.0 later" },
    });
    const addresses = Object.keys(answers).map((name) => `${name}@${domain}`);
    const id = await send(addresses);
    const record = await service.message(id, "bounced");
    expect(record.recipients.map(({ status }: { status: string }) => status)).toEqual([
      "delivered",
      "bounced",
      "failed",
    ]);
    for (const [at, type] of ["delivery", "bounce", "failed"].entries()) {
      const found = record.events.filter((event: { type: string }) => event.type === type);
      expect(found.map(({ email }: { email: string }) => email)).toEqual([addresses[at] ?? ""]);
    }
    const moving = await send([`good@${domain}`, `later@${domain}`]);
    const still = await service.message(moving, "delivery_delayed");
    expect(still.recipients.map(({ status }: { status: string }) => status)).toEqual([
      "delivered",
      "delivery_delayed",
    ]);
  });
});

test("a smarthost's 250 means sent, and its refusals have the same effects as at an MX", async () => {
  const relay = startMx({
    answers: { RCPT: (line) => (line.includes("no@") ? "550 5.1.1 no" : "250 ok"), ".": "250 2.0.0 queued" },
  });
  peers.push(relay);
  const relayed = await startService({
    DELIVERY: "relay",
    SMTP_RELAY_URL: `smtp://127.0.0.1:${relay.port}`,
  });
  try {
    await verifiedDomain(relayed, "sender.test");
    const { body } = await relayed.call("POST", "/v1/emails", {
      from: { email: "news@sender.test" },
      to: [{ email: "yes@one.test" }, { email: "no@one.test" }],
      subject: "Hi",
      text: "x",
    });
    const record = await relayed.message(body.id, "bounced");
    expect(record.recipients.map(({ status }: { status: string }) => status)).toEqual(["sent", "bounced"]);
    expect(detailsOf(record, "sent")).toMatchObject({
      mx: "127.0.0.1",
      smtpCode: 250,
      response: "250 2.0.0 queued",
    });
    expect(detailsOf(record, "bounce")).toMatchObject({ type: "hard", smtpCode: 550 });
  } finally {
    await relayed.stop();
  }
});

describe("a recipient whose message fails through our fault", () => {
  beforeAll(() => start(), START_MS);
  afterAll(stop);

  test("a recipient whose message fails through our fault is retried, and when it is given up no address is suppressed and nothing counted", async () => {
    await service.app.db.write([{ sql: "UPDATE dkim_keys SET private_key = 'unreadable'", args: [] }]);
    const to = `a@${domainFor({})}`;
    const id = await send([to]);
    await service.message(id, "delivery_delayed");
    clock.advance(73 * HOUR_MS);
    const { recipients } = await service.message(id, "bounced");
    expect(recipients[0]).toMatchObject({ reason: "retries_exhausted", attempts: 2 });
    expect(await suppression(to)).toBeNull();
    expect(await reputation()).toEqual({ settled: 0, bounced: 0, excused: 0 });
  });
});
