import { describe, expect, test } from "bun:test";
import { type Destination, isResting, judge, newDestination } from "../../src/flows/dispatch/destination.ts";
import { Destinations, MAX_REMEMBERED } from "../../src/flows/dispatch/destinations.ts";
import { mxPassages } from "../../src/flows/send/deliver.ts";
import { OneHandover } from "../../src/flows/dispatch/handover.ts";
import { Room } from "../../src/flows/dispatch/room.ts";
import { noFacts, type DeliveryReport, type Passage } from "../../src/flows/send/outcome.ts";
import type { HostSecurity } from "../../src/smtp/client/delivery.ts";
import { createPool } from "../../src/smtp/client/pool.ts";
import { log } from "../../src/log.ts";
import { manualClock } from "../support/manual-clock.ts";

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
    ["does not where another mail got through meanwhile", 1_500, false],
    ["rests though an answer lies ahead, of before the clock was put back", 9_000, true],
  ])("%s", (_, answeredAt, rests) => {
    const destination = newDestination("d", "hosts");
    judge(destination, taken, { startedAt: answeredAt, now: answeredAt }, REST_MS);
    expect(judge(destination, lost, { startedAt: 1_000, now: 2_000 }, REST_MS)).toBe(rests);
  });

  test("rests no longer once a mail that was on its way has got through", () => {
    const destination = newDestination("d", "hosts");
    judge(destination, lost, { startedAt: 1_000, now: 2_000 }, REST_MS);
    expect(isResting(destination, 3_000)).toBe(true);
    judge(destination, taken, { startedAt: 1_000, now: 3_000 }, REST_MS);
    expect(isResting(destination, 3_000)).toBe(false);
  });

  test("is not tried by mail that was begun to be put off, though the rest ends before it is", async () => {
    const clock = manualClock();
    const destination = newDestination("d", "hosts");
    judge(destination, lost, { startedAt: clock.now(), now: clock.now() }, REST_MS);
    let sent = 0;
    const passage: Passage = {
      ...{ kind: "hosts", destination: "d", foregone: null },
      async deliver() {
        sent++;
        return lost;
      },
    };
    const room = new Room({ desk: 1, underWay: 1, bytes: 1 });
    const handover = new OneHandover({ clock, room, restMs: REST_MS }, passage, destination, () => undefined);
    clock.advance(REST_MS);
    const shipment = { mailFrom: "", rcptTo: "a@d", domain: "d", raw: Buffer.alloc(1), smtpUtf8: false };
    expect(await handover.deliver(shipment)).toMatchObject({ kind: "trouble", stage: "connect" });
    expect(sent).toBe(0);
  });
});

test("the same host is one destination for two domains only where both ask the same of it", async () => {
  const clock = manualClock();
  const host = { name: "mx.test", preference: 0, addresses: ["192.0.2.1"] };
  const asked: Readonly<Record<string, HostSecurity>> = {
    "sts.test": { tls: "verified", policy: "MTA-STS, enforced" },
    "sts2.test": { tls: "verified", policy: "MTA-STS, enforced" },
    "dane.test": { tls: "encrypted", policy: "DANE" },
  };
  const findPassage = mxPassages({
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
    keys.set(domain, (await findPassage(domain)).destination);
  expect(keys.get("plain2.test")).toBe(keys.get("plain.test") ?? "");
  expect(keys.get("sts2.test")).toBe(keys.get("sts.test") ?? "");
  expect(new Set(keys.values()).size).toBe(3);
});

test("a host whose name reads like two others' is a destination of its own", async () => {
  const clock = manualClock();
  const hosts = (...names: string[]) =>
    names.map((name) => ({ name, preference: 0, addresses: ["192.0.2.1"] }));
  const sets = [hosts("a.test", "b.test"), hosts("a.test,b.test"), hosts("b.test", "a.test")];
  const keys: string[] = [];
  for (const set of sets) {
    const findPassage = mxPassages({
      ...{ clock, port: 25, ehloName: "us.test" },
      pool: createPool({ clock, log: log("smtp") }, { maxConnectionsPerDestination: 1 }),
      route: async () => ({ kind: "hosts", hosts: set }),
      secure: async () => ({ kind: "hosts", hosts: set }),
    });
    keys.push((await findPassage("to.test")).destination);
  }
  const [two, one, turned] = keys;
  expect(one).not.toBe(two ?? "");
  expect(turned).toBe(two ?? "");
});

describe("a destination that rests and has new mail", () => {
  const passage: Passage = {
    ...{ kind: "hosts", destination: "d", foregone: null },
    deliver: () => Promise.resolve(lost),
  };
  test.each([
    ["its key", (all: Destinations, known: Destination) => all.of(known.key, known.kind)],
    [
      "a way known before",
      (all: Destinations, destination: Destination) =>
        all.at({ passage, destination, foundAt: 0, lookedAt: 0 }),
    ],
  ])("by %s is not forgotten for the many that rest without", (_, take) => {
    const clock = manualClock();
    const all = new Destinations(clock);
    const rest = (destination: Destination) => {
      judge(destination, lost, { startedAt: clock.now(), now: clock.now() }, REST_MS);
      all.forget(destination);
    };
    const known = all.of("d", "hosts");
    rest(known);
    take(all, known).inHand++;
    for (let nth = 0; nth <= MAX_REMEMBERED; nth++) rest(all.of(`other${nth}`, "hosts"));
    expect(all.of("d", "hosts")).toBe(known);
  });
});
