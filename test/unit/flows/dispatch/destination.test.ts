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
import { testLanes } from "../../../support/lanes.ts";
import type { SecuredHost } from "../../../../src/net/transport-security.ts";
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

  test("a destination that could not be reached stops resting once a message that was already under way has got through", () => {
    const destination = newDestination("d", "hosts");
    recordReport(destination, lost, { startedAt: 1_000, now: 2_000 }, REST_MS);
    expect(isResting(destination, 3_000)).toBe(true);
    recordReport(destination, taken, { startedAt: 1_000, now: 3_000 }, REST_MS);
    expect(isResting(destination, 3_000)).toBe(false);
  });

  test("a destination that could not be reached is not tried by a message that is to be put off, even if the rest ends first", async () => {
    const clock = manualClock();
    const destination = newDestination("d", "hosts");
    recordReport(destination, lost, { startedAt: clock.elapsed(), now: clock.elapsed() }, REST_MS);
    let sent = 0;
    const route: DeliveryRoute = {
      kind: "hosts",
      destination: "d",
      knownOutcome: null,
      async deliver() {
        sent++;
        return lost;
      },
    };
    const inFlight = new InFlight({ preparing: 1, delivering: 1, octets: 1 });
    const handover = new RecipientHandover(
      { clock, inFlight, restMs: REST_MS, hasOtherWay: () => false },
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

/** Finds routes over one set of MX hosts. Returns the lane and the pool's key of each. */
function routesTo(hosts: (domain: string) => readonly SecuredHost[]) {
  const clock = manualClock();
  const keys: string[] = [];
  const pool = createPool({ clock, log: log("smtp") }, { maxConnectionsPerDestination: 1 });
  const findDeliveryRoute = mxRoutes({
    clock,
    port: 25,
    ehloName: "us.test",
    lanes: testLanes(clock),
    pool: {
      ...pool,
      async deliver({ key }, mail) {
        keys.push(key);
        return pool.deliver({ key, hosts: [], port: 25, tls: "never", ehloName: "us.test" }, mail);
      },
    },
    route: async (domain) => ({ kind: "hosts", hosts: hosts(domain).map((host) => ({ ...host })) }),
    secure: async (domain) => ({ kind: "hosts", hosts: hosts(domain) }),
  });
  return async (domain: string) => {
    const { destination, deliver } = await findDeliveryRoute(domain);
    await deliver({ mailFrom: "", rcptTo: `a@${domain}`, domain, raw: Buffer.alloc(1), smtpUtf8: false });
    return { lane: destination, key: keys.at(-1) ?? "" };
  };
}

const host = (name: string) => ({ name, preference: 0, addresses: ["192.0.2.1"] });

test("domains share a connection only if both require the same security of its host", async () => {
  const asked: Readonly<Record<string, HostSecurity>> = {
    "sts.test": { tls: "verified", policy: "MTA-STS, enforced" },
    "sts2.test": { tls: "verified", policy: "MTA-STS, enforced" },
    "dane.test": { tls: "encrypted", policy: "DANE" },
  };
  for (const name of ["mx.test", "mx01.t-online.de"]) {
    const to = routesTo((domain) => [{ ...host(name), ...(asked[domain] && { security: asked[domain] }) }]);
    const keys: string[] = [];
    for (const domain of ["plain.test", "plain2.test", "sts.test", "sts2.test", "dane.test"])
      keys.push((await to(domain)).key);
    expect(keys[1]).toBe(keys[0] ?? "");
    expect(keys[3]).toBe(keys[2] ?? "");
    expect(new Set(keys).size).toBe(3);
  }
});

test("a failing policy of one domain shares no lane with other domains on its hosts, unless a provider owns them", async () => {
  const security: HostSecurity = { tls: "verified", policy: "MTA-STS, enforced" };
  const lanes = async (name: string) => {
    const to = routesTo((domain) => [{ ...host(name), ...(domain === "sts.test" && { security }) }]);
    return new Set([(await to("plain.test")).lane, (await to("sts.test")).lane]).size;
  };
  expect([await lanes("mx.test"), await lanes("mx01.t-online.de")]).toEqual([2, 1]);
});

test("a host whose name reads like the names of two others has its own lane and its own connections", async () => {
  const sets: Readonly<Record<string, string[]>> = {
    "two.test": ["a.test", "b.test"],
    "one.test": ["a.test+b.test"],
    "comma.test": ["a.test,b.test"],
    "turned.test": ["b.test", "a.test"],
  };
  const to = routesTo((domain) => (sets[domain] ?? []).map(host));
  const [two, one, comma, turned] = [
    await to("two.test"),
    await to("one.test"),
    await to("comma.test"),
    await to("turned.test"),
  ];
  expect(new Set([two.lane, one.lane, comma.lane]).size).toBe(3);
  expect(new Set([two.key, one.key, comma.key]).size).toBe(3);
  expect(turned).toEqual(two);
});

describe("a destination that rests and has new mail", () => {
  const route: DeliveryRoute = {
    kind: "hosts",
    destination: "d",
    knownOutcome: null,
    deliver: () => Promise.resolve(lost),
  };
  test.each([
    ["its key", (all: Destinations, known: Destination) => all.of(known.key, known.kind)],
    [
      "a way known before",
      (all: Destinations, destination: Destination) =>
        all.at({ ways: [route], route, destination, foundAt: 0, lookedUpAt: 0 }),
    ],
  ])(
    "a destination that rests and has new mail is not forgotten %s when many others rest without new mail",
    (_, take) => {
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
    },
  );
});
