import { expect, test } from "bun:test";
import { PHASE_TIMEOUT_MS, TRANSACTION_TIMEOUT_MS } from "../../src/smtp/listener/deadline.ts";
import { reply } from "../../src/smtp/session/reply.ts";
import { MAX_COMMANDS_IN_A_ROW } from "../../src/smtp/session/session-limits.ts";
import { Client, HOSTNAME, signal, startServer, TAKEN } from "./server-harness.ts";

const BODY = "Subject: dots\r\n\r\n.\r\n..\r\n.leading\r\nend\xe4\xff\r\n\r\n";
const ON_THE_WIRE = BODY.replace(/^\./gm, "..");

test("a message arrives octet for octet, with its sender", async () => {
  await using server = await startServer();
  const client = await Client.connect(server.port, false);
  expect(await client.reply()).toBe(`220 ${HOSTNAME} ESMTP Postrider\r\n`);
  await client.startMessage();
  client.send(ON_THE_WIRE);
  expect(await client.say(".")).toBe("250 2.0.0 Taken\r\n");
  expect(server.taken[0]?.raw.toString("latin1")).toBe(BODY);
  expect(server.taken[0]?.envelope).toEqual({
    mailFrom: "a@b.example",
    rcptTo: ["c@d.example"],
    ip: "127.0.0.1",
    helo: "client.example",
    tls: null,
    smtpUtf8: false,
  });
  expect(await client.say("QUIT")).toBe("221 2.0.0 Goodbye\r\n");
  expect(await client.rest()).toBe("");
});

test("a whole dialogue in one write is answered in order", async () => {
  await using server = await startServer();
  const client = await Client.connect(server.port);
  const one = `MAIL FROM:<a@b.example>\r\nRCPT TO:<c@d.example>\r\nDATA\r\n${ON_THE_WIRE}.\r\n`;
  client.send(`EHLO client.example\r\n${one}${one}QUIT\r\nNOOP\r\n`);
  const codes = await client.codes(10);
  expect(codes).toEqual(["250", "250", "250", "354", "250", "250", "250", "354", "250", "221"]);
  expect(await client.rest()).toBe("");
  expect(server.taken.map(({ raw }) => raw.toString("latin1"))).toEqual([BODY, BODY]);
});

test("a whole dialogue octet by octet gives the same result", async () => {
  await using server = await startServer();
  const client = await Client.connect(server.port);
  for (const octet of `EHLO x\r\nMAIL FROM:<>\r\nRCPT TO:<c@d.example>\r\nDATA\r\n${ON_THE_WIRE}.\r\nQUIT\r\n`) {
    client.send(octet);
    await Bun.sleep(0); // Gives each octet a packet of its own.
  }
  expect(await client.codes(6)).toEqual(["250", "250", "250", "354", "250", "221"]);
  expect(server.taken[0]?.raw.toString("latin1")).toBe(BODY);
});

test("a message of the greatest size is accepted, one octet more is refused, and the session continues", async () => {
  const maxMessageBytes = 300_000;
  await using server = await startServer({}, { maxMessageBytes });
  const client = await Client.connect(server.port);
  for (const [size, code] of [
    [maxMessageBytes, "250"],
    [maxMessageBytes + 1, "552"],
  ] as const) {
    await client.startMessage();
    client.send(`${"x".repeat(size - 2)}\r\n.\r\n`);
    expect(await client.codes(1)).toEqual([code]);
  }
  expect(server.taken.map(({ raw }) => raw.length)).toEqual([maxMessageBytes]);
});

test("a smuggled message is not seen: it is refused with the message that carried it", async () => {
  await using server = await startServer();
  const client = await Client.connect(server.port);
  await client.startMessage();
  client.send(
    "one\n.\r\nMAIL FROM:<evil@b.example>\r\nRCPT TO:<c@d.example>\r\nDATA\r\ntwo\r\n.\r\nNOOP\r\n",
  );
  expect(await client.reply()).toStartWith("550 5.5.2 ");
  expect(await client.reply()).toStartWith("421 4.7.0 ");
  expect(server.taken).toEqual([]);
});

