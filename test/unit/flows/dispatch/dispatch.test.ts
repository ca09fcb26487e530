import { describe, expect, test } from "bun:test";
import { Dispatch, TRIAL_MS } from "../../../../src/flows/dispatch/dispatch.ts";
import type { DispatchDeps, DispatchLimits } from "../../../../src/flows/dispatch/deps.ts";
import { MAX_REMEMBERED } from "../../../../src/flows/dispatch/destinations.ts";
import { ROUTE_KEPT_MS, ROUTE_REFRESH_MS } from "../../../../src/flows/dispatch/destination.ts";
import { createPacer } from "../../../../src/flows/dispatch/pacer.ts";
import {
  type DeliveryReport,
  HANG_MS,
  noFacts,
  type DeliveryRoute,
} from "../../../../src/flows/deliver/outcome.ts";
import { testLanes } from "../../../support/lanes.ts";
import { manualClock } from "../../../support/manual-clock.ts";

const limits: DispatchLimits = {
  perConnection: 3,
  own: 50,
  trials: 2,
  deferrals: 4,
  preparing: 100,
  delivering: 100,
  octets: 1_000_000,
  waiting: 1_000,
};
const REST_MS = 30_000;
const RAW = Buffer.alloc(100);

const tick = () => new Promise<void>((resolve) => setImmediate(resolve));

type Ending = "accepted" | "no connection" | "busy" | "lost" | "refused";

function ending(kind: Ending, startedAt: number, durationMs: number): DeliveryReport {
  const facts = { ...noFacts(startedAt, durationMs), mx: "mx.test", ip: "192.0.2.1" };
  const reply = (stage: string, code: number) => ({ stage, code, enhanced: null, text: "as it is" });
  switch (kind) {
    case "accepted":
      return { ...facts, kind: "accepted", reply: reply("final", 250) };
    case "refused":
      return { ...facts, kind: "refused", reply: reply("rcpt", 550) };
    case "busy":
      return { ...facts, kind: "refused", reply: reply("connect", 421) };
    case "no connection":
      return { ...facts, kind: "trouble", stage: "connect", reason: "ECONNREFUSED" };
    case "lost":
      return { ...facts, kind: "trouble", stage: "final", reason: "connection closed by the peer" };
  }
}

/**
 * A dispatch whose peers answer when the test says so. The domain `x.shared.test` has the destination
 * `shared.test`.
 */
function bench(changes: Partial<DispatchLimits> = {}, more: Partial<DispatchDeps> = {}, rate = 0) {
  const clock = manualClock();
  const lanes = testLanes(more.clock ?? clock, { connections: 1, rate });
  /** Keys in the order in which they got a connection, and reports of those that did not. */
  const sent: string[] = [];
  const putOff: { key: string; report: DeliveryReport }[] = [];
  const held = new Map<string, (kind: Ending) => void>();
  const looked: string[] = [];
  const ended: string[] = [];
  const route = (domain: string): DeliveryRoute => ({
    kind: "hosts",
    destination: domain.split(".").slice(-2).join("."),
    lane: lanes.named(domain.split(".").slice(-2).join(".")),
    knownOutcome: null,
    deliver: ({ rcptTo }, signal) =>
      new Promise((resolve) => {
        const startedAt = clock.now();
        const end = (kind: Ending): void => {
          held.delete(rcptTo);
          resolve(ending(kind, startedAt, clock.now() - startedAt));
        };
        sent.push(rcptTo);
        held.set(rcptTo, end);
        signal?.addEventListener("abort", () => end("lost"));
      }),
  });
  const dispatch = new Dispatch(
    {
      clock,
      restMs: REST_MS,
      pace: null,
      findDeliveryRoute: async (domain) => {
        looked.push(domain);
        return route(domain);
      },
      transmit: async ({ key, lane }, handover) => {
        const known = handover.knownOutcome();
        if (known !== null) putOff.push({ key, report: known });
        else {
          const report = await handover.deliver({
            mailFrom: "",
            rcptTo: key,
            domain: lane,
            raw: RAW,
            smtpUtf8: false,
          });
          if (!sent.includes(key)) putOff.push({ key, report });
        }
        ended.push(key);
        return null;
      },
      ...more,
    },
    { ...limits, ...changes },
  );
  const offer = async (domain: string, keys: readonly string[], retry = false) => {
    for (const key of keys) dispatch.offer({ key, lane: domain }, retry);
    await tick();
  };
  const end = async (key: string, kind: Ending = "accepted") => {
    held.get(key)?.(kind);
    await tick();
  };
  const pass = async (ms: number) => {
    clock.advance(ms);
    await tick();
  };
  return { dispatch, clock, sent, putOff, looked, ended, held, route, offer, end, pass };
}

