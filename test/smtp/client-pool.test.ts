import { afterEach, describe, expect, test } from "bun:test";
import { systemClock } from "../../src/clock.ts";
import { log } from "../../src/log.ts";
import type { Destination, OutboundMail } from "../../src/smtp/client/delivery.ts";
import { createPool, IDLE_MS, MAX_WAITING_PER_DESTINATION, type Pool } from "../../src/smtp/client/pool.ts";
import { MAX_RESENDS, MAX_TRANSACTION_MS, MAX_TRYING_MS } from "../../src/smtp/client/pool-dispatch.ts";
import type { PoolOptions } from "../../src/smtp/client/pool-state.ts";
import { SHUN_MS } from "../../src/smtp/client/host-order.ts";
import { manualClock } from "../support/manual-clock.ts";
import { type MxOptions, startMx, type TestMx } from "../support/mx.ts";

const stops: (() => unknown)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0).reverse()) await stop();
});

function peer(options: MxOptions = {}): TestMx {
  const mx = startMx(options);
  stops.push(mx.stop);
  return mx;
}

function poolOf(options: Partial<PoolOptions> = {}, clock = systemClock): Pool {
  const pool = createPool({ clock, log: log("smtp") }, { maxConnectionsPerDestination: 1, ...options });
  stops.push(() => pool.close(0));
  return pool;
}

const mail = (subject: string): OutboundMail => ({
  mailFrom: "b+1@out.test",
  rcptTo: "to@in.test",
  raw: Buffer.from(`Subject: ${subject}\r\n\r\nx\r\n`),
});

/** The peers as hosts in order. They share a port, on separate addresses. */
function to(mxs: readonly TestMx[], change: Partial<Destination> = {}): Destination {
  const hosts = mxs.map((mx, at) => ({ name: `mx${at + 1}.test`, addresses: [mx.ip] }));
  return { key: "k", hosts, port: mxs[0]?.port ?? 0, tls: "opportunistic", ehloName: "us.test", ...change };
}

const subjects = (mx: TestMx): string[] =>
  mx.messages.items.map(({ data }) => data.toString().slice(9, data.indexOf("\r")));
const names = (count: number): string[] => Array.from({ length: count }, (_, at) => `m${at}`);

