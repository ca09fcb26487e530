import { describe, expect, test } from "bun:test";
import { systemClock } from "../../src/clock.ts";
import { REFUSALS_AT_ONCE, TARPIT_MS } from "../../src/smtp/listener/connection.ts";
import { GREET_AFTER_MS } from "../../src/smtp/listener/listener.ts";
import { PROXY_HEADER_MS } from "../../src/smtp/listener/proxy-handshake.ts";
import { MAX_PROXY_HEADER_OCTETS } from "../../src/smtp/listener/proxy-header.ts";
import { reply } from "../../src/smtp/session/reply.ts";
import { receivingInboxes, startService } from "../support/service.ts";
import { Client, type Server, startServer } from "./server-harness.ts";

const PROXIES = { proxies: ["127.0.0.0/8"] };
const swaks = Bun.which("swaks");

/**
 * A header of PROXY protocol version 2: `client` connects by TCP over IPv4. If null, the proxy checks our health.
 */
function header(client: string | null, notes = Buffer.alloc(0)): Buffer {
  const octets = (ip: string): number[] => ip.split(".").map(Number);
  const addresses = client === null ? [] : [...octets(client), ...octets("192.0.2.1"), 0xd9, 3, 0, 25];
  const length = addresses.length + notes.length;
  const fixed = [client === null ? 0x20 : 0x21, client === null ? 0 : 0x11, length >> 8, length & 255];
  return Buffer.concat([Buffer.from("\r\n\r\n\0\r\nQUIT\n"), Buffer.from([...fixed, ...addresses]), notes]);
}

/** A client that connects through the proxy and has sent its header, not greeted yet. */
async function through(server: Pick<Server, "port">, client: string | null): Promise<Client> {
  const connection = await Client.connect(server.port, false);
  connection.send(header(client));
  await connection.quiet();
  return connection;
}

/** A client that connects through the proxy and has been greeted. */
async function greeted(server: Server, ip: string): Promise<Client> {
  const client = await through(server, ip);
  server.clock.advance(GREET_AFTER_MS);
  expect(await client.reply()).toStartWith("220 ");
  return client;
}