const keys = (name: string, count: number) => Array.from({ length: count }, (_, at) => `${name}${at}`);

describe("a destination", () => {
  test("a destination starts with one message and gets its full number of connections once it has answered", async () => {
    const { offer, end, sent } = bench();
    await offer("a.test", keys("a", 6));
    expect(sent).toEqual(["a0"]);
    await end("a0");
    expect(sent).toEqual(["a0", "a1", "a2", "a3"]);
    await end("a1", "refused");
    expect(sent.length).toBe(5);
  });

  test("a destination gets one more trial message for each that gets no answer in time, up to its number of trials", async () => {
    const { offer, pass, sent } = bench();
    await offer("a.test", keys("a", 6));
    await pass(TRIAL_MS - 1);
    expect(sent.length).toBe(1);
    await pass(1);
    expect(sent.length).toBe(2);
    await pass(2 * TRIAL_MS);
    expect(sent.length).toBe(2);
  });

  test("a destination is the set of hosts, not the domain: domains at one provider share its places", async () => {
    const { offer, end, sent } = bench();
    await offer("one.shared.test", keys("a", 3));
    await offer("two.shared.test", keys("b", 3));
    expect(sent).toEqual(["a0"]);
    await end("a0");
    expect(sent).toEqual(["a0", "a1", "b0", "a2"]);
  });

  test("a destination stays the same if a domain is forgotten while it is looked up again", async () => {
    const again = Promise.withResolvers<DeliveryRoute>();
    const own = bench();
    let asked = 0;
    const findDeliveryRoute = async (domain: string) =>
      domain === "one.shared.test" && ++asked === 2 ? again.promise : own.route(domain);
    const { offer } = bench({ perConnection: 1 }, { findDeliveryRoute, clock: own.clock });
    await offer("one.shared.test", ["a0", "a1", "a2"]);
    await own.end("a0");
    await own.pass(ROUTE_REFRESH_MS);
    await own.end("a1");
    // The second lookup hangs from here on, and no message waits.
    await own.end("a2");
    await offer("two.shared.test", ["b0"]);
    await offer("one.shared.test", ["a3"]);
    expect(own.sent).toEqual(["a0", "a1", "a2", "b0"]);
    await own.end("b0");
    expect(own.sent).toEqual(["a0", "a1", "a2", "b0", "a3"]);
  });

  test("a destination leaves all places to the other destinations if it hangs", async () => {
    const { offer, end, sent } = bench();
    for (let at = 0; at < 40; at++) await offer(`hung${at}.test`, keys(`h${at}.`, 5));
    await offer("good.test", ["g0", "g1"]);
    expect(sent).toContain("g0");
    await end("g0");
    expect(sent).toContain("g1");
  });

  test("a destination gets no more messages in any second than its rate, but may use what it did not use for a while", async () => {
    const clock = manualClock();
    const { offer, sent, held } = bench(
      { perConnection: 100, trials: 100 },
      { clock, pace: createPacer(clock) },
      20,
    );
    const times: number[] = [];
    await offer("a.test", keys("a", 61));
    for (let step = 0; step < 2999; step++) {
      for (const end of [...held.values()]) {
        times.push(clock.now());
        end("accepted");
      }
      await tick();
      clock.advance(1);
    }
    expect(sent.length).toBe(60);
    for (const [at, time] of times.entries())
      expect((times[at + 20] ?? Infinity) - time).toBeGreaterThan(998);
  });

  test("a destination gives an unused moment to the next message", async () => {
    const clock = manualClock();
    const { offer, sent } = bench(
      {},
      {
        clock,
        pace: createPacer(clock),
        transmit: async ({ key }, handover) => {
          if (!key.startsWith("stale"))
            await handover.deliver({ mailFrom: "", rcptTo: key, domain: "", raw: RAW, smtpUtf8: false });
          return null;
        },
      },
      1,
    );
    await offer("a.test", ["stale0", "stale1", "a0"]);
    expect(sent).toEqual(["a0"]);
  });
});