describe("kept connections", () => {
  test.each([["PIPELINING"], ["8BITMIME"]])(
    "one message after another, %s: all on one connection, in order",
    async (extension) => {
      const mx = peer({ extensions: [extension] });
      const pool = poolOf();
      for (const name of names(20))
        expect((await pool.deliver(to([mx]), mail(name))).result).toMatchObject({ code: 250 });
      expect(subjects(mx)).toEqual(names(20));
      expect(mx.connections.items).toHaveLength(1);
    },
  );

  test.each([["PIPELINING"], ["8BITMIME"]])(
    "all at once, %s: still one connection and the same order",
    async (extension) => {
      const mx = peer({ extensions: [extension] });
      const pool = poolOf();
      await Promise.all(names(200).map((name) => pool.deliver(to([mx]), mail(name))));
      expect(subjects(mx)).toEqual(names(200));
      expect(mx.connections.items).toHaveLength(1);
    },
  );

  test("the next MAIL is sent after the message before the reply to that arrives", async () => {
    const answer = Promise.withResolvers<string>();
    const mx = peer({ extensions: ["PIPELINING"], answers: { ".": [() => answer.promise, "250 second"] } });
    const pool = poolOf();
    const first = pool.deliver(to([mx]), mail("a"));
    const second = pool.deliver(to([mx]), mail("b"));
    await mx.commands.reached(4);
    answer.resolve("451 4.3.0 not this one");
    expect((await first).result).toMatchObject({ stage: "final", code: 451 });
    expect((await second).result).toMatchObject({ stage: "final", code: 250, text: "second" });
    expect(subjects(mx)).toEqual(["b"]);
    expect(
      mx.chunks.some((chunk) => chunk.startsWith("Subject") && chunk.includes("\r\n.\r\nRSET\r\nMAIL")),
    ).toBe(true);
  });

  /** Postfix, if a policy refuses a message at its end: the envelope stays, and the next MAIL is refused. */
  function keeper(extension: string, change: MxOptions["answers"] = {}): TestMx {
    let open = false;
    const opened = (): string => {
      if (open) return "503 5.5.1 nested MAIL command";
      open = true;
      return "250 ok";
    };
    const ended = (data: string): string => {
      open = data.includes("bad");
      return open ? "450 4.7.1 not this one" : "250 ok";
    };
    const reset = (): string => {
      open = false;
      return "250 ok";
    };
    return peer({ extensions: [extension], answers: { MAIL: opened, ".": ended, RSET: reset, ...change } });
  }

  test.each([["PIPELINING"], ["8BITMIME"]])(
    "if a peer refuses a message at its end and keeps its envelope, the next message is unaffected, %s",
    async (extension) => {
      const mx = keeper(extension);
      const pool = poolOf();
      const sent = ["bad1", "good1", "bad2", "bad3", "good2"];
      const reports = await Promise.all(sent.map((name) => pool.deliver(to([mx]), mail(name))));
      expect(reports.map(({ result }) => (result.kind === "reply" ? result.code : result))).toEqual([
        450, 250, 450, 450, 250,
      ]);
      expect(mx.connections.items).toHaveLength(1);
      const later = await pool.deliver(to([mx]), mail("good3"));
      expect(later.result).toMatchObject({ code: 250 });
    },
  );

  test("a peer that knows no RSET still gets commands sent ahead after an unanswered message", async () => {
    const mx = peer({ extensions: ["PIPELINING"], answers: { RSET: "502 5.5.1 not implemented" } });
    const pool = poolOf();
    const reports = await Promise.all(names(20).map((name) => pool.deliver(to([mx]), mail(name))));
    for (const { result } of reports) expect(result).toMatchObject({ stage: "final", code: 250 });
    expect(mx.commands.items).toContain("RSET");
    expect(mx.connections.items).toHaveLength(1);
  });

  test("after an answered message there is no envelope to reset", async () => {
    const mx = peer({ extensions: ["PIPELINING"] });
    const pool = poolOf();
    for (const name of names(3)) await pool.deliver(to([mx]), mail(name));
    expect(mx.commands.items).not.toContain("RSET");
    expect(mx.connections.items).toHaveLength(1);
  });

  test("kept connections pass to the next message if the peer cannot take the first", async () => {
    const mx = peer({ extensions: ["SIZE 100"] });
    const pool = poolOf();
    const large = { ...mail("large"), raw: Buffer.from(`Subject: large\r\n\r\n${"x".repeat(200)}\r\n`) };
    const results = await Promise.all(
      [large, mail("m0"), large, mail("m1")].map((each) => pool.deliver(to([mx]), each)),
    );
    expect(results.map(({ result }) => result.kind)).toEqual(["unsendable", "reply", "unsendable", "reply"]);
    expect(subjects(mx)).toEqual(names(2));
    expect(mx.connections.items).toHaveLength(1);
  });

  test("kept connections are limited over all destinations: the one unused for longest is closed", async () => {
    const mxs = [peer(), peer(), peer()] as const;
    const pool = poolOf({ maxIdle: 2 });
    const send = (at: 0 | 1 | 2) => pool.deliver(to([mxs[at]], { key: `k${at}` }), mail("x"));
    for (const at of [0, 1, 0, 2] as const) expect((await send(at)).result).toMatchObject({ code: 250 });
    await mxs[1].closed.reached(1);
    expect(mxs[1].commands.items.at(-1)).toBe("QUIT");
    expect(pool).toMatchObject({ connections: 2, queues: 2 });
    for (const at of [0, 2] as const) await send(at);
    expect(mxs.map(({ connections }) => connections.items.length)).toEqual([1, 1, 1]);
  });

  test("connections in use do not count as kept: no message waits, and none is lost", async () => {
    const answers = Promise.withResolvers<string>();
    const mx = peer({ answers: { ".": () => answers.promise } });
    const pool = poolOf({ maxConnectionsPerDestination: 5, maxIdle: 1 });
    const all = names(20).map((name) => pool.deliver(to([mx]), mail(name)));
    await mx.connections.reached(5);
    answers.resolve("250 ok");
    for (const { result } of await Promise.all(all)) expect(result).toMatchObject({ code: 250 });
    await mx.closed.reached(4);
    expect([pool.connections, mx.messages.items.length]).toEqual([1, 20]);
  });

  test("each message gets its own outcome", async () => {
    const verdict = (data: string): string => (data.includes("bad") ? "554 5.6.0 bad" : "250 ok");
    const mx = peer({
      answers: { ".": verdict, RCPT: (line) => (line.includes("gone") ? "550 5.1.1 gone" : "250 ok") },
    });
    const pool = poolOf({ maxConnectionsPerDestination: 3 });
    const kinds = ["good", "bad", "gone"];
    const outcomes = await Promise.all(
      Array.from({ length: 300 }, async (_, at) => {
        const kind = kinds[at % 3] ?? "";
        const given = { ...mail(kind), rcptTo: `${kind}@in.test` };
        return [kind, (await pool.deliver(to([mx]), given)).result] as const;
      }),
    );
    const expected = {
      good: { stage: "final", code: 250 },
      bad: { stage: "final", code: 554 },
      gone: { stage: "rcpt", code: 550 },
    };
    for (const [kind, result] of outcomes) expect(result).toMatchObject(expected[kind as "good"]);
    expect(mx.messages.items.filter(({ rcptTo }) => rcptTo.length > 0)).toHaveLength(100);
  });

  test("there are no more connections than allowed, and no more than messages", async () => {
    const answers = Promise.withResolvers<string>();
    const mx = peer({ answers: { ".": () => answers.promise }, extensions: [] });
    const pool = poolOf({ maxConnectionsPerDestination: 3 });
    const sent = names(10).map((name) => pool.deliver(to([mx]), mail(name)));
    await mx.connections.reached(3);
    answers.resolve("250 ok");
    await Promise.all(sent);
    expect(mx.connections.items).toHaveLength(3);
    await Promise.all(names(2).map((name) => pool.deliver(to([mx]), mail(name))));
    expect(mx.connections.items).toHaveLength(3);
  });

  test("a connection ends after its number of messages, and another replaces it", async () => {
    const mx = peer();
    const pool = poolOf({ maxMessagesPerConnection: 3 });
    await Promise.all(names(7).map((name) => pool.deliver(to([mx]), mail(name))));
    expect(mx.messages.items.map(({ connection }) => connection)).toEqual([1, 1, 1, 2, 2, 2, 3]);
    await mx.closed.reached(2);
    expect(mx.commands.items.filter((line) => line === "QUIT")).toHaveLength(2);
  });

  test("an unused connection is closed with QUIT after its time, and a used one later", async () => {
    const clock = manualClock();
    const mx = peer();
    const pool = poolOf({}, clock);
    await pool.deliver(to([mx]), mail("a"));
    clock.advance(IDLE_MS - 1);
    await pool.deliver(to([mx]), mail("b"));
    clock.advance(IDLE_MS - 1);
    expect(mx.commands.items).not.toContain("QUIT");
    clock.advance(1);
    await mx.closed.reached(1);
    expect(mx.commands.items.at(-1)).toBe("QUIT");
    await pool.deliver(to([mx]), mail("c"));
    expect(mx.connections.items).toHaveLength(2);
  });

  test.each([
    ["closed by the peer while it rested", (mx: TestMx) => mx.cut()],
    [
      "on which MAIL is answered with 421",
      (mx: TestMx) => mx.set({ MAIL: ["421 4.4.2 idle too long", "250 ok"] }),
    ],
    ["that hangs up at MAIL", (mx: TestMx) => mx.set({ MAIL: ["close", "250 ok"] })],
  ])("a message for a kept connection %s is sent over a new one", async (_, spoil) => {
    const mx = peer({ extensions: [] });
    const pool = poolOf();
    await pool.deliver(to([mx]), mail("a"));
    spoil(mx);
    expect((await pool.deliver(to([mx]), mail("b"))).result).toMatchObject({ stage: "final", code: 250 });
    expect(subjects(mx)).toEqual(["a", "b"]);
    expect(mx.connections.items).toHaveLength(2);
  });

  test("a message that loses each kept connection is retried a few times, and gets the last answer", async () => {
    const opened = Promise.withResolvers<string>();
    const mx = peer({ extensions: [], answers: { RCPT: () => opened.promise } });
    const connections = MAX_RESENDS + 3;
    const pool = poolOf({ maxConnectionsPerDestination: connections });
    const kept = names(connections).map((name) => pool.deliver(to([mx]), mail(name)));
    await mx.connections.reached(connections);
    opened.resolve("250 ok");
    await Promise.all(kept);
    mx.set({ MAIL: "421 4.4.2 idle too long" });
    expect((await pool.deliver(to([mx]), mail("late"))).result).toMatchObject({ stage: "mail", code: 421 });
    const tried = mx.commands.items.filter((line) => line.startsWith("MAIL")).length - connections;
    expect(tried).toBe(1 + MAX_RESENDS);
    expect(mx.connections.items).toHaveLength(connections);
  });

  test("if a peer hangs up at a message, the one that waits for it is sent once, over a new connection", async () => {
    const mx = peer({ extensions: ["PIPELINING"], answers: { ".": ["close", "250 ok"] } });
    const pool = poolOf();
    const [first, second] = await Promise.all([
      pool.deliver(to([mx]), mail("a")),
      pool.deliver(to([mx]), mail("b")),
    ]);
    expect(first?.result).toMatchObject({ kind: "trouble", stage: "final" });
    expect(second?.result).toMatchObject({ stage: "final", code: 250 });
    expect(subjects(mx)).toEqual(["b"]);
  });

  test("trouble with the message itself is never retried at once", async () => {
    const mx = peer({ answers: { ".": ["250 ok", "close"] } });
    const pool = poolOf();
    await pool.deliver(to([mx]), mail("a"));
    expect((await pool.deliver(to([mx]), mail("b"))).result).toMatchObject({
      kind: "trouble",
      stage: "final",
    });
    expect(mx.commands.items.filter((line) => line === ".")).toHaveLength(2);
  });

  test("destinations do not share connections", async () => {
    const mx = peer();
    const pool = poolOf();
    await pool.deliver(to([mx], { key: "a" }), mail("a"));
    await pool.deliver(to([mx], { key: "b" }), mail("b"));
    expect(mx.connections.items).toHaveLength(2);
  });
});

