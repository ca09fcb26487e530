import type { TCPSocketListener } from "bun";
import { type Clock, within } from "../core/clock.ts";
import { isInNetworks } from "../core/networks.ts";
import type { Log } from "../log.ts";
import { Connection } from "./connection.ts";
import type { ConnectionOptions } from "./connection-options.ts";
import type { MailHandler } from "./envelope.ts";
import { guardedHandler } from "./guarded-handler.ts";
import { Intake } from "./intake.ts";
import { largest } from "./kept-message.ts";
import { MessageMemory } from "./message-memory.ts";
import { createAdmission, createKnownPeers, isLoopback, plainAddress } from "./peer.ts";
import { Proxied } from "./proxied.ts";
import { formatReply, REPLIES } from "./reply.ts";
import { SOCKET_EVENTS, type SmtpSocket, type SocketOwner } from "./socket-events.ts";
import { type SmtpMeter, type Watch, watchSession } from "./watch.ts";

/**
 * Messages of the largest size that may be in memory while all are read on. The oldest is read on beyond that, so that
 * there are two and the beginning of a third, and the room of one more is left to small mail (`intake`).
 */
const LARGE_MESSAGES_IN_FLIGHT = 1.5;
/** Silence asked of strangers before the greeting. Who has brought mail before, or is on this machine, is greeted at once. */
export const GREET_AFTER_MS = 300;
/** Peers remembered to have brought mail that was taken. */
const MAX_KNOWN_PEERS = 10_000;

/** Recipients of one inbound transaction: the number RFC 5321 §4.5.3.1.8 asks for at least. */
export const MAX_INBOUND_RECIPIENTS = 100;

export interface ListenerDeps {
  clock: Clock;
  handler: MailHandler;
  log: Log;
  meter?: SmtpMeter;
}

export interface ListenerOptions {
  /** Address and port to listen on; port 0 takes any free one. */
  host: string;
  port: number;
  /** Our name in the banner and in EHLO's answer. */
  hostname: string;
  maxMessageBytes: number;
  /** Recipients of one transaction. */
  maxRecipients: number;
  maxConnections: number;
  /** From one IPv4 address or one IPv6 /64; loopback is exempt. */
  maxConnectionsPerIp: number;
  /**
   * Addresses and networks (`address/bits`) of proxies: their connections begin with a header of PROXY protocol version
   * 2, which says who the client is. Nobody else is believed.
   */
  proxies: readonly string[];
  /** Private key and certificate chain of STARTTLS, PEM. */
  tls: { key: string; cert: string };
}

export interface Listener {
  /** Octets of messages in memory that have no answer yet. */
  readonly held: number;
  /** Sessions that stand. */
  readonly sessions: number;
  /** Serves TLS with this key and certificate chain from the next handshake on. */
  setCertificate(tls: { key: string; cert: string }): void;
  /** Resolves with the port listened on; rejects where it cannot be had. */
  start(): Promise<{ port: number }>;
  /**
   * Accepts no more, sends idle sessions away, lets messages in hand be answered for at most `graceMs`, closes all.
   * The handler may still have a message in hand when that time is over; its sender was not told 250.
   */
  stop(graceMs: number): Promise<void>;
}

/** The receiving end of SMTP on one address and port. */
export function createListener(deps: ListenerDeps, options: ListenerOptions): Listener {
  const admission = createAdmission(options);
  const intake = new Intake(deps.clock, LARGE_MESSAGES_IN_FLIGHT * options.maxMessageBytes);
  const memory = new MessageMemory(deps.clock, largest(options.maxMessageBytes));
  const handler = guardedHandler(deps, memory);
  const known = createKnownPeers(MAX_KNOWN_PEERS);
  let certificate = options.tls;
  const connections = new Set<Connection>();
  let server: TCPSocketListener<SocketOwner | undefined> | null = null;
  let allGone: (() => void) | null = null;

  function gone(connection: Connection, watch: Watch | undefined): void {
    if (!connections.delete(connection)) return;
    watch?.ended();
    admission.leave(connection.ip);
    if (connection.messages > 0) known.add(connection.ip);
    if (connections.size === 0) allGone?.();
  }

  function optionsFor(ip: string): ConnectionOptions {
    const local = isLoopback(ip);
    return {
      ...options,
      ip,
      tls: () => certificate,
      hasRoom: () => intake.open,
      memory,
      greetAfterMs: local || known.has(ip) ? 0 : GREET_AFTER_MS,
      tarpit: !local,
    };
  }

  function accept(socket: SmtpSocket): void {
    const ip = plainAddress(socket.remoteAddress);
    if (!isInNetworks(ip, options.proxies)) admit(socket, ip);
    else socket.data = new Proxied({ ...deps, admit: admitProxied }, socket);
  }

  function admitProxied(socket: SmtpSocket, ip: string | null, rest: Buffer): void {
    admit(socket, ip ?? plainAddress(socket.remoteAddress));
    if (rest.length > 0) socket.data?.received(socket, rest);
  }

  function admit(socket: SmtpSocket, ip: string): void {
    if (allGone !== null || !admission.enter(ip)) {
      socket.data = undefined;
      deps.meter?.sessionEnded(0, "turned_away");
      socket.end(formatReply(allGone === null ? REPLIES.tooManyConnections : REPLIES.shuttingDown));
      return;
    }
    const watch = deps.meter === undefined ? undefined : watchSession(deps.clock, deps.meter);
    const connection: Connection = new Connection(
      { ...deps, handler, intake, gone: () => gone(connection, watch) },
      { ...optionsFor(ip), said: watch?.said },
      socket,
    );
    socket.data = connection;
    connections.add(connection);
    connection.open();
  }

  async function start(): Promise<{ port: number }> {
    server = Bun.listen<SocketOwner | undefined>({
      hostname: options.host,
      port: options.port,
      // A client may close its side behind its last command and still wait for the answer.
      allowHalfOpen: true,
      socket: { ...SOCKET_EVENTS, open: accept },
    });
    return { port: server.port };
  }

  async function stop(graceMs: number): Promise<void> {
    const empty = new Promise<void>((resolve) => {
      allGone = resolve;
    });
    server?.stop(false);
    handler.stopping();
    for (const connection of [...connections]) connection.dismiss();
    if (connections.size > 0) await within(deps.clock, graceMs, empty, undefined);
    for (const connection of [...connections]) connection.cutOff();
    connections.clear();
    server?.stop(true);
    memory.clear();
  }

  function setCertificate(tls: { key: string; cert: string }): void {
    certificate = tls;
  }

  return {
    get held() {
      return intake.octets;
    },
    get sessions() {
      return connections.size;
    },
    start,
    stop,
    setCertificate,
  };
}