test("mail that must be tried again later holds no place until then, and a hint does not bring it back", async () => {
  const turn = Promise.withResolvers<void>();
  let later: { until: Promise<void> } | null = { until: turn.promise };
  const { dispatch, offer, sent } = bench(
    { preparing: 1, trials: 1, delivering: 2 },
    {
      async transmit({ key, lane }, handover) {
        if (key === "a0" && later !== null) return later;
        await handover.deliver({ mailFrom: "", rcptTo: key, domain: lane, raw: RAW, smtpUtf8: false });
        return null;
      },
    },
  );
  await offer("a.test", ["a0"]);
  expect([dispatch.has("a0"), dispatch.wants({ key: "a0", lane: "a.test" }, true)]).toEqual([true, false]);
  await offer("a.test", ["a0", "a1"]);
  await offer("b.test", ["b0"]);
  expect(sent).toEqual(["a1", "b0"]);
  later = null;
  turn.resolve();
  await tick();
  expect(sent).toEqual(["a1", "b0"]);
  expect(dispatch.has("a0")).toBe(true);
});

describe("new mail", () => {
  test("new mail goes before retries, which get one turn in five", async () => {
    const { offer, end, sent } = bench({ perConnection: 1 });
    await offer("a.test", ["first"]);
    await offer("a.test", keys("r", 3), true);
    await offer("b.a.test", keys("n", 6));
    for (const key of ["first", ...keys("n", 6), ...keys("r", 3)]) await end(key);
    for (const key of keys("n", 6)) await end(key);
    expect(sent).toEqual(
      ["first", "n0", "n1", "n2", "r0", "n3", "n4", "n5", "r1", "r2"].slice(0, sent.length),
    );
    expect(sent.slice(0, 5)).toEqual(["first", "n0", "n1", "n2", "r0"]);
  });

  test("new mail finds a place even if retries have filled theirs, or if only another domain has one", async () => {
    const { dispatch, offer } = bench({ waiting: 100 });
    await offer("a.test", keys("r", 200), true);
    await offer("a.test", keys("n", 200));
    await offer("b.test", keys("b", 5));
    expect(keys("r", 200).filter((key) => dispatch.has(key)).length).toBeLessThan(30);
    expect(keys("n", 200).filter((key) => dispatch.has(key)).length).toBeGreaterThan(20);
    expect(keys("b", 5).every((key) => dispatch.has(key))).toBe(true);
  });

  test("new mail is known while it waits or runs, and may be offered again afterwards", async () => {
    const { dispatch, offer, end, sent } = bench();
    await offer("a.test", ["a0", "a0", "a1", "a1"]);
    await end("a0");
    await end("a1");
    expect(sent).toEqual(["a0", "a1"]);
    expect(dispatch.has("a0")).toBe(false);
    await offer("a.test", ["a0"]);
    expect(sent).toEqual(["a0", "a1", "a0"]);
  });
});

describe("a dead destination", () => {
  test.each(["no connection", "busy"] as const)(
    "rests after %s: its messages are put off with that finding until one message tries it again",
    async (kind) => {
      const { offer, end, pass, sent, putOff } = bench();
      await offer("a.test", keys("a", 10));
      await end("a0", kind);
      expect(sent).toEqual(["a0"]);
      expect(putOff.map(({ key }) => key)).toEqual(keys("a", 10).slice(1));
      const [first] = putOff;
      expect(first?.report).toMatchObject({ kind: "trouble", stage: "connect", mx: "mx.test" });
      expect(first?.report.transcript[0]).toMatch(
        kind === "busy" ? /^\* not tried: 421 as it is/ : /^\* not tried: ECONNREFUSED/,
      );
      await pass(REST_MS - 1);
      await offer("a.test", ["late"]);
      expect(putOff.at(-1)?.key).toBe("late");
      await pass(1);
      await offer("a.test", ["probe", "next"]);
      expect(sent).toEqual(["a0", "probe"]);
      await end("probe");
      expect(sent).toEqual(["a0", "probe", "next"]);
    },
  );

  test("a dead destination is tried by one message after its rest, however many tried it before", async () => {
    const { offer, end, pass, sent } = bench({ deferrals: 0 });
    await offer("a.test", keys("a", 6));
    await pass(TRIAL_MS);
    expect(sent).toEqual(["a0", "a1"]);
    for (const key of ["a0", "a1"]) await end(key, "no connection");
    await pass(REST_MS);
    expect(sent).toEqual(["a0", "a1", "a2"]);
  });

  test("a dead destination is tried by a waiting message when the rest ends", async () => {
    const { offer, end, pass, sent } = bench({ deferrals: 0 });
    await offer("a.test", keys("a", 3));
    await end("a0", "no connection");
    expect(sent).toEqual(["a0"]);
    await pass(REST_MS);
    expect(sent).toEqual(["a0", "a1"]);
  });

  test("a dead destination is not dead if one of several connections fails while others get through", async () => {
    const { offer, end, sent, putOff } = bench();
    await offer("a.test", keys("a", 8));
    await end("a0");
    await end("a1");
    await end("a2", "no connection");
    expect(putOff).toEqual([]);
    expect(sent.length).toBe(6);
  });

  test("a dead destination is one where messages wait in vain and none gets through; if a message fails quickly, it is not dead", async () => {
    const { offer, end, pass, putOff } = bench({ trials: 1 });
    await offer("a.test", keys("a", 3));
    await end("a0", "lost");
    expect(putOff).toEqual([]);
    await pass(HANG_MS);
    await end("a1", "lost");
    expect(putOff.map(({ key }) => key)).toEqual(["a2"]);
  });

  test("a message that is put off takes no turn from a message that is sent", async () => {
    const { offer, end, ended, sent } = bench({ preparing: 1, deferrals: 1 });
    await offer("dead.test", ["d"]);
    await end("d", "no connection");
    await offer("good.test", ["g"]);
    await end("g");
    await Promise.all([offer("dead.test", keys("d", 20)), offer("good.test", keys("g", 3))]);
    for (const key of keys("g", 3)) await end(key);
    await tick();
    expect(sent).toEqual(["d", "g", ...keys("g", 3)]);
    expect(ended.filter((key) => key.startsWith("d")).length).toBe(21);
  });

  test("if too many destinations rest, the oldest is forgotten", async () => {
    const { offer, held, sent } = bench({ delivering: 2 * MAX_REMEMBERED, octets: 1e9 });
    for (let at = 0; at <= MAX_REMEMBERED; at++) await offer(`d${at}.test`, [`d${at}`]);
    for (const end of [...held.values()]) end("no connection");
    await tick();
    await offer("d0.test", ["again0"]);
    await offer("d1.test", ["again1"]);
    expect(sent).toContain("again0");
    expect(sent).not.toContain("again1");
  });
});