describe("through a proxy", () => {
  test("mail comes from the client that the header names", async () => {
    await using server = await startServer({}, PROXIES);
    const client = await greeted(server, "203.0.113.9");
    await client.startMessage();
    expect(await client.say("x\r\n.")).toStartWith("250 ");
    expect(server.taken[0]?.envelope.ip).toBe("203.0.113.9");
  });

  test("STARTTLS works as for any client", async () => {
    await using server = await startServer({}, PROXIES);
    const client = await greeted(server, "203.0.113.9");
    await client.say("EHLO x");
    await client.say("STARTTLS");
    await client.secure();
    await client.startMessage();
    expect(await client.say("x\r\n.")).toStartWith("250 ");
    expect(server.taken[0]?.envelope).toMatchObject({ ip: "203.0.113.9", tls: "TLSv1.3" });
  });

  test("a header cut into any pieces works, and the proxy's extensions are skipped", async () => {
    await using server = await startServer({}, PROXIES);
    const client = await Client.connect(server.port, false);
    for (const octet of header("203.0.113.9", Buffer.from("0400020000", "hex"))) {
      client.send(Buffer.from([octet]));
      await Bun.sleep(0); // Gives each octet a packet of its own.
    }
    await server.clock.armed(GREET_AFTER_MS);
    server.clock.advance(GREET_AFTER_MS);
    expect(await client.reply()).toStartWith("220 ");
  });

  test("a health check of the proxy is greeted, under its own address", async () => {
    await using server = await startServer({}, PROXIES);
    const client = await through(server, null);
    expect(await client.reply()).toStartWith("220 ");
    await client.startMessage();
    await client.say("x\r\n.");
    expect(server.taken[0]?.envelope.ip).toBe("127.0.0.1");
  });

  test("the client must stay silent before the greeting like any stranger", async () => {
    await using server = await startServer({}, PROXIES);
    const early = await Client.connect(server.port, false);
    early.send(Buffer.concat([header("203.0.113.9"), Buffer.from("EHLO x\r\nMAIL FROM:<a@b.example>\r\n")]));
    expect(await early.rest()).toStartWith("554 5.5.0 ");
    const later = await through(server, "203.0.113.9");
    later.send("E");
    expect(await later.rest()).toStartWith("554 5.5.0 ");
  });

  test("a client whose mail was accepted is greeted at once the next time, but not another client of that proxy", async () => {
    await using server = await startServer({}, PROXIES);
    const client = await greeted(server, "203.0.113.9");
    await client.startMessage();
    await client.say("x\r\n.");
    await client.say("QUIT");
    client.destroy();
    let again = await through(server, "203.0.113.9");
    // The listener remembers the client once it has seen the first connection close.
    while ((await again.quiet()) === 0 && !again.heard) again = await through(server, "203.0.113.9");
    expect(await again.reply()).toStartWith("220 ");
    const other = await through(server, "203.0.113.10");
    expect(other.heard).toBe(false);
  });

  test("connections are counted by client, not by proxy", async () => {
    await using server = await startServer({}, { ...PROXIES, maxConnectionsPerIp: 2 });
    await greeted(server, "203.0.113.9");
    await greeted(server, "203.0.113.9");
    expect(await (await through(server, "203.0.113.9")).rest()).toStartWith("421 4.7.0 ");
    await greeted(server, "203.0.113.10");
  });

  test("the settings limit connections of a client, and of all", async () => {
    const clients: Client[] = [];
    const numbers = { SMTP_MAX_CONNECTIONS: "3", SMTP_MAX_CONNECTIONS_PER_IP: "2" };
    const service = await startService({ SMTP_PROXIES: "127.0.0.1", ...numbers });
    try {
      const codes: string[] = [];
      for (const ip of ["203.0.113.9", "203.0.113.9", "203.0.113.9", "203.0.113.10", "203.0.113.11"]) {
        const client = await through({ port: service.smtpPort }, ip);
        clients.push(client);
        codes.push((await client.reply()).slice(0, 3));
      }
      expect(codes).toEqual(["220", "220", "421", "220", "421"]);
    } finally {
      for (const client of clients) client.destroy();
      await service.stop();
    }
  });

  test("the tarpit applies to the client, even if the proxy is on this machine", async () => {
    await using server = await startServer({ recipient: async () => reply(550, "5.1.1", "No") }, PROXIES);
    const client = await greeted(server, "203.0.113.9");
    await client.say("EHLO x");
    await client.say("MAIL FROM:<a@b.example>");
    for (let refused = 0; refused < REFUSALS_AT_ONCE; refused++)
      expect(await client.say("RCPT TO:<x@d.example>")).toStartWith("550 ");
    client.send("RCPT TO:<x@d.example>\r\n");
    await server.clock.armed(TARPIT_MS);
    expect(client.heard).toBe(false);
    server.clock.advance(TARPIT_MS);
    expect(await client.reply()).toStartWith("550 ");
  });

  const cut: [name: string, bytes: Buffer][] = [
    ["no header but a command", Buffer.from("EHLO x\r\n")],
    ["a header of version 1", Buffer.from("PROXY TCP4 203.0.113.9 192.0.2.1 55555 25\r\n")],
    [
      "a UNIX socket",
      Buffer.concat([header(null).subarray(0, 12), Buffer.from("213100d8", "hex"), Buffer.alloc(216)]),
    ],
    [
      "a header one octet too long",
      header("203.0.113.9", Buffer.alloc(MAX_PROXY_HEADER_OCTETS - 16 - 12 + 1)),
    ],
    ["garbage", Buffer.from("ffffffffffffffffffffffffffffffff", "hex")],
  ];
  test.each(cut)("%s ends the connection without a reply", async (_name, bytes) => {
    await using server = await startServer({}, PROXIES);
    const client = await Client.connect(server.port, false);
    client.send(bytes);
    expect(await client.rest()).toBe("");
  });

  test("a proxy that does not send its header in time is cut off, even if octets trickle in", async () => {
    await using server = await startServer({}, PROXIES);
    const [silent, dripping] = [
      await Client.connect(server.port, false),
      await Client.connect(server.port, false),
    ];
    dripping.send(header("203.0.113.9").subarray(0, 20));
    await dripping.quiet();
    server.clock.advance(PROXY_HEADER_MS);
    expect([await silent.rest(), await dripping.rest()]).toEqual(["", ""]);
    expect(server.clock.pending()).toBe(0);
  });

  test("a session continues past the time limit of its header", async () => {
    await using server = await startServer({}, PROXIES);
    const client = await greeted(server, "203.0.113.9");
    server.clock.advance(PROXY_HEADER_MS);
    expect(await client.say("NOOP")).toStartWith("250 ");
  });

  test("stopping ends connections whose header has not come", async () => {
    await using server = await startServer({}, PROXIES);
    const client = await Client.connect(server.port, false);
    client.send(header("203.0.113.9").subarray(0, 20));
    await client.quiet();
    await server.listener.stop(20_000);
    expect(await client.rest()).toBe("");
  });
});

