import { afterEach, describe, expect, test } from "bun:test";
import { type ManualClock, manualClock } from "../support/manual-clock.ts";
import { type MxOptions, startMx, type TestMx } from "../support/mx.ts";
import { until } from "../support/poll.ts";
import { startService, type TestService, verifiedDomain } from "../support/service.ts";

const RETRY_MS = 60_000;

let clock: ManualClock;
let relay: TestMx;
let service: TestService;

afterEach(async () => {
  await service.stop();
  relay.stop();
});

async function start(options: MxOptions, credentials = ""): Promise<void> {
  clock = manualClock();
  relay = startMx(options);
  service = await startService(
    {
      DELIVERY: "relay",
      SMTP_RELAY_URL: `smtp://${credentials}127.0.0.1:${relay.port}?insecure=1`,
      DELIVERY_RETRY_SECONDS: String(RETRY_MS / 1000),
      DELIVERY_GIVE_UP_SECONDS: String((4 * RETRY_MS) / 1000),
    },
    clock,
  );
  await verifiedDomain(service, "sender.test");
}

const send = (to: string) => service.send({ from: "news@sender.test", to });

/**
 * The records of both once they are given up. One was offered to the smarthost, the other was only put off with it.
 */
async function givenUp(...ids: string[]) {
  let records: Awaited<ReturnType<TestService["call"]>>["body"][] = [];
  await until(async () => {
    // Never during a try, which would time out: that is another result.
    if (records.every(({ recipients }) => recipients[0].status !== "sending")) clock.advance(RETRY_MS / 4);
    records = await Promise.all(ids.map(async (id) => (await service.call("GET", `/v1/emails/${id}`)).body));
    return records.every(({ status }) => status === "bounced" || status === "failed");
  });
  return records;
}

async function suppressed(): Promise<string[]> {
  const { body } = await service.call("GET", "/v1/suppressions");
  return body.data.map(({ email }: { email: string }) => email).sort();
}

async function counted(): Promise<number> {
  const row = await service.app.db.first<{ bounced: number }>(
    "SELECT COALESCE(SUM(bounced), 0) AS bounced FROM reputation",
  );
  return row?.bounced ?? 0;
}

const BOUNCED = ["bounced", "bounce", { bounce: { type: "soft" } }] as const;
/** The end if the reply says that the recipient is not at fault. */
const CLEARED = ["failed", "failed", { failed: { category: "rate" } }] as const;

const LOGIN = { extensions: ["PIPELINING", "AUTH PLAIN LOGIN"] };

describe("a smarthost that accepts no mail from us", () => {
  const rows: [trouble: string, options: MxOptions | null, credentials?: string][] = [
    ["cannot be reached", null],
    ["refuses our password", { ...LOGIN, answers: { AUTH: "535 5.7.8 no" } }, "u:p@"],
    ["defers at connect", { banner: "421 4.3.2 busy" }],
    ["refuses at connect", { banner: "554 5.7.1 not from there" }],
    ["requires a login that is not configured", { answers: { MAIL: "530 5.7.0 authentication required" } }],
    ["defers the sender", { answers: { MAIL: "451 4.7.1 too much mail from you" } }],
    ["hangs up on content", { answers: { ".": "close" } }],
  ];
  for (const [trouble, options, credentials] of rows)
    test(`and ${trouble} makes messages fail, and blames neither recipients nor sender`, async () => {
      await start(options ?? {}, credentials);
      if (options === null) relay.stop();
      const records = await givenUp(await send("a@one.test"), await send("b@one.test"));
      const [end, event, data] = trouble === "defers the sender" ? CLEARED : BOUNCED;
      for (const { recipients, events } of records) {
        expect(recipients[0]).toMatchObject({ status: end, reason: "retries_exhausted" });
        expect(events.at(-1)).toMatchObject({ type: event, data });
      }
      expect(await suppressed()).toEqual([]);
      expect(await counted()).toBe(0);
    });
});

test("mail waits for a smarthost that refuses us, and is sent once that is repaired", async () => {
  await start({ answers: { EHLO: "550 5.7.1 who are you", HELO: "550 5.7.1 who are you" } });
  const id = await send("a@one.test");
  const waiting = await service.message(id, "delivery_delayed");
  expect(waiting.recipients[0].diagnostic).toBe("the smarthost refuses us: 550 5.7.1 who are you");
  relay.set({ EHLO: "250 relay.test", MAIL: ["530 5.7.0 authentication required", "250 ok"] });
  clock.advance(2 * RETRY_MS);
  // A try counts when it begins. Only once it has ended may time advance, or it would time out.
  await until(async () => {
    const [recipient] = (await service.call("GET", `/v1/emails/${id}`)).body.recipients;
    return recipient.diagnostic?.includes("530 5.7.0") && recipient.status === "delivery_delayed";
  });
  clock.advance(2 * RETRY_MS);
  await service.message(id, "sent");
});

test("a refusal of a single message by a smarthost is that message's outcome", async () => {
  await start({ answers: { MAIL: "550 5.7.1 not from this domain" } });
  await service.message(await send("a@one.test"), "failed");
});

test("a smarthost that defers the recipient gives the recipient's outcome", async () => {
  await start({ answers: { RCPT: "451 4.2.2 mailbox full" } });
  await givenUp(await send("a@one.test"));
  expect(await suppressed()).toEqual(["a@one.test"]);
  expect(await counted()).toBe(1);
});
