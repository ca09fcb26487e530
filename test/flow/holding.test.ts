import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { type ManualClock, manualClock } from "../support/manual-clock.ts";
import { startMx, type TestMx } from "../support/mx.ts";
import { startService, type TestService, verifiedDomain } from "../support/service.ts";

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
/** Time within which a project's mail is sent once its suspension is lifted. */
const HOLD_MS = 2 * MINUTE_MS;
const SWEEP_PAUSE_MS = 1_000;
const POLL_MS = 2;

let clock: ManualClock;
let service: TestService;
let relay: TestMx;

beforeEach(async () => {
  clock = manualClock();
  relay = startMx();
  const url = `smtp://127.0.0.1:${relay.port}`;
  service = await startService({ DELIVERY: "relay", SMTP_RELAY_URL: url }, clock);
  await verifiedDomain(service, "sender.test");
});
afterEach(async () => {
  await service.stop();
  relay.stop();
});

const send = (to: string, more: Record<string, unknown> = {}) =>
  service.send({ from: "news@sender.test", to, ...more });

const inAMinute = () => ({ scheduledAt: new Date(clock.now() + MINUTE_MS).toISOString() });

/** Advances time once the sweep is idle: a running turn would miss the change. */
async function passes(ms: number): Promise<void> {
  await clock.rested(SWEEP_PAUSE_MS);
  clock.advance(ms);
}

async function suspend(): Promise<void> {
  await service.app.db.write([{ sql: "UPDATE senders SET suspended_at = ?", args: [clock.now()] }]);
}

async function lift(): Promise<void> {
  const senders = await service.call("GET", "/v1/senders", undefined, { key: service.accountKey });
  const path = `/v1/senders/${senders.body.data[0].id}`;
  const { status } = await service.call("PATCH", path, { suspendedAt: null }, { key: service.accountKey });
  expect(status).toBe(200);
}

/** The recipient once it is put off. */
async function held(id: string, reason = "sender_suspended") {
  for (;;) {
    const { body } = await service.call("GET", `/v1/emails/${id}`);
    if (body.recipients[0].reason === reason) return body;
    await Bun.sleep(POLL_MS);
  }
}

const types = (record: { events: { type: string }[] }) => record.events.map(({ type }) => type);

describe("mail that waits when its project is suspended", () => {
  test("mail that waits when its project is suspended is held, and sent once the suspension is lifted", async () => {
    const id = await send("a@one.test", inAMinute());
    await suspend();
    await passes(MINUTE_MS);
    const record = await held(id);
    expect(record.recipients[0]).toMatchObject({ status: "queued", attempts: 0 });
    expect(types(record)).toEqual(["accepted", "queued"]);
    await lift();
    await passes(HOLD_MS);
    const sent = await service.message(id, "sent");
    expect(sent.recipients[0]).toMatchObject({ attempts: 1, reason: null });
    expect(types(sent)).toEqual(["accepted", "queued", "sending", "sent"]);
  });

  /** A message that was put off once, of a project that is suspended when its next try is due. */
  async function suspendedBetweenTries(): Promise<string> {
    relay.set({ RCPT: "451 4.3.0 later" });
    const id = await send("a@one.test");
    await service.message(id, "delivery_delayed");
    await suspend();
    relay.set({ RCPT: "250 ok" });
    await passes(2 * MINUTE_MS);
    return id;
  }

  test("mail that waits when its project is suspended is held between two tries too, and that does not count as a try", async () => {
    const id = await suspendedBetweenTries();
    expect((await held(id)).recipients[0]).toMatchObject({ status: "delivery_delayed", attempts: 1 });
    await lift();
    await passes(HOLD_MS);
    expect((await service.message(id, "sent")).recipients[0].attempts).toBe(2);
  });

  test("mail that waits when its project is suspended is rejected if the suspension outlasts the retry period", async () => {
    const id = await send("a@one.test", inAMinute());
    await suspend();
    await passes(MINUTE_MS);
    await held(id);
    await passes(72 * HOUR_MS);
    const record = await service.message(id, "rejected");
    expect(record.events.at(-1)).toMatchObject({
      type: "rejected",
      data: { rejected: { reason: "sender_suspended" } },
    });
    expect(relay.messages.items.length).toBe(0);
  });

  /** Advances time while the message is held. Then the clock is set back, and the suspension is lifted. */
  async function heldWhileAhead(id: string, pass: () => void, aheadMs: number): Promise<void> {
    await held(id);
    await clock.rested(SWEEP_PAUSE_MS);
    pass();
    await passes(HOLD_MS);
    const putOff = () =>
      service.app.db.first("SELECT 1 FROM recipients WHERE message_id = ? AND due_at > ?", [id, clock.now()]);
    while ((await putOff()) === null) await Bun.sleep(POLL_MS);
    clock.step(-aheadMs);
    await passes(2 * SWEEP_PAUSE_MS);
    await lift();
    await passes(HOLD_MS);
    await passes(2 * SWEEP_PAUSE_MS);
    await service.message(id, "sent");
  }

  test("mail that waits when its project is suspended is sent as soon even if the clock was set forward and back in between", async () => {
    const id = await send("a@one.test", inAMinute());
    await suspend();
    await passes(MINUTE_MS);
    await heldWhileAhead(id, () => clock.step(10 * HOUR_MS), 10 * HOUR_MS);
  });

  test.each([
    ["the clock was set forward and back", 10 * HOUR_MS, () => clock.step(10 * HOUR_MS)],
    ["it came while the clock was ahead", 20 * HOUR_MS, () => clock.advance(10 * HOUR_MS)],
  ])(
    "mail that waits when its project is suspended is sent as soon after a try even if %s",
    async (_, aheadMs, pass) => {
      const id = await suspendedBetweenTries();
      await heldWhileAhead(id, pass, aheadMs);
    },
  );
});

