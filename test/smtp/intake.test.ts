import { expect, test } from "bun:test";
import { PHASE_TIMEOUT_MS, TRANSACTION_TIMEOUT_MS } from "../../src/smtp/listener/deadline.ts";
import { FREE_OCTETS, PROGRESS_MS } from "../../src/smtp/listener/intake.ts";
import { until } from "../support/poll.ts";
import { Client, type Server, signal, startServer, TAKEN } from "./server-harness.ts";

const MAX = 256 * 1024;
/** The listener's own limit: one and a half of the largest messages. */
const LIMIT = 1.5 * MAX;
/** Octets that Bun reads from a socket at a time. */
const ONE_READ = 512 * 1024;
const LINE = `${"x".repeat(1022)}\r\n`;

/** A message of which that much is sent, without an end. */
async function unfinished(server: Server, octets: number): Promise<Client> {
  const client = await Client.connect(server.port);
  await client.startMessage();
  client.send(LINE.repeat(octets / LINE.length));
  await client.quiet();
  return client;
}

async function smallMail(server: Server): Promise<string> {
  const client = await Client.connect(server.port);
  await client.say("EHLO x");
  await client.say("MAIL FROM:<a@b.example>");
  await client.say("RCPT TO:<c@d.example>");
  const code = (await client.say("DATA")).slice(0, 3);
  const answer = code === "354" ? (await client.say("small\r\n.")).slice(0, 3) : code;
  client.destroy();
  return answer;
}

/** Advances time past two checks, so that silent senders are found. */
async function looks(server: Server, clients: readonly Client[]): Promise<void> {
  server.clock.advance(PROGRESS_MS);
  for (const client of clients.slice(0, 1)) await client.quiet();
}

test("large unfinished messages hold no more than the limit, ordinary mail flows, and they finish one after another", async () => {
  const maxMessageBytes = 2 * ONE_READ;
  const limit = 1.5 * maxMessageBytes;
  await using server = await startServer({}, { maxMessageBytes });
  const size = maxMessageBytes - 4 * LINE.length;
  const clients = await Promise.all(Array.from({ length: 6 }, () => unfinished(server, size)));
  expect(server.listener.held).toBeGreaterThan(limit);
  // Each has had one read, and the oldest everything that it sent.
  expect(server.listener.held).toBeLessThanOrEqual(6 * ONE_READ + maxMessageBytes);
  expect(await smallMail(server)).toBe("250");
  for (const client of clients) client.send(`${LINE.repeat(3)}.\r\n`);
  expect((await Promise.all(clients.map((client) => client.codes(1)))).flat()).toEqual(
    clients.map(() => "250"),
  );
  expect(server.taken.filter(({ raw }) => raw.length === size + 3 * LINE.length).length).toBe(6);
  expect(server.listener.held).toBe(0);
});

test("the last pending answer lets all waiting messages continue, even if its message was empty", async () => {
  const asked = signal();
  const answer = signal();
  let first = true;
  const message = async () => {
    if (first) {
      first = false;
      asked.give();
      await answer.wait;
    }
    return TAKEN;
  };
  await using server = await startServer({ message }, { maxMessageBytes: MAX });
  const empty = await Client.connect(server.port);
  await empty.startMessage();
  empty.send(".\r\n");
  await asked.wait;
  // Each is read once before it must wait, the oldest too, because an answer is due.
  const clients: Client[] = [];
  for (let nth = 0; nth < 8; nth++) {
    const client = await Client.connect(server.port);
    await client.startMessage();
    clients.push(client);
  }
  for (const client of clients) client.send(LINE.repeat(MAX / LINE.length - 4));
  for (const client of clients) await client.quiet();
  expect(server.listener.held).toBeGreaterThan(2 * LIMIT);
  answer.give();
  expect(await empty.codes(1)).toEqual(["250"]);
  for (const client of clients) client.send(".\r\n");
  expect((await Promise.all(clients.map((client) => client.codes(1)))).flat()).toEqual(
    clients.map(() => "250"),
  );
  expect(server.listener.held).toBe(0);
});