describe("hosts in order", () => {
  /** Two peers on one port at 127.0.0.1 and 127.0.0.2. */
  function two(first: MxOptions, second: MxOptions = {}): [TestMx, TestMx] {
    for (;;) {
      const a = startMx(first);
      try {
        const b = startMx({ ...second, ip: "127.0.0.2", port: a.port });
        stops.push(a.stop, b.stop);
        return [a, b];
      } catch {
        a.stop();
      }
    }
  }

  test.each([
    ["has no listener", {}],
    ["greets with 421", { banner: "421 busy" }],
    ["greets with 554", { banner: "554 no mail here" }],
    ["hangs up", { banner: "close" }],
    ["answers EHLO with 421", { answers: { EHLO: "421 busy" } }],
  ] as [string, MxOptions][])("the second host is tried where the first %s", async (name, options) => {
    const [first, second] = two(options);
    if (name === "has no listener") first.stop();
    const report = await poolOf().deliver(to([first, second]), mail("a"));
    expect(report).toMatchObject({ result: { code: 250 }, mx: "mx2.test", ip: "127.0.0.2" });
    expect(subjects(second)).toEqual(["a"]);
  });

  test("a refused recipient is not tried at the second host", async () => {
    const [first, second] = two({ answers: { RCPT: "550 no" } });
    expect(await poolOf().deliver(to([first, second]), mail("a"))).toMatchObject({
      result: { code: 550 },
      mx: "mx1.test",
    });
    expect(second.connections.items).toHaveLength(0);
  });

  test.each([
    ["421 busy", "554 no", 421],
    ["554 no", "421 busy", 421],
    ["554 one", "554 two", 554],
  ])("after the banners %j and %j the milder one is the outcome", async (one, other, code) => {
    const [first, second] = two({ banner: one }, { banner: other });
    expect((await poolOf().deliver(to([first, second]), mail("a"))).result).toMatchObject({
      stage: "connect",
      code,
    });
  });

  test("a host that failed is tried last for a while", async () => {
    const clock = manualClock();
    const [first, second] = two({ banner: "421 busy" });
    const pool = poolOf({ maxMessagesPerConnection: 1 }, clock);
    for (const [waitMs, connections] of [
      [0, 1],
      [SHUN_MS - 1, 1],
      [1, 2],
    ] as const) {
      clock.advance(waitMs);
      await pool.deliver(to([first, second]), mail("a"));
      expect(first.connections.items).toHaveLength(connections);
    }
  });

  test.each([1, 4])(
    "all waiting messages fail at once if no host can be reached, over %d connections",
    async (connections) => {
      const [first, second] = two({ banner: "421 one" }, { banner: "421 two" });
      const pool = poolOf({ maxConnectionsPerDestination: connections });
      const all = await Promise.all(names(50).map((name) => pool.deliver(to([first, second]), mail(name))));
      for (const { result } of all) expect(result).toMatchObject({ stage: "connect", code: 421 });
      expect(all[49]?.transcript).toContain("S: 421 two");
      expect(first.connections.items).toHaveLength(connections);
    },
  );

  test.each([
    [-1, 1],
    [0, 0],
  ])(
    "an address is tried %d ms after the deadline for all began: %d connections",
    async (fromLimit, connections) => {
      const clock = manualClock();
      const [first, second] = two({ banner: "silent" });
      const greeting = MAX_TRYING_MS + fromLimit;
      const delivered = poolOf({ timeouts: { greeting } }, clock).deliver(to([first, second]), mail("a"));
      await first.connections.reached(1);
      await clock.armed(greeting);
      clock.advance(greeting);
      if (connections > 0) expect((await delivered).result).toMatchObject({ code: 250 });
      else expect(await delivered).toMatchObject({ result: { reason: "timeout" }, mx: "mx1.test" });
      expect(second.connections.items).toHaveLength(connections);
    },
  );

  test("if no server listens, the transcript says so", async () => {
    const mx = peer();
    mx.stop();
    const { transcript, result } = await poolOf().deliver(to([mx]), mail("a"));
    expect(result).toMatchObject({ kind: "trouble", stage: "connect" });
    expect(transcript.join("\n")).toMatch(/^\* connect: .*ECONNREFUSED/m);
  });

  test("without any address the delivery fails temporarily", async () => {
    expect((await poolOf().deliver(to([]), mail("a"))).result).toMatchObject({
      kind: "trouble",
      stage: "connect",
    });
  });
});

