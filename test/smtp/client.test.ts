import { beforeAll, describe, expect, test } from "bun:test";
import type { Timeouts } from "../../src/smtp/client/delivery.ts";
import { manualClock } from "../support/manual-clock.ts";
import type { MxOptions, TestMx } from "../support/mx.ts";
import { type KeyAndCert, makeCert } from "../support/tls.ts";
import { clientHarness, destination, MAIL, RAW } from "./client-harness.ts";

const { peer, pool, send } = clientHarness();
let cert: KeyAndCert;

beforeAll(async () => {
  cert = await makeCert(["mx.test"]);
});

describe("a message", () => {
  test("a message arrives octet for octet, stuffed on the wire", async () => {
    const mx = peer();
    const report = await send(mx);
    expect(report.result).toEqual({
      kind: "reply",
      stage: "final",
      code: 250,
      enhanced: "2.0.0",
      text: "taken",
    });
    const { data, wire, mailFrom, rcptTo } = await mx.messages.reached(1);
    expect({ mailFrom, rcptTo }).toEqual({ mailFrom: "b+1@out.test", rcptTo: ["to@in.test"] });
    expect(data).toEqual(RAW);
    expect(wire.toString()).toBe("Subject: x\r\n\r\n..dots\r\n...\r\nend\r\n");
  });

  test("a message of 20 MB arrives whole over TLS", async () => {
    const mx = peer({ extensions: ["PIPELINING"], tls: cert });
    const raw = Buffer.from("0123456789abcdef.\r\n.".repeat(1_000_000));
    await send(mx, { mail: { raw } });
    const { data, tls } = await mx.messages.reached(1);
    expect(tls).toBe(true);
    expect(Bun.hash(data)).toBe(Bun.hash(Buffer.concat([raw, Buffer.from("\r\n")])));
  });

  test.each([
    [["PIPELINING"], ["MAIL FROM:<b+1@out.test>\r\nRCPT TO:<to@in.test>\r\nDATA\r\n"]],
    [[], ["MAIL FROM:<b+1@out.test>\r\n", "RCPT TO:<to@in.test>\r\n", "DATA\r\n"]],
  ])("a message is sent after %j in bursts %j", async (extensions, bursts) => {
    const mx = peer({ extensions });
    await send(mx);
    expect(mx.chunks.slice(1, 1 + bursts.length)).toEqual(bursts);
  });

  test("a message is sent to a peer that only knows HELO", async () => {
    const mx = peer({ answers: { EHLO: "500 what" } });
    expect((await send(mx)).result).toMatchObject({ stage: "final", code: 250 });
    const commands = ["EHLO us.test", "HELO us.test", "MAIL FROM:<b+1@out.test>"];
    expect(mx.commands.items.slice(0, 3)).toEqual(commands);
    // One command at a time, because it has not announced pipelining.
    expect(mx.chunks.slice(0, 3)).toEqual(commands.map((command) => `${command}\r\n`));
    const { result } = await send(mx, { mail: { smtpUtf8: true } });
    expect(result).toMatchObject({ kind: "unsendable", code: 553, enhanced: "5.6.7" });
  });

  test("a null reverse-path is sent as <>", async () => {
    const mx = peer({ extensions: [] });
    await send(mx, { mail: { mailFrom: "" } });
    expect(mx.commands.items).toContain("MAIL FROM:<>");
  });

  const eightBit = Buffer.from("Subject: x\r\n\r\ngrüß\r\n");
  test.each([
    [["SIZE"], {}, ` SIZE=${RAW.length}`],
    [["8BITMIME"], {}, ""],
    [["8BITMIME"], { raw: eightBit }, " BODY=8BITMIME"],
    [["SMTPUTF8", "8BITMIME"], { smtpUtf8: true }, " SMTPUTF8"],
    [["SMTPUTF8", "8BITMIME"], { rcptTo: "grüß@in.test" }, " SMTPUTF8"],
  ])("MAIL for %j %j has %j", async (extensions, mail, parameters) => {
    const mx = peer({ extensions });
    expect((await send(mx, { mail })).result.kind).toBe("reply");
    expect(mx.commands.items[1]).toBe(`MAIL FROM:<b+1@out.test>${parameters}`);
  });

  test.each([
    [[`SIZE ${RAW.length - 1}`], {}, 552, "5.3.4"],
    [["PIPELINING"], { raw: eightBit }, 554, "5.6.3"],
    [["PIPELINING"], { eightBit: true }, 554, "5.6.3"],
    [["8BITMIME"], { smtpUtf8: true }, 553, "5.6.7"],
    [["8BITMIME"], { rcptTo: "grüß@in.test" }, 553, "5.6.7"],
    [[], { rcptTo: "a@b>\r\nRSET\r\n<" }, 553, "5.1.3"],
    [[], { rcptTo: "a b@c" }, 553, "5.1.3"],
    [[], { rcptTo: "" }, 553, "5.1.3"],
    [[], { mailFrom: "a@b> SIZE=1" }, 553, "5.1.7"],
  ])(
    "a message to a peer with %j is not sent if it has %j: %d %s",
    async (extensions, mail, code, enhanced) => {
      const mx = peer({ extensions });
      expect((await send(mx, { mail })).result).toMatchObject({
        kind: "unsendable",
        stage: "mail",
        code,
        enhanced,
      });
      expect(mx.commands.items.filter((line) => !/^(EHLO|QUIT)/.test(line))).toEqual([]);
    },
  );
});

