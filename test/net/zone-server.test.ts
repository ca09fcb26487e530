import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { connect, type Socket } from "node:net";
import { decode } from "dns-packet";
import {
  MAX_TCP_CONNECTIONS,
  MAX_TCP_CONNECTIONS_PER_NETWORK,
  startZoneServer,
  type ZoneServer,
} from "../../src/net/zone/server.ts";
import { ANSWERS_PER_SECOND } from "../../src/net/zone/response-limiter.ts";
import { MAX_QUERY_OCTETS } from "../../src/net/zone/query.ts";
import { TCP_IDLE_MS } from "../../src/net/zone/tcp-session.ts";
import { type Arrivals, arrivals } from "../support/arrivals.ts";
import { type ManualClock, manualClock } from "../support/manual-clock.ts";
import { framed, ORIGIN, queryOctets, quietLog, testZone, TOKEN } from "../support/zone.ts";

let clock: ManualClock;
let server: ZoneServer;
let clients: { close(): void }[];

beforeEach(async () => {
  clock = manualClock();
  clients = [];
  server = await startZoneServer(
    { clock, log: quietLog(), zone: testZone() },
    { hosts: ["127.0.0.1"], port: 0 },
  );
});
afterEach(() => {
  for (const client of clients) client.close();
  server.stop();
});

async function udpClient() {
  const answers: Arrivals<Buffer> = arrivals();
  const socket = await Bun.udpSocket({
    hostname: "127.0.0.1",
    connect: { hostname: "127.0.0.1", port: server.port },
    binaryType: "buffer",
    socket: { data: (_socket, packet) => answers.add(packet), error: () => undefined },
  });
  clients.push(socket);
  return { answers, send: (packet: Buffer) => socket.send(packet) };
}

async function tcpClient() {
  const answers: Arrivals<Buffer> = arrivals();
  const { promise: closed, resolve } = Promise.withResolvers<void>();
  let received = Buffer.alloc(0);
  const socket = await Bun.connect({
    hostname: "127.0.0.1",
    port: server.port,
    allowHalfOpen: true,
    socket: {
      data(_socket, chunk) {
        received = Buffer.concat([received, chunk]);
        for (;;) {
          const end = received.length < 2 ? Infinity : 2 + received.readUInt16BE(0);
          if (received.length < end) return;
          answers.add(Buffer.from(received.subarray(2, end)));
          received = received.subarray(end);
        }
      },
      end: () => resolve(),
      close: () => resolve(),
      error: () => resolve(),
    },
  });
  clients.push({ close: () => socket.terminate() });
  return { answers, closed, socket };
}

/** Resolves once the server has handled everything sent before, because one more query is answered. */
async function settled(): Promise<void> {
  const { answers, closed, socket } = await tcpClient();
  socket.write(framed(queryOctets(ORIGIN, "NS")));
  await answers.reached(1);
  socket.end();
  await closed;
}

describe("by UDP", () => {
  test("a query is answered; an answer or random bytes are not", async () => {
    const { answers, send } = await udpClient();
    const answer = queryOctets(ORIGIN, "SOA");
    answer.writeUInt16BE(0x8000, 2);
    send(answer);
    send(Buffer.from("rubbish"));
    send(queryOctets(ORIGIN, "SOA", { id: 9 }));
    expect(decode(await answers.reached(1)).id).toBe(9);
  });

  test("a query from a closed port never gets the answer of another client", async () => {
    const { answers, send } = await udpClient();
    for (let id = 1; id <= 3; id++) {
      const gone = await Bun.udpSocket({ hostname: "127.0.0.1", socket: {} });
      gone.send(queryOctets(ORIGIN, "SOA"), server.port, "127.0.0.1");
      gone.close();
      send(queryOctets(ORIGIN, "SOA", { id }));
      expect(decode(await answers.reached(id)).id).toBe(id);
    }
  });

  test("a client over its limit gets every second answer empty, with TC set, and the whole one by TCP", async () => {
    const { answers, send } = await udpClient();
    const query = queryOctets(`${TOKEN}.dkim.${ORIGIN}`, "TXT");
    const burst = 2 * ANSWERS_PER_SECOND.records;
    // One after another, because a burst could overflow the socket's buffer.
    for (let at = 1; at <= burst; at++) {
      send(query);
      expect(decode(await answers.reached(at)).answers).toHaveLength(1);
    }
    send(query);
    send(query);
    const slipped = await answers.reached(burst + 1);
    expect(slipped.length).toBe(query.length);
    expect(decode(slipped)).toMatchObject({ flag_tc: true, flag_aa: true, answers: [], authorities: [] });
    const tcp = await tcpClient();
    tcp.socket.write(framed(query));
    expect(decode(await tcp.answers.reached(1)).answers).toHaveLength(1);
    clock.advance(1000);
    send(query);
    expect(decode(await answers.reached(burst + 2)).answers).toHaveLength(1);
  });
});

