import { afterEach, describe, expect, test } from "bun:test";
import { newId } from "../../src/core/ids.ts";
import { BEAT_MS, Heartbeat, LEASE_MS } from "../../src/flows/sweep/instance.ts";
import { type Instance, insertInstance, listInstances } from "../../src/store/installation/instances.ts";
import { claimRecipient } from "../../src/store/messages/outbox.ts";
import { findRecipient, waitingRecipient } from "../../src/store/messages/recipients.ts";
import { startSink } from "../support/https-sink.ts";
import { manualClock } from "../support/manual-clock.ts";
import { type MxOptions, startMx } from "../support/mx.ts";
import { until } from "../support/poll.ts";
import { startService, type TestService, verifiedDomain } from "../support/service.ts";
import { shiftedClock } from "../support/shifted-clock.ts";

const stops: (() => unknown)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0).reverse()) await stop();
});

/** Sends a message to one.test, which is this machine, and returns its id. */
async function posted(service: TestService): Promise<string> {
  await verifiedDomain(service, "sender.test");
  service.dns.add({ name: "one.test", type: "A", data: "127.0.0.1" });
  const { body } = await service.call("POST", "/v1/emails", {
    from: { email: "news@sender.test" },
    to: [{ email: "a@one.test" }],
    subject: "Hi",
    text: "x",
  });
  return body.id;
}

test("a 250 that comes after the lease was lost counts if no other process has claimed the message", async () => {
  const answer = Promise.withResolvers<string>();
  const handed = Promise.withResolvers<void>();
  const mx = startMx({
    answers: {
      ".": [
        () => {
          handed.resolve();
          return answer.promise;
        },
        "250 again",
      ],
    },
  });
  const service = await startService({ DELIVERY: "mx", SMTP_OUT_PORT: String(mx.port) });
  stops.push(mx.stop, () => service.stop());
  const id = await posted(service);
  await handed.promise;
  await takenForDead(service);
  answer.resolve("250 2.0.0 taken");
  const record = await service.message(id, "delivered");
  expect(mx.messages.items).toHaveLength(1);
  expect(record.recipients[0].attempts).toBe(1);
});

test("a 2xx of an endpoint that comes after the lease was lost counts if no other process has claimed the push", async () => {
  const answer = Promise.withResolvers<Response>();
  const sink = startSink();
  sink.answer(() => answer.promise, 200);
  const service = await startService({ WEBHOOK_RETRY_SECONDS: "0,0.02,0.02" });
  stops.push(sink.stop, () => service.stop());
  const { body: webhook } = await service.call("POST", "/v1/webhooks", {
    url: sink.url,
    eventTypes: ["delivery"],
  });
  await service.call("POST", `/v1/webhooks/${webhook.id}/test`, {});
  await sink.requests.reached(1);
  await takenForDead(service);
  answer.resolve(new Response());
  const log = async () => (await service.call("GET", `/v1/webhooks/${webhook.id}/deliveries`)).body.data[0];
  await until(async () => (await log()).status === "succeeded");
  expect(await log()).toMatchObject({ attempts: 1 });
  expect(sink.requests.items).toHaveLength(1);
});

describe("a process that wakes after its lease with a message that another process has claimed", () => {
  let clock: ReturnType<typeof shiftedClock>;
  let service: TestService;
  const LAST = "c@one.test";

  /**
   * Sends a message that the peer holds at a command, until we were declared dead and another process has claimed
   * it.
   */
  async function wokenAt(held: "EHLO" | "RCPT") {
    const answer = Promise.withResolvers<string>();
    const handed = Promise.withResolvers<void>();
    const hold = () => {
      handed.resolve();
      return answer.promise;
    };
    const answers: MxOptions["answers"] = { [held]: [hold, "250 ok"] };
    const mx = startMx({ extensions: [], answers });
    clock = shiftedClock();
    const settings = { DELIVERY: "mx", SMTP_OUT_PORT: String(mx.port), DESTINATION_CONNECTIONS: "1" };
    service = await startService(settings, clock);
    stops.push(mx.stop, () => service.stop());
    const id = await posted(service);
    await handed.promise;
    const { db } = service.app;
    const own = await listInstances(db);
    clock.shift(LEASE_MS + BEAT_MS);
    const other = await takenForDead(service);
    const now = clock.now();
    const waiting = await waitingRecipient(db, id, 0, now);
    if (waiting === null) throw new Error("nobody waits");
    // Its next heartbeat registers it again.
    await db.write([claimRecipient(waiting.recipient, other.id, now), ...own.map(insertInstance)]);
    answer.resolve("250 ok");
    return { mx, id };
  }

  test.each(["EHLO", "RCPT"] as const)(
    "a process that wakes after its lease with a message that another process has claimed does not send it, if it was at %s",
    async (held) => {
      const { mx, id } = await wokenAt(held);
      // Later mail is sent as usual.
      await service.call("POST", "/v1/emails", {
        from: { email: "news@sender.test" },
        to: [{ email: LAST }],
        subject: "Hi",
        text: "x",
      });
      await mx.messages.reached(1);
      expect(mx.messages.items.map(({ rcptTo }) => rcptTo)).toEqual([[LAST]]);
      const record = (await service.call("GET", `/v1/emails/${id}`)).body;
      expect(record.events.map(({ type }: { type: string }) => type)).not.toContain("delivery_delayed");
      expect(await findRecipient(service.app.db, id, 0)).toMatchObject({ status: "sending", attempts: 2 });
    },
  );
});

/** Another process sees no heartbeat of ours for the lease: our process, or the machine, stood still. */
async function takenForDead(service: TestService): Promise<Instance> {
  const clock = manualClock();
  const other: Instance = {
    id: newId("ins", 1),
    host: "other",
    pid: 1,
    heartbeatAt: clock.now(),
    masterKeys: "",
  };
  const { db } = service.app;
  await db.write([insertInstance(other)]);
  const heartbeat = new Heartbeat({ db, clock }, other);
  for (let beat = 0; beat < LEASE_MS / BEAT_MS + 2; beat++) await heartbeat.turn();
  return other;
}