describe("replies", () => {
  const rows: [
    name: string,
    options: MxOptions,
    stage: string,
    code: number,
    enhanced: string | null,
    text: string,
  ][] = [
    ["banner 554", { banner: "554 5.7.1 go away" }, "connect", 554, "5.7.1", "go away"],
    [
      "a message accepted with a line of 100 KB",
      { answers: { ".": `250 2.0.0 ${"x".repeat(100_000)}` } },
      "final",
      250,
      "2.0.0",
      "x".repeat(2000),
    ],
    [
      "a message accepted with a thousand lines",
      { answers: { ".": `${"250-\r\n".repeat(999)}250 ok` } },
      "final",
      250,
      null,
      `${" ".repeat(127)}ok`,
    ],
    [
      "a message accepted with two codes",
      { answers: { ".": "250-queued\r\n251 as 1" } },
      "final",
      251,
      null,
      "queued as 1",
    ],
    ["banner 421", { banner: "421 busy" }, "connect", 421, null, "busy"],
    ["EHLO 421", { answers: { EHLO: "421 busy" } }, "ehlo", 421, null, "busy"],
    ["EHLO and HELO 550", { answers: { EHLO: "550 no", HELO: "550 5.7.1 no" } }, "ehlo", 550, "5.7.1", "no"],
    [
      "EHLO 554, and hanging up at HELO",
      { answers: { EHLO: "554 5.7.1 listed", HELO: "close" } },
      "ehlo",
      554,
      "5.7.1",
      "listed",
    ],
    ["MAIL 450", { answers: { MAIL: "450 4.7.1 greylisted" } }, "mail", 450, "4.7.1", "greylisted"],
    ["RCPT 550", { answers: { RCPT: "550-5.1.1 no\r\n550 5.1.1 user" } }, "rcpt", 550, "5.1.1", "no user"],
    ["RCPT 550, DATA 503", { answers: { RCPT: "550 no", DATA: "503 order" } }, "rcpt", 550, null, "no"],
    [
      "RCPT 452 and 421 behind it",
      { answers: { RCPT: "452 full", DATA: "421 bye" } },
      "rcpt",
      452,
      null,
      "full",
    ],
    ["DATA 451", { answers: { DATA: "451 later" } }, "data", 451, null, "later"],
    ["final 554", { answers: { ".": "554 5.6.0 spam" } }, "final", 554, "5.6.0", "spam"],
    ["final 421", { answers: { ".": "421 4.3.2 bye" } }, "final", 421, "4.3.2", "bye"],
  ];
  for (const extensions of [["PIPELINING"], []])
    test.each(rows)(
      `%s, extensions ${JSON.stringify(extensions)}`,
      async (_, options, stage, code, enhanced, text) => {
        const mx = peer({ ...options, extensions });
        expect((await send(mx)).result).toEqual({
          kind: "reply",
          stage: stage as "rcpt",
          code,
          enhanced,
          text,
        });
        expect(mx.messages.items).toHaveLength(code < 300 ? 1 : 0);
      },
    );

  test("if DATA is accepted although the recipient is not, the client sends an empty message", async () => {
    const mx = peer({
      extensions: ["PIPELINING"],
      answers: { RCPT: ["550 no", "250 ok"], ".": ["554 no valid recipients", "250 ok"] },
    });
    const shared = pool();
    expect((await shared.deliver(destination(mx), MAIL)).result).toMatchObject({ stage: "rcpt", code: 550 });
    expect((await shared.deliver(destination(mx), MAIL)).result).toMatchObject({ stage: "final", code: 250 });
    expect(mx.messages.items.map(({ data }) => data)).toEqual([RAW]);
    expect(mx.connections.items).toHaveLength(1);
    expect(mx.commands.items.slice(1)).toEqual([
      "MAIL FROM:<b+1@out.test>",
      "RCPT TO:<to@in.test>",
      "DATA",
      ".",
      "RSET",
      "MAIL FROM:<b+1@out.test>",
      "RCPT TO:<to@in.test>",
      "DATA",
      ".",
    ]);
  });

  test("if MAIL is refused, no empty message reaches an accepted recipient", async () => {
    const mx = peer({ extensions: ["PIPELINING"], answers: { MAIL: "450 no" } });
    expect((await send(mx)).result).toMatchObject({ stage: "mail", code: 450 });
    await mx.closed.reached(1);
    expect(mx.commands.items).not.toContain(".");
  });
});