describe("mail that waits when its domain falls back to pending", () => {
  /** The effect of failing checks of 72 hours. */
  async function lapse(): Promise<void> {
    await service.app.db.write([{ sql: "UPDATE domains SET status = 'pending'", args: [] }]);
  }

  test("mail that waits when its domain falls back to pending is held, and sent once the domain is verified again", async () => {
    const id = await send("a@one.test", inAMinute());
    await lapse();
    await passes(MINUTE_MS);
    const record = await held(id, "domain_not_verified");
    expect(record.recipients[0]).toMatchObject({ status: "queued", attempts: 0 });
    expect(types(record)).toEqual(["accepted", "queued"]);
    const { body } = await service.call("GET", "/v1/domains");
    const verified = await service.call("POST", `/v1/domains/${body.data[0].id}/verify`);
    expect(verified.body.status).toBe("verified");
    await passes(HOLD_MS);
    const sent = await service.message(id, "sent");
    expect(sent.recipients[0]).toMatchObject({ attempts: 1, reason: null });
    expect(types(sent)).toEqual(["accepted", "queued", "sending", "sent"]);
  });

  test("mail that waits when its domain falls back to pending is rejected if that outlasts the retry period", async () => {
    relay.set({ RCPT: "451 4.3.0 later" });
    const id = await send("a@one.test");
    await service.message(id, "delivery_delayed");
    await lapse();
    await passes(2 * MINUTE_MS);
    expect((await held(id, "domain_not_verified")).recipients[0]).toMatchObject({
      status: "delivery_delayed",
      attempts: 1,
    });
    await passes(72 * HOUR_MS);
    const record = await service.message(id, "rejected");
    expect(record.events.at(-1)).toMatchObject({
      type: "rejected",
      data: { rejected: { reason: "domain_not_verified" } },
    });
    expect(relay.messages.items.length).toBe(0);
  });
});

describe("a recipient that becomes undeliverable while its message waits", () => {
  test.each([
    ["by the block list", "ada@one.test", "suppressed"],
    ["by the block list, under an address beyond ASCII", "ÄDA@one.test", "suppressed"],
    ["by its own unsubscribing", "ada@one.test", "unsubscribed"],
    ["by its own unsubscribing, under an address beyond ASCII", "ÄDA@one.test", "unsubscribed"],
  ])("%s is rejected", async (_, to, reason) => {
    const id = await send(to, { ...inAMinute(), unsubscribeLink: true });
    const email = to.toLowerCase();
    const refused =
      reason === "suppressed"
        ? await service.call("POST", "/v1/suppressions", { email })
        : await service.call("POST", "/v1/contacts", { email, subscribed: false });
    expect(refused.status).toBe(201);
    await passes(MINUTE_MS);
    const record = await service.message(id, "rejected");
    expect(record.recipients[0]).toMatchObject({ status: "rejected", reason });
    expect(record.events.at(-1)).toMatchObject({ type: "rejected", data: { rejected: { reason } } });
    expect(relay.messages.items.length).toBe(0);
  });

  test("a recipient that unsubscribes while a message waits still gets mail without an unsubscribe link", async () => {
    const id = await send("ada@one.test", inAMinute());
    await service.call("POST", "/v1/contacts", { email: "ada@one.test", subscribed: false });
    await passes(MINUTE_MS);
    await service.message(id, "sent");
  });
});