test("however many send at once, twice the limit is exceeded by one message and one read at most", async () => {
  await using server = await startServer({}, { maxMessageBytes: MAX });
  await Promise.all(Array.from({ length: 40 }, () => unfinished(server, MAX - 4 * LINE.length)));
  expect(server.listener.held).toBeGreaterThan(2 * LIMIT);
  expect(server.listener.held).toBeLessThanOrEqual(2 * LIMIT + MAX + ONE_READ);
  expect(await smallMail(server)).toBe("452");
});

test("slow senders are given up one by one, and steady ones finish", async () => {
  await using server = await startServer({}, { maxMessageBytes: MAX });
  const dripping: Client[] = [];
  while (server.listener.held <= LIMIT) dripping.push(await unfinished(server, MAX - 4 * LINE.length));
  const good = await unfinished(server, 2 * FREE_OCTETS);
  good.send(`${LINE}.\r\n`);
  await good.quiet();
  expect(good.heard).toBe(false);
  for (let round = 0; round < 20 && !good.heard; round++) await looks(server, [good]);
  expect(await good.codes(1)).toEqual(["250"]);
  expect(await dripping[0]?.rest()).toStartWith("421 4.3.1 ");
  expect(dripping.filter(({ heard }) => heard).length).toBeLessThan(dripping.length);
});

test("while our own answers are due, new messages are refused, and no waiting one is given up before its transaction ends", async () => {
  const answer = signal<typeof TAKEN>();
  await using server = await startServer({ message: () => answer.wait }, { maxMessageBytes: MAX });
  const whole: Client[] = [];
  const begun = await Client.connect(server.port);
  await begun.startMessage();
  while (server.listener.held <= 2 * LIMIT) {
    const client = await Client.connect(server.port);
    await client.startMessage();
    client.send(`${LINE.repeat(200)}.\r\n`);
    await client.quiet();
    whole.push(client);
  }
  const held = server.listener.held;
  expect(await smallMail(server)).toBe("452");
  begun.send(LINE.repeat(200));
  await begun.quiet();
  expect(server.listener.held).toBe(held);
  server.clock.advance(PHASE_TIMEOUT_MS.data);
  await begun.quiet();
  expect(begun.heard).toBe(false);
  answer.give(TAKEN);
  for (const client of whole) expect(await client.codes(1)).toEqual(["250"]);
  begun.send(".\r\n");
  expect(await begun.codes(1)).toEqual(["250"]);
  expect(server.listener.held).toBe(0);
});

test("a handler that never answers frees no memory, but waiting senders are answered when their transaction ends", async () => {
  await using server = await startServer({ message: () => new Promise(() => {}) }, { maxMessageBytes: MAX });
  const begun = await Client.connect(server.port);
  await begun.startMessage();
  while (server.listener.held <= 2 * LIMIT) {
    const client = await Client.connect(server.port);
    await client.startMessage();
    client.send(`${LINE.repeat(200)}.\r\n`);
    await client.quiet();
  }
  server.clock.advance(TRANSACTION_TIMEOUT_MS);
  expect(await begun.rest()).toStartWith("421 4.4.2 ");
});

test("memory of an abandoned session is free at once, even if its client does not close", async () => {
  await using server = await startServer({}, { maxMessageBytes: MAX });
  const [silent, broken] = [await unfinished(server, FREE_OCTETS), await unfinished(server, FREE_OCTETS)];
  expect(server.listener.held).toBe(2 * FREE_OCTETS);
  broken.reset();
  await broken.quiet();
  expect(server.listener.held).toBe(FREE_OCTETS);
  server.clock.advance(PHASE_TIMEOUT_MS.data);
  expect(await silent.rest()).toStartWith("421 4.4.2 ");
  expect(server.listener.held).toBe(0);
});

