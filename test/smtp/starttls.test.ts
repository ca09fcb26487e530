import { expect, test } from "bun:test";
import { PHASE_TIMEOUT_MS } from "../../src/smtp/listener/deadline.ts";
import { Client, HOSTNAME, signal, startServer } from "./server-harness.ts";

async function secured(port: number): Promise<Client> {
  const client = await Client.connect(port);
  await client.say("EHLO x");
  expect(await client.say("STARTTLS")).toBe("220 2.0.0 Ready to start TLS\r\n");
  await client.secure();
  return client;
}

test("after STARTTLS mail arrives under TLS 1.3, and STARTTLS is not offered again", async () => {
  await using server = await startServer();
  const client = await Client.connect(server.port);
  expect(await client.say("EHLO x")).toContain("STARTTLS");
  await client.say("STARTTLS");
  const secure = await client.secure();
  expect(secure.getProtocol()).toBe("TLSv1.3");
  expect(secure.getPeerCertificate().subject.CN).toBe(HOSTNAME);
  expect(await client.say("MAIL FROM:<a@b.example>")).toStartWith("503 ");
  expect(await client.say("EHLO x")).not.toContain("STARTTLS");
  expect(await client.say("STARTTLS")).toStartWith("503 ");
  await client.startMessage();
  client.send("one\r\n..two\r\n");
  expect(await client.say(".")).toBe("250 2.0.0 Taken\r\n");
  expect(server.taken[0]?.raw.toString()).toBe("one\r\n.two\r\n");
  expect(server.taken[0]?.envelope.tls).toBe("TLSv1.3");
  expect(await client.say("QUIT")).toStartWith("221 ");
  expect(await client.rest()).toBe("");
});

test("commands injected in plain text after STARTTLS are not executed", async () => {
  await using server = await startServer();
  const client = await Client.connect(server.port);
  client.send(
    "EHLO x\r\nSTARTTLS\r\nEHLO evil\r\nMAIL FROM:<evil@b.example>\r\nRCPT TO:<c@d.example>\r\nDATA\r\n",
  );
  expect(await client.codes(2)).toEqual(["250", "220"]);
  await client.secure();
  // If one of them were executed, its reply would come before this one.
  expect(await client.say("NOOP")).toBe("250 2.0.0 OK\r\n");
  expect(await client.say("RCPT TO:<c@d.example>")).toStartWith("503 ");
  expect(await client.say("MAIL FROM:<a@b.example>")).toStartWith("503 5.5.1 Say EHLO");
});

test("a transaction begun in plain text is forgotten", async () => {
  await using server = await startServer();
  const client = await Client.connect(server.port);
  client.send("EHLO x\r\nMAIL FROM:<a@b.example>\r\nRCPT TO:<c@d.example>\r\n");
  await client.codes(3);
  await client.say("STARTTLS");
  await client.secure();
  await client.say("EHLO x");
  expect(await client.say("DATA")).toStartWith("503 ");
});

test("octets that are not TLS after STARTTLS end the connection without a reply", async () => {
  await using server = await startServer();
  const client = await Client.connect(server.port);
  await client.say("STARTTLS");
  client.send("EHLO x\r\nMAIL FROM:<a@b.example>\r\nQUIT\r\n");
  expect(await client.rest()).not.toContain("250");
});

test("a handshake that does not come times out", async () => {
  await using server = await startServer();
  const client = await Client.connect(server.port);
  await client.say("STARTTLS");
  server.clock.advance(PHASE_TIMEOUT_MS.tls);
  expect(await client.rest()).toBe("");
});

test("STARTTLS that was sent ahead of a slow answer works in its turn", async () => {
  const answer = signal<null>();
  await using server = await startServer({ recipient: () => answer.wait });
  const client = await Client.connect(server.port);
  client.send("EHLO x\r\nMAIL FROM:<a@b.example>\r\nRCPT TO:<c@d.example>\r\n");
  await client.codes(2);
  client.send("STARTTLS\r\n");
  await client.quiet();
  answer.give(null);
  expect(await client.codes(2)).toEqual(["250", "220"]);
  await client.secure();
  expect(await client.say("NOOP")).toBe("250 2.0.0 OK\r\n");
});

test("under TLS a client that does not read is not read from, and loses no reply", async () => {
  await using server = await startServer();
  const client = await secured(server.port);
  const rounds = 250_000;
  client.pause();
  client.send(`VRFY ${"x".repeat(100)}\r\n`.repeat(rounds));
  client.send("QUIT\r\n");
  expect(await client.quiet()).toBeGreaterThan(0);
  client.resume();
  const text = await client.rest();
  expect(text.split("\r\n").length - 1).toBe(rounds + 1);
  expect(text).toEndWith("\r\n221 2.0.0 Goodbye\r\n");
});

test("a large message under TLS arrives octet for octet", async () => {
  const lines = Array.from({ length: 40_000 }, (_, at) => `${at % 7 === 0 ? "." : ""}line ${at}\r\n`);
  const body = lines.join("");
  await using server = await startServer();
  const client = await secured(server.port);
  await client.startMessage();
  client.send(body.replace(/^\./gm, ".."));
  expect(await client.say(".")).toBe("250 2.0.0 Taken\r\n");
  expect(server.taken[0]?.raw.toString() === body).toBe(true);
});