describe("a peer that accepts few connections", () => {
  test("a peer that accepts few connections gets its messages over those it accepts", async () => {
    const mx = peer();
    const gate = Promise.withResolvers<string>();
    mx.set({ ".": [() => gate.promise, "250 ok"] });
    const clock = manualClock();
    const pool = poolOf({ maxConnectionsPerDestination: 4 }, clock);
    const first = pool.deliver(to([mx]), mail("first"));
    await mx.commands.reached(4);
    // From now on the listener is gone, so no further connection is possible while the first one is open.
    mx.stopListening();
    const others = names(6).map((name) => pool.deliver(to([mx]), mail(name)));
    gate.resolve("250 ok");
    for (const { result } of await Promise.all([first, ...others]))
      expect(result).toMatchObject({ code: 250 });
    expect(mx.connections.items).toHaveLength(1);
  });
});

describe("giving up", () => {
  test("an aborted delivery that waits is not sent", async () => {
    const gate = Promise.withResolvers<string>();
    const mx = peer({ answers: { ".": [() => gate.promise, "250 ok"] }, extensions: [] });
    const pool = poolOf();
    const first = pool.deliver(to([mx]), mail("a"));
    const controller = new AbortController();
    const second = pool.deliver(to([mx]), mail("b"), controller.signal);
    controller.abort();
    expect((await second).result).toEqual({ kind: "trouble", stage: "connect", reason: "aborted" });
    gate.resolve("250 ok");
    await first;
    expect(subjects(mx)).toEqual(["a"]);
    expect((await pool.deliver(to([mx]), mail("c"), AbortSignal.abort())).result).toMatchObject({
      reason: "aborted",
    });
  });

  test("an aborted delivery under way ends, if it is alone on its connection", async () => {
    const mx = peer({ answers: { RCPT: "silent" } });
    const pool = poolOf();
    const controller = new AbortController();
    const sent = pool.deliver(to([mx]), mail("a"), controller.signal);
    await mx.commands.reached(3);
    controller.abort();
    expect((await sent).result).toMatchObject({ kind: "trouble", reason: "aborted" });
    await mx.closed.reached(1);
  });

  test("aborted deliveries that share a connection end once all of them are aborted or finished", async () => {
    const gate = Promise.withResolvers<string>();
    const mx = peer({ answers: { ".": [() => gate.promise, "silent"] } });
    const pool = poolOf();
    const controllers = names(3).map(() => new AbortController());
    const sent = controllers.map(({ signal }, at) => pool.deliver(to([mx]), mail(`m${at}`), signal));
    await mx.commands.reached(4);
    controllers[1]?.abort();
    controllers[2]?.abort();
    gate.resolve("250 ok");
    const [first, ...others] = await Promise.all(sent);
    expect(first?.result).toMatchObject({ code: 250 });
    for (const { result } of others) expect(result).toMatchObject({ kind: "trouble", reason: "aborted" });
    expect(subjects(mx)).toEqual(["m0"]);
  });

  test("a transaction without end is cut when its total time is over", async () => {
    const clock = manualClock();
    const mx = peer({ answers: { ".": "silent" } });
    const pool = poolOf({ timeouts: { final: 2 * MAX_TRANSACTION_MS } }, clock);
    let ended = false;
    const sent = pool.deliver(to([mx]), mail("a")).finally(() => {
      ended = true;
    });
    await mx.commands.reached(5);
    clock.advance(MAX_TRANSACTION_MS - 1);
    await new Promise<void>((resolve) => setImmediate(resolve));
    expect(ended).toBe(false);
    clock.advance(1);
    expect((await sent).result).toMatchObject({
      kind: "trouble",
      stage: "final",
      reason: "the transaction took too long",
    });
  });

  test("one delivery over the limit is deferred", async () => {
    const mx = peer({ banner: "silent" });
    const pool = poolOf();
    const waiting = names(MAX_WAITING_PER_DESTINATION).map((name) => pool.deliver(to([mx]), mail(name)));
    expect((await pool.deliver(to([mx]), mail("x"))).result).toMatchObject({
      reason: "too many deliveries wait",
    });
    await pool.close(0);
    for (const { result } of await Promise.all(waiting))
      expect(result).toMatchObject({ reason: "shutting down" });
  });
});