describe("a 2xx of any kind", () => {
  test.each([
    { banner: "250 hello" },
    { answers: { EHLO: "220 mx.test" } },
    { answers: { EHLO: "500 what", HELO: "299 mx.test" } },
    { answers: { MAIL: "251 ok", RCPT: "252 ok", ".": "299 ok" } },
  ])("a 2xx of any kind counts as yes: %j", async (options) => {
    expect((await send(peer(options))).result).toMatchObject({ stage: "final", kind: "reply" });
  });
});

test.each(["no reply", "250-a\r\n550 b", "250 and another", "421 bye"])(
  "a yes to the message counts even if %j comes after it",
  async (behind) => {
    const mx = peer({ answers: { ".": `250 2.0.0 taken\r\n${behind}` } });
    expect((await send(mx)).result).toEqual({
      kind: "reply",
      stage: "final",
      code: 250,
      enhanced: "2.0.0",
      text: "taken",
    });
  },
);

describe("trouble", () => {
  const rows: [name: string, options: MxOptions, stage: string, reason: string][] = [
    ["hangs up at once", { banner: "close" }, "connect", "closed"],
    ["is no SMTP server", { banner: "HTTP/1.1 400 Bad Request" }, "connect", "protocol error"],
    ["speaks before its turn", { banner: "220 hi\r\n250 too early" }, "ehlo", "too early"],
    [
      "is closing in one piece with its EHLO reply",
      { answers: { EHLO: "250 hi\r\n421 no" } },
      "ehlo",
      "421 no",
    ],
    ["sends more than one reply", { answers: { EHLO: "250 hi\r\n250 hi" } }, "ehlo", "closed with 250 hi"],
    ["continues in another protocol", { answers: { EHLO: "250 hi\r\n<html>" } }, "ehlo", "protocol error"],
    ["hangs up at EHLO and HELO", { answers: { EHLO: "502 what", HELO: "close" } }, "ehlo", "closed"],
    ["hangs up at MAIL", { answers: { MAIL: "close" }, extensions: [] }, "mail", "closed"],
    ["hangs up at RCPT", { answers: { RCPT: "close" }, extensions: [] }, "rcpt", "closed"],
    ["hangs up at DATA", { answers: { DATA: "close" } }, "data", "closed"],
    ["hangs up at the message", { answers: { ".": "close" } }, "final", "closed"],
    ["greets with 354", { banner: "354 go" }, "connect", "protocol error: 354 go"],
    ["answers EHLO with 354", { answers: { EHLO: "354 go" } }, "ehlo", "protocol error: 354 go"],
    [
      "answers HELO with 354",
      { answers: { EHLO: "500 what", HELO: "354 go" } },
      "ehlo",
      "protocol error: 354 go",
    ],
    ["answers DATA with 250", { answers: { DATA: "250 ok" } }, "data", "DATA answered with 250 ok"],
    ["answers MAIL with 354", { answers: { MAIL: "354 go" } }, "mail", "MAIL answered with 354 go"],
    ["answers the message with 354", { answers: { ".": "354 go" } }, "final", "answered with 354 go"],
    ["never ends its reply", { answers: { EHLO: `250-x\r\n`.repeat(40_000) } }, "ehlo", "too long"],
    ["sends a line without end", { banner: `220 ${"x".repeat(300_000)}` }, "connect", "too long"],
  ];
  test.each(rows)("a peer that %s", async (_, options, stage, reason) => {
    const mx = peer(options);
    expect((await send(mx)).result).toEqual({
      kind: "trouble",
      stage: stage as "rcpt",
      reason: expect.stringContaining(reason),
    });
    expect(mx.connections.items).toHaveLength(1);
  });

  test("no listener is trouble at connect", async () => {
    const mx = peer();
    mx.stop();
    expect((await send(mx)).result).toMatchObject({
      stage: "connect",
      reason: expect.stringContaining("ECONNREFUSED"),
    });
  });

  const silent: [stage: string, options: MxOptions, timeouts: Partial<Timeouts>, commands: number][] = [
    ["connect", { banner: "silent" }, { greeting: 77_000 }, 0],
    ["ehlo", { answers: { EHLO: "silent" } }, { ehlo: 77_000 }, 1],
    ["mail", { answers: { MAIL: "silent" }, extensions: [] }, { mail: 77_000 }, 2],
    ["rcpt", { answers: { RCPT: "silent" }, extensions: [] }, { rcpt: 77_000 }, 3],
    ["data", { answers: { DATA: "silent" } }, { data: 77_000 }, 4],
    ["final", { answers: { ".": "silent" } }, { final: 77_000 }, 5],
  ];
  test.each(silent)("silence at %s ends with its own timeout", async (stage, options, timeouts, commands) => {
    const mx = peer(options);
    const clock = manualClock();
    const sent = send(mx, { clock, timeouts });
    await clock.armed(77_000);
    if (commands > 0) await mx.commands.reached(commands);
    clock.advance(76_999);
    expect(await Promise.race([sent, Promise.resolve("waiting")])).toBe("waiting");
    clock.advance(1);
    expect((await sent).result).toEqual({ kind: "trouble", stage: stage as "rcpt", reason: "timeout" });
    await mx.closed.reached(1);
  });

  /** A message that its peer has completely, and an hour during which no timer ran. */
  async function afterAnHour() {
    const [asked, said] = [Promise.withResolvers<void>(), Promise.withResolvers<string>()];
    const answer = (): Promise<string> => {
      asked.resolve();
      return said.promise;
    };
    const clock = manualClock();
    const sent = send(peer({ answers: { ".": answer } }), { clock, timeouts: { final: 77_000 } });
    await clock.armed(77_000);
    await asked.promise;
    clock.stall(3_600_000);
    clock.advance(77_000);
    return { clock, sent, say: said.resolve };
  }

  test("an hour in which the process stood still does not count as the peer's silence", async () => {
    const { sent, say } = await afterAnHour();
    say("250 taken");
    expect((await sent).result).toMatchObject({ kind: "reply", code: 250 });
  });

  test("a peer that is silent after such an hour has its time once more, and no longer", async () => {
    const { clock, sent } = await afterAnHour();
    clock.advance(77_000);
    expect((await sent).result).toEqual({ kind: "trouble", stage: "final", reason: "timeout" });
  });

  test("a peer that stops reading in the middle of a message is given up", async () => {
    const mx = Bun.listen({
      hostname: "127.0.0.1",
      port: 0,
      socket: {
        open: (socket) => void socket.write("220 hi\r\n"),
        data(socket, chunk) {
          const text = chunk.toString("latin1");
          if (text.startsWith("EHLO")) socket.write("250-x\r\n250 PIPELINING\r\n");
          if (text.startsWith("MAIL")) {
            socket.write("250 ok\r\n250 ok\r\n354 go\r\n");
            socket.pause();
          }
        },
      },
    });
    const to = { hosts: [{ name: "x", addresses: ["127.0.0.1"] }], port: mx.port };
    const raw = Buffer.alloc(30_000_000, "x\r\n");
    const report = await send({ ip: "127.0.0.1", port: mx.port } as TestMx, {
      to,
      mail: { raw },
      timeouts: { block: 300, final: 600_000 },
    });
    expect(report.result).toEqual({ kind: "trouble", stage: "final", reason: "timeout" });
    mx.stop(true);
  });

  test.each([
    ["554 5.3.4 too big", { kind: "reply", stage: "final", code: 554 }],
    ["250 ok", { kind: "trouble", stage: "final", reason: expect.stringContaining("before its end") }],
  ])("a reply of %j before the message is complete", async (answer, expected) => {
    const mx = Bun.listen({
      hostname: "127.0.0.1",
      port: 0,
      socket: {
        open: (socket) => void socket.write("220 hi\r\n"),
        data(socket, chunk) {
          const text = chunk.toString("latin1");
          if (text.startsWith("EHLO")) socket.write("250-x\r\n250 PIPELINING\r\n");
          else if (text.startsWith("MAIL")) socket.write("250 ok\r\n250 ok\r\n354 go\r\n");
          else {
            socket.write(`${answer}\r\n`);
            socket.pause();
          }
        },
      },
    });
    const to = { hosts: [{ name: "x", addresses: ["127.0.0.1"] }], port: mx.port };
    const report = await send({ ip: "127.0.0.1", port: mx.port } as TestMx, {
      to,
      mail: { raw: Buffer.alloc(30_000_000, "x\r\n") },
    });
    expect(report.result).toMatchObject(expected);
    mx.stop(true);
  });
});

test("the transcript has commands and replies, but no part of the message", async () => {
  const mx = peer({ extensions: ["PIPELINING"] });
  const { transcript } = await send(mx);
  expect(transcript).toEqual([
    `* connecting to mx.test [127.0.0.1]:${mx.port}`,
    "S: 220 mx.test ESMTP",
    "C: EHLO us.test",
    "S: 250 mx.test PIPELINING",
    "C: MAIL FROM:<b+1@out.test>",
    "C: RCPT TO:<to@in.test>",
    "C: DATA",
    "S: 250 ok",
    "S: 250 ok",
    "S: 354 go on",
    `C: (message of ${RAW.length} octets)`,
    "S: 250 2.0.0 taken",
  ]);
});