test("chunks count like DATA: over the limit the first one is refused, with those after it", async () => {
  const answer = signal<typeof TAKEN>();
  await using server = await startServer({ message: () => answer.wait }, { maxMessageBytes: MAX });
  while (server.listener.held <= 2 * LIMIT) {
    const client = await Client.connect(server.port);
    client.send("EHLO x\r\nMAIL FROM:<a@b.example>\r\nRCPT TO:<c@d.example>\r\n");
    client.send(`BDAT ${200 * LINE.length} LAST\r\n${LINE.repeat(200)}`);
    await client.codes(3);
    await client.quiet();
  }
  const late = await Client.connect(server.port);
  late.send(
    "EHLO x\r\nMAIL FROM:<a@b.example>\r\nRCPT TO:<c@d.example>\r\nBDAT 6\r\nhead\r\nBDAT 6 LAST\r\ntail\r\n",
  );
  expect(await late.codes(5)).toEqual(["250", "250", "250", "452", "503"]);
  answer.give(TAKEN);
});

test("a slow refused chunk is cut off within the time of a command", async () => {
  await using server = await startServer();
  const client = await Client.connect(server.port);
  client.send("BDAT 1000\r\n");
  for (let spent = 0; spent < PHASE_TIMEOUT_MS.command; spent += 60_000) {
    client.send("x");
    await client.quiet();
    expect(client.heard).toBe(false);
    server.clock.advance(60_000);
  }
  expect(await client.rest()).toStartWith("421 4.4.2 ");
});

test("a large message's memory passes to the next one only once it is answered, and not if accepting it failed", async () => {
  const answers = Array.from({ length: 4 }, () => signal<typeof TAKEN>());
  const raws: Uint8Array[] = [];
  const begun = answers.map(() => signal<void>());
  const message = async (_: unknown, raw: Uint8Array) => {
    const at = raws.push(raw) - 1;
    begun[at]?.give();
    const answer = await answers[at]?.wait;
    if (at === 2 || answer === undefined) throw new Error("taking it failed");
    return answer;
  };
  await using server = await startServer({ message }, { maxMessageBytes: MAX });
  const clients: Client[] = [];
  const bring = async (line: string): Promise<void> => {
    const client = await Client.connect(server.port);
    await client.startMessage();
    client.send(`${line.repeat(100)}.\r\n`);
    await begun[clients.push(client) - 1]?.wait;
  };
  const end = async (at: number): Promise<string | undefined> => {
    answers[at]?.give(TAKEN);
    return (await clients[at]?.codes(1))?.[0];
  };
  const [first, other] = [`${"1".repeat(1022)}\r\n`, `${"2".repeat(1022)}\r\n`];
  await bring(first);
  await bring(other);
  expect(raws[1]?.buffer).not.toBe(raws[0]?.buffer as ArrayBuffer);
  expect(Buffer.from(raws[0] ?? []).toString()).toBe(first.repeat(100));
  expect(await end(0)).toBe("250");
  await bring(other);
  expect(raws[2]?.buffer).toBe(raws[0]?.buffer as ArrayBuffer);
  expect(await end(2)).toBe("451");
  await bring(first);
  expect(raws.slice(0, 3).some(({ buffer }) => buffer === raws[3]?.buffer)).toBe(false);
  expect([await end(1), await end(3)]).toEqual(["250", "250"]);
});

test("a large message's memory passes to the next one even if its client has disconnected", async () => {
  const raws: Uint8Array[] = [];
  const message = async (_: unknown, raw: Uint8Array) => {
    raws.push(raw);
    return TAKEN;
  };
  await using server = await startServer({ message }, { maxMessageBytes: MAX });
  const [gone, next] = [`${"1".repeat(1022)}\r\n`, `${"2".repeat(1022)}\r\n`];
  const first = await Client.connect(server.port);
  await first.startMessage();
  first.send(gone.repeat(200));
  await until(() => server.listener.held === gone.length * 200);
  first.destroy();
  await until(() => server.listener.sessions === 0);
  const client = await Client.connect(server.port);
  await client.startMessage();
  client.send(`${next.repeat(100)}.\r\n`);
  expect(await client.codes(1)).toEqual(["250"]);
  // The octets of the first one are still there, after those of the second.
  const memory = Buffer.from(new Uint8Array(raws[0]?.buffer ?? new ArrayBuffer(0)));
  expect(memory.includes(gone, next.length * 100)).toBe(true);
});