describe("by TCP (RFC 7766)", () => {
  test("queries sent ahead are answered in order, however they are cut", async () => {
    const { answers, socket } = await tcpClient();
    const queries = Array.from({ length: 300 }, (_, id) => framed(queryOctets(ORIGIN, "MX", { id })));
    const stream = Buffer.concat(queries);
    for (const [from, to] of [
      [0, 1],
      [1, 2],
      [2, 30],
      [30, 101],
      [101, stream.length],
    ])
      socket.write(stream.subarray(from, to));
    await answers.reached(300);
    expect(answers.items.map((answer) => answer.readUInt16BE(0))).toEqual(queries.map((_, id) => id));
  });

  test("a client that closes its side after its query is answered, then closed", async () => {
    const { answers, closed, socket } = await tcpClient();
    socket.write(framed(queryOctets(ORIGIN, "MX")));
    socket.shutdown();
    await closed;
    expect(answers.items).toHaveLength(1);
  });

  test("an answer too large for a datagram is complete", async () => {
    const { answers, socket } = await tcpClient();
    socket.write(framed(queryOctets(`large.${ORIGIN}`, "TXT")));
    expect((await answers.reached(1)).length).toBeGreaterThan(1500);
  });

  test("a connection without a whole query for ten seconds is closed, even if octets trickle in", async () => {
    const { answers, closed, socket } = await tcpClient();
    socket.write(framed(queryOctets(ORIGIN, "MX")));
    await answers.reached(1);
    clock.advance(TCP_IDLE_MS - 1);
    socket.write(framed(queryOctets(ORIGIN, "MX")));
    await answers.reached(2);
    clock.advance(TCP_IDLE_MS - 1);
    socket.write(Buffer.from([0]));
    await settled();
    clock.advance(1);
    await closed;
    expect(answers.items).toHaveLength(2);
  });

  test.each([
    ["larger than any query", Buffer.from([(MAX_QUERY_OCTETS + 1) >> 8, (MAX_QUERY_OCTETS + 1) & 0xff, 0])],
    ["that is an answer", framed(Buffer.from([0, 1, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0]))],
    ["of no octets", Buffer.from([0, 0])],
  ])("a message %s closes the connection", async (_what, octets) => {
    const { answers, closed, socket } = await tcpClient();
    socket.write(Buffer.concat([octets, framed(queryOctets(ORIGIN, "MX"))]));
    await closed;
    expect(answers.items).toEqual([]);
  });

  test("connections of a network are limited, and one that closes makes room", async () => {
    const held = [];
    for (let at = 0; at < MAX_TCP_CONNECTIONS_PER_NETWORK; at++) {
      const client = await tcpClient();
      client.socket.write(framed(queryOctets(ORIGIN, "NS")));
      await client.answers.reached(1);
      held.push(client);
    }
    const oneMore = await tcpClient();
    oneMore.socket.write(framed(queryOctets(ORIGIN, "NS")));
    await oneMore.closed;
    expect(oneMore.answers.items).toEqual([]);
    held[0]?.socket.write(Buffer.from([0, 0]));
    await held[0]?.closed;
    await settled();
  });

  test("connections are limited in all: one more from elsewhere closes the oldest", async () => {
    const from = (localAddress: string) =>
      new Promise<Socket>((resolve) => {
        const socket = connect({ host: "127.0.0.1", port: server.port, localAddress }, () => resolve(socket));
        socket.on("error", () => undefined).resume();
        clients.push({ close: () => socket.destroy() });
      });
    const networks = MAX_TCP_CONNECTIONS / MAX_TCP_CONNECTIONS_PER_NETWORK;
    const held: Socket[] = [];
    for (let at = 0; at < MAX_TCP_CONNECTIONS; at++) held.push(await from(`127.0.${1 + (at % networks)}.1`));
    const gone = new Promise((resolve) => held[0]?.once("close", resolve));
    const newest = await from("127.0.200.1");
    const answered = new Promise((resolve) => newest.once("data", resolve));
    newest.write(framed(queryOctets(ORIGIN, "NS")));
    await Promise.all([gone, answered]);
    expect(held.filter((socket) => socket.closed)).toHaveLength(1);
  });

  test("a client that does not read is not read either, and is closed", async () => {
    const { answers, closed, socket } = await tcpClient();
    socket.pause();
    const query = framed(queryOctets(`large.${ORIGIN}`, "TXT"));
    const flood = Buffer.concat(Array.from({ length: 2000 }, () => query));
    // Written until both directions are full, because the server has stopped reading.
    let taken = 0;
    for (let quiet = 0; quiet < 20; ) {
      const written = socket.write(flood.subarray(taken % query.length));
      taken += Math.max(0, written);
      quiet = written > 0 ? 0 : quiet + 1;
      await settled();
    }
    expect(taken).toBeGreaterThan(query.length);
    clock.advance(TCP_IDLE_MS);
    socket.resume();
    await closed;
    // As many answers as fit into the sockets' buffers, not one for each query.
    expect(answers.items.length).toBeLessThan(taken / query.length);
  });
});

describe("the listener", () => {
  test("the listener has one port for both transports, on each of its addresses", async () => {
    const both = await startZoneServer(
      { clock, log: quietLog(), zone: testZone() },
      { hosts: ["127.0.0.1", "127.0.0.2"], port: 0 },
    );
    for (const hostname of ["127.0.0.1", "127.0.0.2"]) {
      const answers: Arrivals<Buffer> = arrivals();
      const socket = await Bun.udpSocket({
        connect: { hostname, port: both.port },
        binaryType: "buffer",
        socket: { data: (_socket, packet) => answers.add(packet) },
      });
      clients.push(socket);
      socket.send(queryOctets(ORIGIN, "NS"));
      expect(decode(await answers.reached(1)).answers).toHaveLength(1);
    }
    both.stop();
  });

  test("the listener reports a port in use, and releases the ones it had", async () => {
    const deps = { clock, log: quietLog(), zone: testZone() };
    const hosts = ["127.0.0.2", "127.0.0.1"];
    await expect(startZoneServer(deps, { hosts, port: server.port })).rejects.toThrow("Failed to listen");
    await settled();
    const again = await startZoneServer(deps, { hosts: ["127.0.0.2"], port: server.port });
    again.stop();
  });

  test("the listener closes connections when it stops", async () => {
    const { closed, answers, socket } = await tcpClient();
    socket.write(framed(queryOctets(ORIGIN, "NS")));
    await answers.reached(1);
    server.stop();
    await closed;
  });
});
