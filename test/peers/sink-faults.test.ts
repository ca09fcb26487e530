import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { readyToSend, type Sending } from "../support/peers/exchange.ts";
import { SINK_MISSING, type Sink, startSink } from "../support/peers/sink.ts";
import { newFolder } from "../support/folder.ts";
import { freePort } from "../support/redis.ts";
import { startService, type TestService } from "../support/service.ts";

/** Messages sent to each sink at once. All together stay below the 200 at which bounces suspend a project. */
const MESSAGES = 4;
const LIMIT_MS = 90_000;
setDefaultTimeout(LIMIT_MS);

interface End {
  status: string;
  /** The fields of the event of the end. */
  data?: object;
  /** Number of copies of each message in the sink. Absent if the sink hangs up on a message it may have. */
  taken?: number;
}

const DELIVERED: End = { status: "delivered", taken: 1 };
const UNKNOWN = ["-B", "550 5.1.1 User unknown"];
const failed = (category: string): End => ({
  status: "failed",
  data: { failed: { reason: category } },
  taken: 0,
});
const HARD: End = { status: "bounced", data: { bounce: { type: "hard", category: "recipient" } }, taken: 0 };
/** Tried until given up, because the peer never gives a final reply. */
const GIVEN_UP: End = { status: "bounced", data: { bounce: { type: "soft" } }, taken: 0 };
const GIVEN_UP_LATE: End = { status: "bounced", data: { bounce: { type: "soft" } } };

const SINKS: readonly (readonly [what: string, switches: readonly string[], end: End])[] = [
  ["as it comes", [], DELIVERED],
  ["without 8BITMIME", ["-8"], DELIVERED],
  ["without AUTH", ["-a"], DELIVERED],
  ["without ESMTP", ["-e"], DELIVERED],
  ["without ENHANCEDSTATUSCODES", ["-E"], DELIVERED],
  ["without DSN", ["-N"], DELIVERED],
  ["without PIPELINING", ["-p"], DELIVERED],
  ["through a PIX", ["-P"], DELIVERED],
  ["slow to take DATA", ["-w", "1"], DELIVERED],
  ["slow to greet", ["-W", "connect:1"], DELIVERED],
  ["slow to answer EHLO", ["-W", "ehlo:1"], DELIVERED],
  // With -p it answers commands sent ahead before the message, so that each reply belongs to another command.
  ["slow to answer the message", ["-p", "-W", ".:1"], DELIVERED],
  ["slow to read the message", ["-H", "1"], DELIVERED],
  ["with a window of a few octets", ["-T", "200"], DELIVERED],

  ["that refuses connections for good", ["-f", "connect"], failed("infrastructure")],
  ["that refuses EHLO and HELO for good", ["-f", "ehlo,helo"], failed("infrastructure")],
  ["that refuses EHLO, not HELO", ["-f", "ehlo"], DELIVERED],
  ["that refuses MAIL for good", ["-f", "mail"], failed("infrastructure")],
  ["that refuses RCPT for good", ["-f", "rcpt"], failed("infrastructure")],
  ["that refuses DATA for good", ["-f", "data"], failed("infrastructure")],
  ["that refuses the message for good", ["-f", "."], { ...failed("infrastructure"), taken: 1 }],
  ["that refuses RSET and QUIT", ["-f", "rset,quit"], DELIVERED],
  ["that knows no such user at RCPT", ["-f", "rcpt", ...UNKNOWN], HARD],
  ["that knows no such user at the message", ["-f", ".", ...UNKNOWN], { ...HARD, taken: 1 }],
  ["that says so of the sender at MAIL", ["-f", "mail", ...UNKNOWN], failed("policy")],
  ["that aborts a message with 550, unread", ["-A", "1"], failed("other")],

  ["that refuses connections for now", ["-r", "connect"], GIVEN_UP],
  ["that refuses EHLO for now", ["-r", "ehlo,helo"], GIVEN_UP],
  ["that refuses MAIL for now", ["-r", "mail"], GIVEN_UP],
  ["that refuses RCPT for now", ["-r", "rcpt"], GIVEN_UP],
  ["that refuses DATA for now", ["-r", "data"], GIVEN_UP],
  ["that refuses the message for now", ["-r", "."], GIVEN_UP_LATE],
  ["that is full for now", ["-r", "rcpt", "-b", "452 4.2.2 Mailbox full"], GIVEN_UP],

  ["that hangs up on connections", ["-q", "connect"], GIVEN_UP],
  ["that hangs up at EHLO", ["-q", "ehlo"], GIVEN_UP],
  ["that hangs up at MAIL", ["-q", "mail"], GIVEN_UP],
  ["that hangs up at RCPT", ["-q", "rcpt"], GIVEN_UP],
  ["that hangs up at DATA", ["-q", "data"], GIVEN_UP],
  ["that hangs up at the message's end", ["-q", "."], GIVEN_UP_LATE],
  ["that hangs up at QUIT", ["-q", "quit"], DELIVERED],
  ["that closes with 421 at EHLO", ["-Q", "ehlo"], GIVEN_UP],
  ["that closes with 421 at MAIL", ["-Q", "mail"], GIVEN_UP],
  ["that closes with 421 at RCPT", ["-Q", "rcpt"], GIVEN_UP],
  ["that closes with 421 at DATA", ["-Q", "data"], GIVEN_UP],
  ["that closes with 421 at the message's end", ["-Q", "."], GIVEN_UP_LATE],
];

