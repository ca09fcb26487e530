import type { TCPSocketListener } from "bun";
import { type Clock, within } from "../../core/time/clock.ts";
import { isInNetworks } from "../../core/networks.ts";
import type { Log } from "../../log.ts";
import { Connection } from "./connection.ts";
import type { ConnectionOptions } from "./connection-options.ts";
import type { MailHandler } from "../session/envelope.ts";
import type { FailedLogins } from "./failed-logins.ts";
import { guardedHandler } from "./guarded-handler.ts";
import { Intake } from "./intake.ts";
import type { LoginRules } from "../session/login.ts";
import { maxSharedOctets } from "../session/message-buffer.ts";
import { MessageMemory } from "../session/message-memory.ts";
import { createAdmission, createKnownPeers, isLoopback, plainAddress } from "./peer.ts";
import { ProxyHandshake } from "./proxy-handshake.ts";
import { formatReply, REPLIES, type Reply } from "../session/reply.ts";
import { SOCKET_EVENTS, type SmtpSocket, type SocketOwner } from "./socket-events.ts";
import { type SmtpMeter, type SessionRecorder, recordSession } from "./session-metrics.ts";

/**
 * Messages of the largest size that fit in memory before reading is limited. The oldest is read beyond that. Together
 * they take up to two and a part; memory for one more is left for small messages (`intake`).
 */
const LARGE_MESSAGES_IN_FLIGHT = 1.5;
/**
 * Delay of the greeting for unknown peers. There is none if the peer has delivered mail before, or is on this machine.
 */
export const GREET_AFTER_MS = 300;
/** Maximum number of addresses remembered of peers whose mail we accepted. */
const MAX_KNOWN_PEERS = 10_000;

/** Maximum number of recipients of one inbound transaction: the minimum of RFC 5321 §4.5.3.1.8. */
export const MAX_INBOUND_RECIPIENTS = 100;

export interface ListenerDeps {
  clock: Clock;
  handler: MailHandler;
  log: Log;
  meter?: SmtpMeter;
  /** Failed logins, which listeners may share. */
  failedLogins?: FailedLogins;
}

export interface ListenerOptions {
  /** Address and port to listen on; port 0 takes any free one. */
  host: string;
  port: number;
  /** If true, further processes may listen there, too: the system gives each connection to one of them (SO_REUSEPORT). */
  shared?: boolean;
  /** Our name in the banner and in EHLO's answer. */
  hostname: string;
  maxMessageBytes: number;
  /** Recipients of one transaction. */
  maxRecipients: number;
  maxConnections: number;
  /** From one IPv4 address or one IPv6 /64; loopback is exempt. */
  maxConnectionsPerIp: number;
  /**
   * Addresses and networks (`address/bits`) of proxies. Their connections begin with a PROXY protocol version 2 header
   * that names the client. No other peer may send one.
   */
  proxies: readonly string[];
  /** Set if the listener takes submissions: how it asks a client of that address for a login. */
  logins?: (ip: string) => LoginRules;
  /** If true, sessions begin with a TLS handshake. Proxies are not asked for a header then. */
  implicitTls?: boolean;
  /** Private key and certificate chain for TLS, in PEM. */
  tls: { key: string; cert: string };
}

export interface Listener {
  /** Octets of unanswered messages in memory. */
  readonly held: number;
  readonly sessions: number;
  /** Uses this key and certificate chain for later handshakes. */
  setCertificate(tls: { key: string; cert: string }): void;
  /** Resolves with the port. Rejects if the port cannot be bound. */
  start(): Promise<{ port: number }>;
  /**
   * Accepts no more connections, ends idle sessions, waits up to `graceMs` for current messages to be answered, then
   * closes all. If the handler takes longer, it may still store a message whose sender got no 250.
   */
  stop(graceMs: number): Promise<void>;
}

/** Creates an SMTP server on one address and port. */
export function createListener(deps: ListenerDeps, options: ListenerOptions): Listener {
  const admission = createAdmission(options);
  const intake = new Intake(deps.clock, LARGE_MESSAGES_IN_FLIGHT * options.maxMessageBytes);
  const memory = new MessageMemory(deps.clock, maxSharedOctets(options.maxMessageBytes));
  const handler = guardedHandler(deps, memory, deps.failedLogins);
  const known = createKnownPeers(MAX_KNOWN_PEERS);
  let certificate = options.tls;
  const connections = new Set<Connection>();
  let server: TCPSocketListener<SocketOwner | undefined> | null = null;
  let allGone: (() => void) | null = null;

  function gone(connection: Connection, watch: SessionRecorder | undefined): void {
    if (!connections.delete(connection)) return;
    watch?.ended();
    admission.leave(connection.ip);
    if (connection.messages > 0) known.add(connection.ip);
    if (connections.size === 0) allGone?.();
  }

  function optionsFor(ip: string): ConnectionOptions {
    const local = isLoopback(ip);
    const { logins, ...rest } = options;
    return {
      ...rest,
      ...(logins === undefined ? {} : { logins: logins(ip) }),
      ip,
      tls: () => certificate,
      hasRoom: () => intake.hasRoom,
      memory,
      // A client that logs in has shown who it is. One that guesses keys is turned away soon.
      greetAfterMs: local || logins !== undefined || known.has(ip) ? 0 : GREET_AFTER_MS,
      tarpit: !local,
    };
  }

  function accept(socket: SmtpSocket): void {
    const ip = plainAddress(socket.remoteAddress);
    // The start of the handshake could come with the header, and could not be handed on to TLS.
    if (options.implicitTls === true || !isInNetworks(ip, options.proxies)) admit(socket, ip);
    else socket.data = new ProxyHandshake({ ...deps, admit: admitProxied }, socket);
  }

  function admitProxied(socket: SmtpSocket, ip: string | null, rest: Buffer): void {
    admit(socket, ip ?? plainAddress(socket.remoteAddress));
    if (rest.length > 0) socket.data?.received(socket, rest);
  }

  /** Counts the connection, or returns the reply that turns it away. */
  function refusalOf(ip: string): Reply | null {
    if (allGone !== null) return REPLIES.shuttingDown;
    if (deps.failedLogins?.blocks(ip) === true) return REPLIES.tooManyLogins;
    return admission.enter(ip) ? null : REPLIES.tooManyConnections;
  }

  function admit(socket: SmtpSocket, ip: string): void {
    const refusal = refusalOf(ip);
    if (refusal !== null) {
      socket.data = undefined;
      deps.meter?.sessionEnded(0, "turned_away");
      // Before the handshake of implicit TLS, a reply would be read as a part of it.
      socket.end(options.implicitTls === true ? "" : formatReply(refusal));
      return;
    }
    const watch = deps.meter === undefined ? undefined : recordSession(deps.clock, deps.meter);
    const connection: Connection = new Connection(
      { ...deps, handler, intake, onClosed: () => gone(connection, watch) },
      { ...optionsFor(ip), onReply: watch?.replied },
      socket,
    );
    socket.data = connection;
    connections.add(connection);
    connection.open();
  }

  async function start(): Promise<{ port: number }> {
    // Bun's declarations lack this option.
    const shared = { reusePort: options.shared === true };
    server = Bun.listen<SocketOwner | undefined>({
      hostname: options.host,
      port: options.port,
      ...shared,
      // A client may close its side after its last command and still wait for the reply.
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
    for (const connection of [...connections]) connection.abort();
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