describe("the lookup of a domain", () => {
  test("the lookup of a domain holds back only that domain's mail", async () => {
    const found = Promise.withResolvers<DeliveryRoute>();
    const own = bench();
    const { offer, sent } = bench(
      {},
      {
        findDeliveryRoute: (domain) =>
          domain === "slow.test" ? found.promise : Promise.resolve(own.route(domain)),
      },
    );
    await offer("slow.test", ["s0", "s1"]);
    await offer("good.test", ["g0"]);
    expect(own.sent).toEqual(["g0"]);
    found.resolve(own.route("slow.test"));
    await tick();
    expect(own.sent).toEqual(["g0", "s0"]);
    expect(sent).toEqual([]);
  });

  test("the lookup of a domain is done once for all waiting mail, and again after a while, when the mail may move", async () => {
    const { offer, end, pass, looked, sent } = bench({ perConnection: 1 });
    await offer("a.test", keys("a", 4));
    await end("a0");
    expect(looked).toEqual(["a.test"]);
    await pass(ROUTE_REFRESH_MS);
    await end("a1");
    expect(looked).toEqual(["a.test", "a.test"]);
    expect(sent).toEqual(["a0", "a1", "a2"]);
  });

  test("the lookup of a domain that finds no route puts the mail off without a try", async () => {
    const report: DeliveryReport = { ...noFacts(0), kind: "trouble", stage: "dns", reason: "servfail" };
    const { offer, putOff, sent } = bench(
      {},
      {
        findDeliveryRoute: async () => ({
          kind: "none",
          destination: "none",
          knownOutcome: () => report,
          deliver: async () => report,
        }),
      },
    );
    await offer("a.test", keys("a", 3));
    expect(putOff.map((one) => one.report)).toEqual([report, report, report]);
    expect(sent).toEqual([]);
  });

  test("the lookup of a domain that finds no route for many domains puts off a few messages at a time, after those that can be sent", async () => {
    const report: DeliveryReport = { ...noFacts(0), kind: "trouble", stage: "dns", reason: "unreachable" };
    const none: DeliveryRoute = {
      kind: "none",
      destination: "none",
      knownOutcome: () => report,
      deliver: async () => report,
    };
    const good = bench();
    const begun: string[] = [];
    const writes: (() => void)[] = [];
    const { offer } = bench(
      { preparing: 5 },
      {
        findDeliveryRoute: async (domain) => (domain === "good.test" ? good.route(domain) : none),
        transmit: async ({ key }) => {
          begun.push(key);
          await new Promise<void>((resolve) => writes.push(resolve));
          return null;
        },
      },
    );
    await Promise.all(keys("n", 20).map((key) => offer(`${key}.test`, [key])));
    expect(begun).toEqual(keys("n", limits.deferrals));
    await offer("good.test", ["g"]);
    expect(begun.at(-1)).toBe("g");
    while (writes.length > 0) {
      writes.shift()?.();
      await tick();
    }
    expect(begun.length).toBe(21);
  });

  test("the lookup of a domain that fails temporarily keeps the route found before in use for a while", async () => {
    const report: DeliveryReport = { ...noFacts(0), kind: "trouble", stage: "dns", reason: "servfail" };
    const lost = {
      kind: "none",
      destination: "none",
      knownOutcome: () => report,
      deliver: async () => report,
    } as const;
    const known = bench();
    let looks = 0;
    const findDeliveryRoute = async () => (looks++ === 0 ? known.route("a.test") : lost);
    const { offer, pass, putOff } = bench({ perConnection: 1 }, { findDeliveryRoute });
    await offer("a.test", keys("a", 5));
    known.held.get("a0")?.("accepted");
    await tick();
    await pass(ROUTE_REFRESH_MS);
    for (const key of ["a1", "a2"]) {
      known.held.get(key)?.("accepted");
      await tick();
    }
    const failed = () => putOff.filter((one) => one.report.kind === "trouble").map(({ key }) => key);
    expect(failed()).toEqual([]);
    expect(known.sent).toEqual(["a0", "a1", "a2", "a3"]);
    // A lookup that has just failed is not repeated for each message.
    expect(looks).toBe(2);
    await pass(ROUTE_KEPT_MS);
    known.held.get("a3")?.("accepted");
    await tick();
    known.held.get("a4")?.("accepted");
    await tick();
    await offer("a.test", ["a5"]);
    expect(failed()).toEqual(["a5"]);
  });

  test("the lookup of a domain that throws is a bug, and the message is tried again later", async () => {
    const { offer, putOff } = bench({}, { findDeliveryRoute: () => Promise.reject(new Error("no")) });
    await offer("a.test", ["a0"]);
    expect(putOff[0]?.report).toMatchObject({ kind: "trouble", reason: "internal error" });
  });
});

