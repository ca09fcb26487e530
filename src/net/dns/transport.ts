import { randomInt } from "node:crypto";
import { isIPv6 } from "node:net";
import type { Clock } from "../../core/clock.ts";
import type { DnsServer } from "./servers.ts";
import { type DnsAnswer, type DnsQuestion, decodeAnswer, encodeQuery, isCutOff } from "./wire.ts";

/** Why a server gave no usable answer. */
export type ExchangeTrouble = "timeout" | "unreachable";
/** What came of a question to one server. */
export type Exchange = { kind: "answer"; answer: DnsAnswer } | { kind: ExchangeTrouble };

/** A question to one server. */
export interface Ask {
  server: DnsServer;
  question: DnsQuestion;
  timeoutMs: number;
  edns: boolean;
}

/**
 * Packets on our port that do not match our question, after which the question is put by TCP: somebody is guessing
 * ids (RFC 5452 §9.2), and a TCP handshake cannot be guessed.
 */
const MAX_STRAY_PACKETS = 16;
const MAX_ID = 0x10000;
const LENGTH_OCTETS = 2;

/** Asks one server by UDP, and by TCP when the answer is truncated or forgeries arrive. Never throws. */
export async function exchange(clock: Clock, ask: Ask): Promise<Exchange> {
  const byUdp = await askUdp(clock, ask);
  return byUdp === "by TCP" ? askTcp(clock, ask) : byUdp;
}

/**
 * A fresh socket for each question: the kernel gives it a random source port (RFC 5452 §9.2), and being connected it
 * takes packets from the server's address and port alone.
 */
async function askUdp(clock: Clock, ask: Ask): Promise<Exchange | "by TCP"> {
  const id = randomInt(MAX_ID);
  const { promise, resolve } = Promise.withResolvers<Exchange | "by TCP">();
  let strays = 0;
  const received = (packet: Buffer): void => {
    const answer = decodeAnswer(packet, ask.question, id);
    if (isCutOff(packet, ask.question, id)) resolve("by TCP");
    else if (answer !== null) resolve({ kind: "answer", answer });
    else if (++strays >= MAX_STRAY_PACKETS) resolve("by TCP");
  };
  const socket = await openUdp(ask.server, received, () => resolve({ kind: "unreachable" }));
  if (socket === null) return { kind: "unreachable" };
  const cancel = clock.after(ask.timeoutMs, () => resolve({ kind: "timeout" }));
  try {
    socket.send(encodeQuery(ask.question, id, ask.edns));
    return await promise;
  } catch {
    return { kind: "unreachable" };
  } finally {
    cancel();
    socket.close();
  }
}

async function openUdp(
  server: DnsServer,
  received: (packet: Buffer) => void,
  failed: () => void,
): Promise<Bun.udp.ConnectedSocket<"buffer"> | null> {
  try {
    return await Bun.udpSocket({
      hostname: isIPv6(server.ip) ? "::" : "0.0.0.0",
      connect: { hostname: server.ip, port: server.port },
      binaryType: "buffer",
      socket: { data: (_socket, packet) => received(packet), error: failed },
    });
  } catch {
    return null;
  }
}

/** RFC 7766: one question on one connection, each message behind its length in two octets. */
async function askTcp(clock: Clock, ask: Ask): Promise<Exchange> {
  const id = randomInt(MAX_ID);
  const { promise, resolve } = Promise.withResolvers<Exchange>();
  const cancel = clock.after(ask.timeoutMs, () => resolve({ kind: "timeout" }));
  let received = Buffer.alloc(0);
  const take = (chunk: Buffer): void => {
    received = Buffer.concat([received, chunk]);
    const end = received.length < LENGTH_OCTETS ? Infinity : LENGTH_OCTETS + received.readUInt16BE(0);
    if (received.length < end) return;
    const answer = decodeAnswer(received.subarray(LENGTH_OCTETS, end), ask.question, id);
    resolve(answer === null ? { kind: "unreachable" } : { kind: "answer", answer });
  };
  const query = encodeQuery(ask.question, id, ask.edns);
  const length = Buffer.alloc(LENGTH_OCTETS);
  length.writeUInt16BE(query.length);
  const opening = Bun.connect({
    hostname: ask.server.ip,
    port: ask.server.port,
    socket: {
      // A question is far smaller than a fresh connection's send buffer: it goes out in one write.
      open: (socket) => void socket.write(Buffer.concat([length, query])),
      data: (_socket, chunk) => take(chunk),
      close: () => resolve({ kind: "unreachable" }),
      error: () => resolve({ kind: "unreachable" }),
      connectError: () => resolve({ kind: "unreachable" }),
    },
  });
  opening.catch(() => resolve({ kind: "unreachable" }));
  const outcome = await promise;
  cancel();
  // The connection may still be opening when the time is over; it is closed once it has.
  opening.then((socket) => socket.terminate()).catch(() => undefined);
  return outcome;
}