test("the handler's verdicts become the replies, and its failures 451", async () => {
  const verdicts: Record<string, () => Promise<ReturnType<typeof reply> | null>> = {
    "good@d.example": async () => null,
    "none@d.example": async () => reply(550, "5.1.1", "No such inbox"),
    "fail@d.example": () => Promise.reject(new Error("database is away")),
  };
  await using server = await startServer({
    recipient: (address) => verdicts[address]?.() ?? Promise.resolve(null),
    message: () => {
      throw new Error("thrown, not rejected");
    },
  });
  const client = await Client.connect(server.port);
  await client.say("EHLO x");
  await client.say("MAIL FROM:<a@b.example>");
  expect(await client.say("RCPT TO:<good@d.example>")).toBe("250 2.1.5 Recipient OK\r\n");
  expect(await client.say("RCPT TO:<none@d.example>")).toBe("550 5.1.1 No such inbox\r\n");
  expect(await client.say("RCPT TO:<fail@d.example>")).toStartWith("451 4.3.0 ");
  expect(await client.say("DATA")).toStartWith("354 ");
  expect(await client.say("x\r\n.")).toStartWith("451 4.3.0 ");
  expect(await client.say("NOOP")).toBe("250 2.0.0 OK\r\n");
});

test("one recipient more than allowed is put off to another transaction", async () => {
  await using server = await startServer();
  const client = await Client.connect(server.port);
  const recipients = Array.from({ length: 101 }, (_, at) => `RCPT TO:<r${at}@d.example>\r\n`);
  client.send(`EHLO x\r\nMAIL FROM:<a@b.example>\r\n${recipients.join("")}DATA\r\n`);
  const codes = await client.codes(104);
  expect(codes.slice(0, 102)).toEqual(Array.from({ length: 102 }, () => "250"));
  expect(codes.slice(102)).toEqual(["452", "354"]);
  await client.say(".");
  expect(server.taken[0]?.envelope.rcptTo.length).toBe(100);
});

test("a client that has closed its side still gets the reply to its message", async () => {
  const answer = signal<typeof TAKEN>();
  await using server = await startServer({ message: () => answer.wait });
  const client = await Client.connect(server.port);
  await client.startMessage();
  client.send("x\r\n.\r\n");
  client.halfClose();
  await client.quiet();
  answer.give(TAKEN);
  expect(await client.rest()).toBe("250 2.0.0 Taken\r\n");
});

test("a client that does not read is not read from, and loses no reply", async () => {
  await using server = await startServer();
  const client = await Client.connect(server.port);
  const rounds = 250_000; // 26 MB of commands and 11 MB of replies: more than the kernel keeps for either side.
  client.pause();
  client.send(`VRFY ${"x".repeat(100)}\r\n`.repeat(rounds));
  client.send("QUIT\r\n");
  expect(await client.quiet()).toBeGreaterThan(0);
  client.resume();
  const text = await client.rest();
  expect(text.split("\r\n").length - 1).toBe(rounds + 1);
  expect(text).toEndWith("\r\n221 2.0.0 Goodbye\r\n");
});

test("a client far ahead of a slow answer is read again when it has it", async () => {
  const answer = signal<null>();
  await using server = await startServer({ recipient: () => answer.wait });
  const client = await Client.connect(server.port);
  client.send("EHLO x\r\nMAIL FROM:<a@b.example>\r\nRCPT TO:<c@d.example>\r\n");
  await client.codes(2);
  const ahead = 200_000; // 22 MB: more than the kernel keeps, far more than the session would.
  client.send(`NOOP ${"x".repeat(100)}\r\n`.repeat(ahead));
  expect(await client.quiet()).toBeGreaterThan(0);
  answer.give(null);
  client.send("QUIT\r\n");
  const text = await client.rest();
  expect(text.split("\r\n").length - 1).toBe(ahead + 2);
});