describe("closing", () => {
  test("finishes running deliveries, answers waiting ones, and sends QUIT", async () => {
    const gate = Promise.withResolvers<string>();
    const mx = peer({ answers: { ".": () => gate.promise }, extensions: [] });
    const pool = poolOf();
    const first = pool.deliver(to([mx]), mail("a"));
    const second = pool.deliver(to([mx]), mail("b"));
    await mx.commands.reached(4);
    const closed = pool.close(60_000);
    expect((await second).result).toEqual({ kind: "trouble", stage: "connect", reason: "shutting down" });
    expect((await pool.deliver(to([mx]), mail("c"))).result).toMatchObject({ reason: "shutting down" });
    gate.resolve("250 ok");
    expect((await first).result).toMatchObject({ code: 250 });
    await closed;
    await mx.closed.reached(1);
    expect(mx.commands.items.at(-1)).toBe("QUIT");
  });

  test("cuts deliveries that are still running when the grace period is over", async () => {
    const clock = manualClock();
    const mx = peer({ answers: { ".": "silent" } });
    const pool = poolOf({}, clock);
    const sent = pool.deliver(to([mx]), mail("a"));
    await mx.commands.reached(5);
    const closed = pool.close(20_000);
    clock.advance(20_000);
    await closed;
    expect((await sent).result).toMatchObject({ kind: "trouble", stage: "final", reason: "shutting down" });
  });
});
