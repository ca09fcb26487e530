import { randomInt, randomBytes } from "node:crypto";
import { isIPv6 } from "node:net";
import type { Clock } from "../../core/time/clock.ts";
import type { DnsServer } from "./servers.ts";
import { type DnsAnswer, type DnsQuestion, decodeAnswer, encodeQuery, isCutOff } from "./packet.ts";

/** Why a server gave no usable answer. */
export type ExchangeTrouble = "timeout" | "unreachable";
/** Result of a question to one server. */
export type Exchange = { kind: "answer"; answer: DnsAnswer } | { kind: ExchangeTrouble };

/** A question to one server, and how to ask it. */
export interface ServerQuery {
  server: DnsServer;
  question: DnsQuestion;
  timeoutMs: number;
  edns: boolean;
  /** Servers that do not repeat the case of a question. */
  caseFolding: Set<DnsServer>;
}

/**
 * If this many packets do not match our question, we repeat it over TCP: an attacker is guessing ids (RFC 5452
 * §9.2), and cannot guess a TCP handshake.
 */
const MAX_STRAY_PACKETS = 16;
const MAX_ID = 0x10000;
const LENGTH_OCTETS = 2;

/** The reason to repeat a question: the answer is truncated, forgeries arrive, or its case is not ours. */
type RetryReason = "by TCP" | "respelled";

/**
 * Asks one server by UDP, and by TCP if the answer is truncated or forgeries arrive. If the answer has another case
 * than the question, asks by TCP too, which tells a forgery from a server that does not keep the case. If the server
 * does not support TCP either, asks once more with the plain name. Never throws.
 */
export async function exchange(clock: Clock, ask: ServerQuery): Promise<Exchange> {
  if (ask.caseFolding.has(ask.server)) return exchangeAnySpelling(clock, ask, ask.question.name);
  const spelling = randomSpelling(ask.question.name);
  const byUdp = await askUdp(clock, ask, spelling);
  if (typeof byUdp !== "string") return byUdp;
  const byTcp = await askTcp(clock, ask, spelling);
  if (byTcp.kind === "answer") {
    if (byTcp.answer.spelling !== spelling) ask.caseFolding.add(ask.server);
    return byTcp;
  }
  if (byUdp === "by TCP") return byTcp;
  // If a server has no TCP, nothing more can be learned. The plain name is as safe as its id and our port.
  ask.caseFolding.add(ask.server);
  return exchangeAnySpelling(clock, ask, ask.question.name);
}

/** Asks without requiring that the server keeps the case. */
async function exchangeAnySpelling(clock: Clock, ask: ServerQuery, spelling: string): Promise<Exchange> {
  const byUdp = await askUdp(clock, ask, spelling, true);
  return typeof byUdp === "string" ? askTcp(clock, ask, spelling) : byUdp;
}

/**
 * Uses a new socket for each question, so that the kernel chooses a random source port (RFC 5452 §9.2). The socket is
 * connected, so it only receives packets from the server's address and port.
 */
async function askUdp(
  clock: Clock,
  ask: ServerQuery,
  spelling: string,
  anySpelling = false,
): Promise<Exchange | RetryReason> {
  const id = randomInt(MAX_ID);
  const { promise, resolve } = Promise.withResolvers<Exchange | RetryReason>();
  let strays = 0;
  const received = (packet: Buffer): void => {
    const answer = decodeAnswer(packet, ask.question, id);
    if (isCutOff(packet, ask.question, id)) resolve("by TCP");
    else if (answer !== null)
      resolve(anySpelling || answer.spelling === spelling ? { kind: "answer", answer } : "respelled");
    else if (++strays >= MAX_STRAY_PACKETS) resolve("by TCP");
  };
  const socket = await openUdp(ask.server, received, () => resolve({ kind: "unreachable" }));
  if (socket === null) return { kind: "unreachable" };
  const cancel = clock.after(ask.timeoutMs, () => resolve({ kind: "timeout" }));
  try {
    socket.send(encodeQuery({ ...ask.question, name: spelling }, id, ask.edns));
    return await promise;
  } catch {
    return { kind: "unreachable" };
  } finally {
    cancel();
    socket.close();
  }
}

/**
 * Opens a socket to one server.
 * @param from our address; if it is left out, the kernel chooses
 * @returns null if the server cannot be reached
 */
export async function openUdp(
  server: DnsServer,
  received: (packet: Buffer) => void,
  failed: () => void,
  from = isIPv6(server.ip) ? "::" : "0.0.0.0",
): Promise<Bun.udp.ConnectedSocket<"buffer"> | null> {
  try {
    return await Bun.udpSocket({
      hostname: from,
      connect: { hostname: server.ip, port: server.port },
      binaryType: "buffer",
      socket: { data: (_socket, packet) => received(packet), error: failed },
    });
  } catch {
    return null;
  }
}

/** RFC 7766: asks one question on one connection. Each message follows its length in two octets. */
async function askTcp(clock: Clock, ask: ServerQuery, spelling: string): Promise<Exchange> {
  const id = randomInt(MAX_ID);
  const { promise, resolve } = Promise.withResolvers<Exchange>();
  const cancel = clock.after(ask.timeoutMs, () => resolve({ kind: "timeout" }));
  const reader = createMessageReader();
  const take = (segment: Buffer): void => {
    const message = reader(segment);
    if (message === null) return;
    const answer = decodeAnswer(message, ask.question, id);
    resolve(answer === null ? { kind: "unreachable" } : { kind: "answer", answer });
  };
  const query = encodeQuery({ ...ask.question, name: spelling }, id, ask.edns);
  const length = Buffer.alloc(LENGTH_OCTETS);
  length.writeUInt16BE(query.length);
  const opening = Bun.connect({
    hostname: ask.server.ip,
    port: ask.server.port,
    socket: {
      // A question is far smaller than the send buffer of a new connection, so one write sends it.
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
  // After a timeout the connection may still open; close it then.
  opening.then((socket) => socket.terminate()).catch(() => undefined);
  return outcome;
}

/**
 * Reads the first message of a TCP connection, which follows its length in two octets (RFC 1035 §4.2.2). Takes the segments
 * one by one, and returns the message when it is whole, else null. Memory is allocated once, when the length is known.
 */
export function createMessageReader(): (segment: Uint8Array) => Buffer | null {
  const length = Buffer.alloc(LENGTH_OCTETS);
  let message: Buffer | null = null;
  let size = 0;
  return (segment) => {
    const prefix = segment.subarray(0, Math.max(0, LENGTH_OCTETS - size));
    length.set(prefix, Math.min(size, LENGTH_OCTETS));
    size += prefix.length;
    if (size < LENGTH_OCTETS) return null;
    message ??= Buffer.allocUnsafeSlow(length.readUInt16BE(0));
    const at = size - LENGTH_OCTETS;
    const content = segment.subarray(prefix.length, prefix.length + message.length - at);
    message.set(content, at);
    size += content.length;
    return size === LENGTH_OCTETS + message.length ? message : null;
  };
}

/**
 * Returns the name with each letter in upper or lower case at random ("0x20", draft-vixie-dnsext-dns0x20). A server
 * repeats the question, so a forged answer must also guess the case of each letter (RFC 5452).
 */
export function randomSpelling(name: string): string {
  const bits = randomBytes(name.length);
  return Array.from(name, (char, at) => ((bits[at] ?? 0) & 1 ? char.toUpperCase() : char)).join("");
}
