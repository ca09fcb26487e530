import type { HostSecurity } from "../../../../src/core/tls-policy.ts";
import { describe, expect, test } from "bun:test";
import {
  type Destination,
  isResting,
  recordReport,
  newDestination,
} from "../../../../src/flows/dispatch/destination.ts";
import { Destinations, MAX_REMEMBERED } from "../../../../src/flows/dispatch/destinations.ts";
import { mxRoutes } from "../../../../src/flows/deliver/deliver.ts";
import { RecipientHandover } from "../../../../src/flows/dispatch/handover.ts";
import { InFlight } from "../../../../src/flows/dispatch/in-flight-limits.ts";
import { noFacts, type DeliveryReport, type DeliveryRoute } from "../../../../src/flows/deliver/outcome.ts";
import { createPool } from "../../../../src/smtp/client/pool.ts";
import { log } from "../../../../src/log.ts";
import { manualClock } from "../../../support/manual-clock.ts";

const REST_MS = 30_000;
const lost: DeliveryReport = { ...noFacts(0), kind: "trouble", stage: "connect", reason: "ECONNREFUSED" };
const taken: DeliveryReport = {
  ...noFacts(0),
  kind: "accepted",
  reply: { stage: "final", code: 250, enhanced: null, text: "ok" },
};

describe("a destination that could not be reached", () => {
  test.each([
    ["rests", 0, true],
    ["does not rest if another message got through in the meantime", 1_500, false],
  ])("%s", (_, answeredAt, rests) => {
    const destination = newDestination("d", "hosts");
    recordReport(destination, taken, { startedAt: answeredAt, now: answeredAt }, REST_MS);
    expect(recordReport(destination, lost, { startedAt: 1_000, now: 2_000 }, REST_MS)).toBe(rests);
  });

  test("stops resting once a message that was already under way has got through", () => {
    const destination = newDestination("d", "hosts");
    recordReport(destination, lost, { startedAt: 1_000, now: 2_000 }, REST_MS);
    expect(isResting(destination, 3_000)).toBe(true);
    recordReport(destination, taken, { startedAt: 1_000, now: 3_000 }, REST_MS);
    expect(isResting(destination, 3_000)).toBe(false);
  });

  test("is not tried by a message that is to be put off, even if the rest ends first", async () => {
    const clock = manualClock();
    const destination = newDestination("d", "hosts");
    recordReport(destination, lost, { startedAt: clock.elapsed(), now: clock.elapsed() }, REST_MS);
    let sent = 0;
    const route: DeliveryRoute = {
      ...{ kind: "hosts", destination: "d", knownOutcome: null },
      async deliver() {
        sent++;
        return lost;
      },
    };
    const inFlight = new InFlight({ preparing: 1, delivering: 1, octets: 1 });
    const handover = new RecipientHandover(
      { clock, inFlight, restMs: REST_MS },
      route,
      destination,
      () => undefined,
    );
    clock.advance(REST_MS);
    const shipment = { mailFrom: "", rcptTo: "a@d", domain: "d", raw: Buffer.alloc(1), smtpUtf8: false };
    expect(await handover.deliver(shipment)).toMatchObject({ kind: "trouble", stage: "connect" });
    expect(sent).toBe(0);
  });
});

test("is one destination for two domains only if both require the same security of it", async () => {
  const clock = manualClock();
  const host = { name: "mx.test", preference: 0, addresses: ["192.0.2.1"] };
  const asked: Readonly<Record<string, HostSecurity>> = {
    "sts.test": { tls: "verified", policy: "MTA-STS, enforced" },
    "sts2.test": { tls: "verified", policy: "MTA-STS, enforced" },
    "dane.test": { tls: "encrypted", policy: "DANE" },
  };
  const findDeliveryRoute = mxRoutes({
    ...{ clock, port: 25, ehloName: "us.test" },
    pool: createPool({ clock, log: log("smtp") }, { maxConnectionsPerDestination: 1 }),
    route: async () => ({ kind: "hosts", hosts: [host] }),
    async secure(domain) {
      const security = asked[domain];
      return { kind: "hosts", hosts: [security === undefined ? host : { ...host, security }] };
    },
  });
  const keys = new Map<string, string>();
  for (const domain of ["plain.test", "plain2.test", "sts.test", "sts2.test", "dane.test"])
    keys.set(domain, (await findDeliveryRoute(domain)).destination);
  expect(keys.get("plain2.test")).toBe(keys.get("plain.test") ?? "");
  expect(keys.get("sts2.test")).toBe(keys.get("sts.test") ?? "");
  expect(new Set(keys.values()).size).toBe(3);
});

test("a host whose name reads like the names of two others is its own destination", async () => {
  const clock = manualClock();
  const hosts = (...names: string[]) =>
    names.map((name) => ({ name, preference: 0, addresses: ["192.0.2.1"] }));
  const sets = [hosts("a.test", "b.test"), hosts("a.test,b.test"), hosts("b.test", "a.test")];
  const keys: string[] = [];
  for (const set of sets) {
    const findDeliveryRoute = mxRoutes({
      ...{ clock, port: 25, ehloName: "us.test" },
      pool: createPool({ clock, log: log("smtp") }, { maxConnectionsPerDestination: 1 }),
      route: async () => ({ kind: "hosts", hosts: set }),
      secure: async () => ({ kind: "hosts", hosts: set }),
    });
    keys.push((await findDeliveryRoute("to.test")).destination);
  }
  const [two, one, turned] = keys;
  expect(one).not.toBe(two ?? "");
  expect(turned).toBe(two ?? "");
});

describe("a destination that rests and has new mail", () => {
  const route: DeliveryRoute = {
    ...{ kind: "hosts", destination: "d", knownOutcome: null },
    deliver: () => Promise.resolve(lost),
  };
  test.each([
    ["its key", (all: Destinations, known: Destination) => all.of(known.key, known.kind)],
    [
      "a way known before",
      (all: Destinations, destination: Destination) =>
        all.at({ route, destination, foundAt: 0, lookedUpAt: 0 }),
    ],
  ])("is not forgotten %s when many others rest without new mail", (_, take) => {
    const clock = manualClock();
    const all = new Destinations(clock);
    const rest = (destination: Destination) => {
      recordReport(destination, lost, { startedAt: clock.elapsed(), now: clock.elapsed() }, REST_MS);
      all.forget(destination);
    };
    const known = all.of("d", "hosts");
    rest(known);
    take(all, known).inHand++;
    for (let nth = 0; nth <= MAX_REMEMBERED; nth++) rest(all.of(`other${nth}`, "hosts"));
    expect(all.of("d", "hosts")).toBe(known);
  });
});
