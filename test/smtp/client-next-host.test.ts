import { afterEach, describe, expect, test } from "bun:test";
import { systemClock } from "../../src/clock.ts";
import { log } from "../../src/log.ts";
import type { Destination, OutboundMail } from "../../src/smtp/client/delivery.ts";
import { MAX_HOSTS_ASKED } from "../../src/smtp/client/next-host.ts";
import { createPool, type Pool } from "../../src/smtp/client/pool.ts";
import { MAX_TRYING_MS } from "../../src/smtp/client/pool-dispatch.ts";
import { manualClock } from "../support/manual-clock.ts";
import { type MxOptions, startMx, type TestMx } from "../support/mx.ts";

const stops: (() => unknown)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0).reverse()) await stop();
});

function poolOf(maxConnectionsPerDestination = 1): Pool {
  const pool = createPool({ clock: systemClock, log: log("smtp") }, { maxConnectionsPerDestination });
  stops.push(() => pool.close(0));
  return pool;
}

const mail = (subject: string): OutboundMail => ({
  mailFrom: "b+1@out.test",
  rcptTo: "to@in.test",
  raw: Buffer.from(`Subject: ${subject}\r\n\r\nx\r\n`),
});

/** Peers on one port, on separate addresses, in the order of preference. */
function peers(...all: MxOptions[]): TestMx[] {
  for (;;) {
    const first = startMx(all[0]);
    const mxs = [first];
    try {
      for (const [at, options] of all.slice(1).entries())
        mxs.push(startMx({ ...options, ip: `127.0.0.${at + 2}`, port: first.port }));
      stops.push(...mxs.map((mx) => mx.stop));
      return mxs;
    } catch {
      for (const mx of mxs) mx.stop();
    }
  }
}

function to(mxs: readonly TestMx[]): Destination {
  const hosts = mxs.map((mx, at) => ({ name: `mx${at + 1}.test`, addresses: [mx.ip] }));
  return { key: "k", hosts, port: mxs[0]?.port ?? 0, tls: "opportunistic", ehloName: "us.test" };
}

const names = (count: number): string[] => Array.from({ length: count }, (_, at) => `m${at}`);
const later: MxOptions = { answers: { RCPT: "450 4.2.0 later" } };

describe("the next host takes a message", () => {
  test.each([
    ["MAIL", "451 4.3.0 not now"],
    ["RCPT", "450 4.2.0 greylisted"],
    ["RCPT", "421 4.3.2 going down"],
    ["DATA", "451 4.3.0 not now"],
    [".", "452 4.3.1 no space"],
    ["MAIL", "close"],
    ["RCPT", "close"],
    ["DATA", "close"],
  ])("if the first answers %s with %j", async (verb, answer) => {
    for (const extensions of [["PIPELINING"], []]) {
      const [first, second] = peers({ extensions, answers: { [verb]: answer } }, {});
      if (first === undefined || second === undefined) throw new Error("no peers");
      const report = await poolOf().deliver(to([first, second]), mail("a"));
      expect(report).toMatchObject({ result: { stage: "final", code: 250 }, mx: "mx2.test" });
      expect(second.messages.items).toHaveLength(1);
      const tried = report.transcript.filter((line) => line.startsWith("* connecting to"));
      expect(tried).toEqual([
        `* connecting to mx1.test [127.0.0.1]:${first.port}`,
        `* connecting to mx2.test [127.0.0.2]:${first.port}`,
      ]);
    }
  });
});

test("no other host is tried if the first may have the message", async () => {
  const [first, second] = peers({ answers: { ".": "close" } }, {}) as [TestMx, TestMx];
  const report = await poolOf().deliver(to([first, second]), mail("a"));
  expect(report.result).toMatchObject({ kind: "trouble", stage: "final" });
  expect(second.connections.items).toHaveLength(0);
});

test.each([
  ["puts it off too", { answers: { RCPT: "451 4.7.1 me too" } }, { stage: "rcpt", code: 451 }, "mx2.test"],
  ["refuses it", { answers: { RCPT: "550 5.1.1 nobody" } }, { stage: "rcpt", code: 550 }, "mx2.test"],
  ["takes no mail", { banner: "554 no mail here" }, { stage: "rcpt", code: 450 }, "mx1.test"],
  ["hangs up", { answers: { MAIL: "close" } }, { stage: "rcpt", code: 450 }, "mx1.test"],
  ["is too small", { extensions: ["SIZE 5"] }, { stage: "rcpt", code: 450 }, "mx1.test"],
] as [string, MxOptions, object, string][])(
  "where the second host %s the outcome is what was last said of the message",
  async (_, options, result, mx) => {
    const report = await poolOf().deliver(to(peers(later, options)), mail("a"));
    expect(report).toMatchObject({ result, mx });
  },
);

