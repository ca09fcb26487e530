import { afterEach, expect, test } from "bun:test";
import { Dispatch } from "../../src/flows/dispatch/dispatch.ts";
import { mxRoutes } from "../../src/flows/deliver/deliver.ts";
import { type DeliveryReport, HANG_MS } from "../../src/flows/deliver/outcome.ts";
import { log } from "../../src/log.ts";
import { parseTransmitLane, transmitLane } from "../../src/queue/hint.ts";
import { createPool } from "../../src/smtp/client/pool.ts";
import { manualClock } from "../support/manual-clock.ts";
import { testLanes } from "../support/lanes.ts";
import { startMx } from "../support/mx.ts";

const stops: (() => unknown)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0).reverse()) await stop();
});

const laneOf = (domain: string) => transmitLane({ senderId: "snd_1", domain, bulk: false });

test("a message that its peer has completely is not aborted to make room, because it would be sent twice", async () => {
  const scanned = Promise.withResolvers<string>();
  const scanning = Promise.withResolvers<void>();
  // The peer examines each message for a little over ten seconds before its 250 (RFC 5321 §4.5.3.2.6: 10 min).
  const mx = startMx({
    answers: {
      ".": () => {
        scanning.resolve();
        return scanned.promise;
      },
    },
  });
  const clock = manualClock();
  const pool = createPool({ clock, log: log("smtp") }, { maxConnectionsPerDestination: 5 });
  stops.push(
    mx.stop,
    () => pool.close(0),
    () => scanned.resolve("250 ok"),
  );
  const hosts = (name: string) => [{ name, preference: 0, addresses: [mx.ip] }];
  const findDeliveryRoute = mxRoutes({
    pool,
    lanes: testLanes(clock),
    route: async (domain) => ({ kind: "hosts", hosts: hosts(domain) }),
    secure: async (domain) => ({ kind: "hosts", hosts: hosts(domain) }),
    port: mx.port,
    ehloName: "us.test",
    clock,
  });
  const done = Promise.withResolvers<DeliveryReport>();
  const dispatch = new Dispatch(
    {
      clock,
      findDeliveryRoute,
      pace: null,
      restMs: 30_000,
      transmit: async ({ key, lane }, handover) => {
        const { domain } = parseTransmitLane(lane);
        const raw = Buffer.from(`Subject: ${key}\r\n\r\nx\r\n`);
        const report = await handover.deliver({
          mailFrom: "b@us.test",
          rcptTo: `a@${domain}`,
          domain,
          raw,
          smtpUtf8: false,
        });
        if (key === "first") done.resolve(report);
        return null;
      },
    },
    // One message uses the whole limit; in production it takes 4000 messages or 128 MiB, which are five of 25 MiB.
    {
      perConnection: 4,
      own: 100,
      trials: 5,
      deferrals: 16,
      preparing: 50,
      delivering: 1,
      octets: 1_000_000,
      waiting: 100,
    },
  );
  dispatch.offer({ key: "first", lane: laneOf("slow.test") }, false);
  await scanning.promise;
  clock.advance(HANG_MS + 2_000);
  // Another message comes, and there is no room for it.
  dispatch.offer({ key: "second", lane: laneOf("other.test") }, false);
  await mx.visit();
  scanned.resolve("250 2.0.0 taken");
  const report = await done.promise;
  await mx.messages.reached(1);
  // The peer has the message and has said so.
  expect(mx.messages.items.map(({ rcptTo }) => rcptTo)).toContainEqual(["a@slow.test"]);
  expect(report).toMatchObject({ kind: "accepted" });
});