describe("room", () => {
  test("room has a bounded number of places, and frees one once its message is under way", async () => {
    const waits: (() => void)[] = [];
    const own = bench();
    const started: string[] = [];
    const { offer } = bench(
      { preparing: 2 },
      {
        transmit: async ({ key }, handover) => {
          started.push(key);
          await new Promise<void>((resolve) => waits.push(resolve));
          await handover.deliver({ mailFrom: "", rcptTo: key, domain: "", raw: RAW, smtpUtf8: false });
          return null;
        },
        findDeliveryRoute: async (domain) => own.route(domain),
      },
    );
    for (const name of ["a", "b", "c", "d"]) await offer(`${name}.test`, [name]);
    expect(started).toEqual(["a", "b"]);
    waits[0]?.();
    await tick();
    expect(started).toEqual(["a", "b", "c"]);
  });

  test.each([
    ["count", { delivering: 4 }],
    ["octets", { octets: 4 * RAW.length }],
  ])(
    "places that peers hold by %s are taken back from those that hang longest, and not from merely busy ones",
    async (_, change) => {
      const { offer, pass, sent, ended } = bench(change);
      for (let at = 0; at < 4; at++) {
        await offer(`h${at}.test`, [`h${at}`]);
        await pass(1_000);
      }
      await offer("good.test", ["g0"]);
      expect(sent).not.toContain("g0");
      await pass(HANG_MS - 4_000);
      await pass(1_000);
      expect(ended).toContain("h0");
      expect(ended).not.toContain("h3");
      expect(sent).toContain("g0");
    },
  );

  test("a single message may always start, however large", async () => {
    const { offer, sent } = bench({ octets: 1 });
    await offer("a.test", ["a0"]);
    await offer("b.test", ["b0"]);
    expect(sent).toEqual(["a0"]);
  });
});

test("a close waits for running messages and forgets waiting ones", async () => {
  const { dispatch, offer, end, sent } = bench();
  await offer("a.test", ["a0", "a1"]);
  let closed = false;
  const closing = dispatch.close().then(() => {
    closed = true;
  });
  await tick();
  expect(closed).toBe(false);
  await end("a0");
  await closing;
  expect(sent).toEqual(["a0"]);
});

test("a pacer spaces the moments of each key, and setting the clock back stops no key", () => {
  const clock = manualClock();
  const pace = createPacer(clock);
  expect([pace("a", 600), pace("a", 600), pace("b", 600)]).toEqual([0, 100, 0]);
  clock.step(-3_600_000);
  expect(pace("a", 600)).toBe(200);
});