test("a host that was unreachable just now is not tried next", async () => {
  const [first, second] = peers({ banner: "close" }, later) as [TestMx, TestMx];
  expect((await poolOf().deliver(to([first, second]), mail("a"))).result).toMatchObject({ code: 450 });
  expect([first.connections.items.length, second.connections.items.length]).toEqual([1, 1]);
});

test("a host over the limit is not tried", async () => {
  const mxs = peers(...names(MAX_HOSTS_ASKED + 1).map(() => later));
  expect(await poolOf().deliver(to(mxs), mail("a"))).toMatchObject({ mx: `mx${MAX_HOSTS_ASKED}.test` });
  expect(mxs.map((mx) => mx.connections.items.length)).toEqual([1, 1, 1, 1, 0]);
});

test.each([
  [1, 250],
  [0, 450],
])("%d ms before the time for one try ends, the next host is tried, or not: %d", async (leftMs, code) => {
  const answer = Promise.withResolvers<string>();
  const asked = Promise.withResolvers<void>();
  const hold = () => {
    asked.resolve();
    return answer.promise;
  };
  const mxs = peers({ extensions: [], answers: { RCPT: hold } }, {});
  const clock = manualClock();
  const pool = createPool(
    { clock, log: log("smtp") },
    { maxConnectionsPerDestination: 1, timeouts: { rcpt: 2 * MAX_TRYING_MS } },
  );
  stops.push(() => pool.close(0));
  const delivered = pool.deliver(to(mxs), mail("a"));
  await asked.promise;
  clock.advance(MAX_TRYING_MS - leftMs);
  answer.resolve("450 4.2.0 later");
  expect((await delivered).result).toMatchObject({ code });
});

test("if a host puts one message off and takes the next, both connections are used", async () => {
  let nth = 0;
  const odd = { answers: { RCPT: () => (nth++ % 2 === 0 ? "450 4.2.0 later" : "250 ok") } };
  const [first, second] = peers(odd, {}) as [TestMx, TestMx];
  const pool = poolOf(1);
  const reports = await Promise.all(names(40).map((name) => pool.deliver(to([first, second]), mail(name))));
  expect(reports.every(({ result }) => result.kind === "reply" && result.code === 250)).toBe(true);
  expect(first.messages.items.length + second.messages.items.length).toBe(40);
});

describe("connections to the next host", () => {
  test("connections to the next host count with those to the first: the one makes room for the other, again and again", async () => {
    const [first, second] = peers(later, {}) as [TestMx, TestMx];
    const pool = poolOf(1);
    for (let nth = 1; nth <= 3; nth++) {
      expect((await pool.deliver(to([first, second]), mail("a"))).result).toMatchObject({ code: 250 });
      expect(pool.connections).toBe(1);
      expect([first.connections.items.length, second.connections.items.length]).toEqual([nth, nth]);
    }
  });

  test("connections to the next host are kept in addition to those to the first if there is room", async () => {
    const [first, second] = peers(later, {}) as [TestMx, TestMx];
    const pool = poolOf(2);
    for (const name of ["a", "b", "c"]) await pool.deliver(to([first, second]), mail(name));
    expect(second.messages.items).toHaveLength(3);
    expect([first.connections.items.length, second.connections.items.length]).toEqual([1, 1]);
  });

  test.each([1, 2, 5])(
    "connections to the next host never exceed %d together with all others, and no message waits in vain",
    async (limit) => {
      const [first, second, third] = peers(later, later, {}) as [TestMx, TestMx, TestMx];
      const mxs = [first, second, third];
      const pool = poolOf(limit);
      let most = 0;
      const deliveries = names(60).map(async (name) => {
        const { result } = await pool.deliver(to(mxs), mail(name));
        most = Math.max(most, pool.connections);
        return result.kind === "reply" ? result.code : result.kind;
      });
      expect(new Set(await Promise.all(deliveries))).toEqual(new Set([250]));
      expect(third.messages.items).toHaveLength(60);
      expect(most).toBeLessThanOrEqual(limit);
    },
  );
});

test("a delivery aborted at the next host ends with the first host's answer", async () => {
  const [first, second] = peers(later, { banner: "silent" }) as [TestMx, TestMx];
  const abort = new AbortController();
  const delivered = poolOf().deliver(to([first, second]), mail("a"), abort.signal);
  await second.connections.reached(1);
  abort.abort();
  expect(await delivered).toMatchObject({ result: { stage: "rcpt", code: 450 }, mx: "mx1.test" });
});

test("closing a pool answers the deliveries that wait for the next host", async () => {
  const [first, second] = peers(later, { banner: "silent" }) as [TestMx, TestMx];
  const pool = poolOf();
  const delivered = pool.deliver(to([first, second]), mail("a"));
  await second.connections.reached(1);
  const closing = pool.close(0);
  expect((await delivered).result).toMatchObject({ code: 450 });
  await closing;
});
