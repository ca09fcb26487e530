import { afterEach, expect, test } from "bun:test";
import { newId } from "../../src/core/ids.ts";
import { BEAT_MS, Heartbeat, LEASE_MS } from "../../src/flows/sweep/instance.ts";
import { type Instance, insertInstance } from "../../src/store/instances.ts";
import { manualClock } from "../support/manual-clock.ts";
import { startMx } from "../support/mx.ts";
import { startService, verifiedDomain } from "../support/service.ts";

const stops: (() => unknown)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0).reverse()) await stop();
});

test("a 250 that comes after the lease was lost counts where nobody else has taken the mail up", async () => {
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
  await verifiedDomain(service, "sender.test");
  service.dns.add({ name: "one.test", type: "A", data: "127.0.0.1" });
  const { body } = await service.call("POST", "/v1/emails", {
    from: { email: "news@sender.test" },
    to: [{ email: "a@one.test" }],
    subject: "Hi",
    text: "x",
  });
  await handed.promise;
  // Another process sees no heartbeat of ours for the lease: we, or the machine, stood still.
  const clock = manualClock();
  const other: Instance = { id: newId("ins", 1), host: "other", pid: 1, heartbeatAt: clock.now() };
  const { db } = service.app;
  await db.write([insertInstance(other)]);
  const heartbeat = new Heartbeat({ db, clock }, other);
  for (let beat = 0; beat < LEASE_MS / BEAT_MS + 2; beat++) await heartbeat.turn();
  answer.resolve("250 2.0.0 taken");
  const record = await service.message(body.id, "delivered");
  expect(mx.messages.items).toHaveLength(1);
  expect(record.recipients[0].attempts).toBe(1);
});