test("too many connections are refused with 421, and there is room again when one has closed", async () => {
  await using server = await startServer({}, { maxConnections: 2 });
  const first = await Client.connect(server.port);
  await Client.connect(server.port);
  const third = await Client.connect(server.port, false);
  expect(await third.rest()).toStartWith("421 4.7.0 ");
  await first.say("QUIT");
  first.destroy();
  let greeting = "421";
  while (greeting.startsWith("421")) {
    const next = await Client.connect(server.port, false);
    greeting = await next.reply();
  }
  expect(greeting).toStartWith("220 ");
});

test("loopback has no limit for one address, other addresses do", async () => {
  await using server = await startServer({}, { maxConnectionsPerIp: 1 });
  await Client.connect(server.port);
  const second = await Client.connect(server.port, false);
  expect(await second.reply()).toStartWith("220 ");
});

test("a silent client is disconnected after five minutes, even if octets trickle in", async () => {
  await using server = await startServer();
  const silent = await Client.connect(server.port);
  server.clock.advance(PHASE_TIMEOUT_MS.command - 1);
  expect(await silent.say("NOOP")).toBe("250 2.0.0 OK\r\n");
  silent.send("NO");
  await silent.quiet();
  server.clock.advance(PHASE_TIMEOUT_MS.command - 1);
  silent.send("OP");
  await silent.quiet();
  server.clock.advance(1);
  expect(await silent.rest()).toStartWith("421 4.4.2 ");
});

test("a transaction has a maximum length however busy the client is", async () => {
  await using server = await startServer();
  const client = await Client.connect(server.port);
  await client.say("EHLO x");
  await client.say("MAIL FROM:<a@b.example>");
  for (let spent = 0; spent < TRANSACTION_TIMEOUT_MS - 60_000; spent += 60_000) {
    server.clock.advance(60_000);
    expect(await client.say("NOOP")).toBe("250 2.0.0 OK\r\n");
  }
  server.clock.advance(60_000);
  expect(await client.rest()).toStartWith("421 4.4.2 ");
});

test("a handler that never answers does not hold a connection for ever", async () => {
  const inHand = signal();
  await using server = await startServer({
    message: () => {
      inHand.give();
      return new Promise(() => {});
    },
  });
  const client = await Client.connect(server.port);
  await client.startMessage();
  client.send("x\r\n.\r\n");
  await inHand.wait;
  server.clock.advance(PHASE_TIMEOUT_MS.waiting);
  expect(await client.rest()).toStartWith("421 4.4.2 ");
});

test("a client that does not close after our last reply is cut off", async () => {
  await using server = await startServer({}, { maxConnections: 1 });
  const client = await Client.connect(server.port);
  expect(await client.say("QUIT")).toBe("221 2.0.0 Goodbye\r\n");
  expect(await client.rest()).toBe("");
  expect(await (await Client.connect(server.port, false)).rest()).toStartWith("421 ");
  server.clock.advance(PHASE_TIMEOUT_MS.closed);
  expect(await (await Client.connect(server.port, false)).reply()).toStartWith("220 ");
});

test("a burst of commands is answered to its end, even if its client has closed its side", async () => {
  const answer = signal<null>();
  await using server = await startServer({ recipient: () => answer.wait });
  const client = await Client.connect(server.port);
  const commands = 20 * MAX_COMMANDS_IN_A_ROW;
  client.send("EHLO x\r\nMAIL FROM:<a@b.example>\r\nRCPT TO:<c@d.example>\r\n");
  client.send(`${"HELP\r\n".repeat(commands)}RSET\r\n`);
  await client.codes(2);
  client.halfClose();
  await client.quiet();
  answer.give(null);
  const replies = (await client.rest()).split("\r\n");
  expect(replies.filter((line) => line.startsWith("214 "))).toHaveLength(commands);
  expect(replies.at(-2)).toBe("250 2.0.0 OK");
});