test("a header from a peer that is not a proxy is read as invalid commands", async () => {
  await using server = await startServer({}, { proxies: ["192.0.2.1"] });
  const client = await Client.connect(server.port);
  client.send(Buffer.concat([header("203.0.113.9"), Buffer.from("\r\n")]));
  expect(await client.codes(4)).toEqual(["500", "500", "500", "500"]);
  await client.startMessage();
  await client.say("x\r\n.");
  expect(server.taken[0]?.envelope.ip).toBe("127.0.0.1");
});

/** Delivers a message with swaks, which sends its own proxy header. */
async function swaksThrough(port: number, to: string, proxy: readonly string[]): Promise<void> {
  const mail = ["--server", `127.0.0.1:${port}`, "-f", "a@b.example", "-t", to];
  const header = ["--proxy-version", "2", "--proxy-protocol", "STREAM", ...proxy];
  const ports = ["--proxy-source-port", "55555", "--proxy-dest-port", "25"];
  const child = Bun.spawn(["swaks", ...mail, ...header, ...ports], { stdout: "pipe", stderr: "pipe" });
  const output = await new Response(child.stdout).text();
  expect(await child.exited, output).toBe(0);
}

const V4 = ["--proxy-family", "AF_INET", "--proxy-source", "203.0.113.9", "--proxy-dest", "192.0.2.1"];
const V6 = ["--proxy-family", "AF_INET6", "--proxy-source", "2001:db8::9", "--proxy-dest", "2001:db8::1"];

describe.skipIf(swaks === null)("swaks delivers through its own proxy header (skipped without swaks)", () => {
  const rows: [name: string, proxy: string[], ip: string][] = [
    ["IPv4", V4, "203.0.113.9"],
    ["IPv6", V6, "2001:db8::9"],
  ];
  test.each(rows)("%s", async (_name, proxy, ip) => {
    await using server = await startServer({}, PROXIES, systemClock);
    await swaksThrough(server.port, "c@d.example", proxy);
    expect(server.taken.at(-1)?.envelope.ip).toBe(ip);
  });

  test("to the whole service, whose setting names the proxy", async () => {
    const service = await startService({ SMTP_PROXIES: "192.0.2.0/24, 127.0.0.1" });
    try {
      await receivingInboxes(service, "in.test", ["one@in.test"]);
      await swaksThrough(service.smtpPort, "one@in.test", V4);
      const [{ id }] = (await service.call("GET", "/v1/emails?direction=inbound")).body.data;
      expect((await service.call("GET", `/v1/emails/${id}`)).body.envelope.ip).toBe("203.0.113.9");
      expect((await service.call("GET", `/v1/emails/${id}/raw`)).body).toContain("([203.0.113.9])\r\n");
    } finally {
      await service.stop();
    }
  });
});