const port = freePort();
const ipOf = (at: number): string => `127.0.1.${at + 1}`;

const PEER = SINK_MISSING === null ? "smtp-sink" : `smtp-sink (skipped: ${SINK_MISSING})`;

describe.skipIf(SINK_MISSING !== null)(PEER, () => {
  let service: TestService;
  let sending: Sending;
  let sinks: Sink[];
  const sent = new Map<number, string[]>();

  /** All sinks at once, each at its own address, so that their delays pass in parallel. */
  beforeAll(async () => {
    service = await startService({
      DELIVERY: "mx",
      SMTP_OUT_PORT: String(port),
      DELIVERY_RETRY_SECONDS: "1",
      DELIVERY_GIVE_UP_SECONDS: "1",
    });
    sending = await readyToSend(service);
    const starting = SINKS.map(([, switches], at) => start(at, switches));
    sinks = await Promise.all(starting);
    for (const at of SINKS.keys()) sent.set(at, await sendTo(at));
  }, LIMIT_MS);
  afterAll(async () => {
    await service?.stop();
    for (const sink of sinks ?? []) await sink.stop();
  });

  async function start(at: number, switches: readonly string[]): Promise<Sink> {
    service.dns.add({ name: `sink${at}.test`, type: "A", data: ipOf(at) });
    const folder = newFolder("sink");
    return startSink({ ip: ipOf(at), port }, switches, folder);
  }

  function sendTo(at: number): Promise<string[]> {
    const content = { subject: "Hello", text: "Hello,\n.dots\n".repeat(100) };
    return Promise.all(
      Array.from({ length: MESSAGES }, (_, n) => sending.send(`user${n}@sink${at}.test`, content)),
    );
  }

  const rows = SINKS.map(([what, switches, end], at) => [what, switches.join(" "), at, end] as const);
  test.each(rows)(
    "%s (%s): each message comes to its end, once",
    async (_what, _switches, at, { status, data, taken }) => {
      for (const id of sent.get(at) ?? []) {
        const { recipients, events } = await sending.ended(id, status);
        expect(recipients).toMatchObject([{ status }]);
        const last = events
          .filter(({ type }: { type: string }) => !["sending", "open"].includes(type))
          .at(-1);
        if (data !== undefined) expect(last.data).toMatchObject(data);
        expect(events.filter(({ type }: { type: string }) => type === last.type)).toHaveLength(1);
      }
      if (taken === undefined) return;
      const expected = Array.from({ length: MESSAGES }, (_, n) => `user${n}@sink${at}.test`);
      expect(sinks[at]?.taken().sort()).toEqual(expected.flatMap((to) => Array(taken).fill(to)));
    },
  );
});

test.skipIf(SINK_MISSING !== null)(
  "messages that a peer defers arrive, each once, when it recovers",
  async () => {
    const address = { ip: "127.0.2.1", port: freePort() };
    const service = await startService({
      DELIVERY: "mx",
      SMTP_OUT_PORT: String(address.port),
      DELIVERY_RETRY_SECONDS: "1",
    });
    const sending = await readyToSend(service);
    service.dns.add({ name: "sink.test", type: "A", data: address.ip });
    const ill = await startSink(address, ["-r", "rcpt"], newFolder("sink"));
    const users = Array.from({ length: 20 }, (_, n) => `user${10 + n}@sink.test`);
    const ids = await Promise.all(users.map((to) => sending.send(to)));
    for (const id of ids) await service.message(id, "delivery_delayed");
    await ill.stop();
    const well = await startSink(address, [], newFolder("sink"));
    for (const id of ids) await service.message(id, "delivered");
    expect(well.taken().sort()).toEqual(users);
    await service.stop();
    await well.stop();
  },
);
