import type { Socket, TCPSocketListener } from "bun";
import { type Clock, sleep } from "../core/clock.ts";
import type { Log } from "../log.ts";
import { Connection, SOCKET_EVENTS } from "./connection.ts";
import type { MailHandler } from "./envelope.ts";
import { createAdmission, plainAddress } from "./peer.ts";
import { formatReply, REPLIES } from "./reply.ts";

/** Recipients of one inbound transaction: the number RFC 5321 §4.5.3.1.8 asks for at least. */
export const MAX_INBOUND_RECIPIENTS = 100;

export interface ListenerDeps {
  clock: Clock;
  handler: MailHandler;
  log: Log;
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
  /** Private key and certificate chain of STARTTLS, PEM. */
  tls: { key: string; cert: string };
}

export interface Listener {
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
  const connections = new Set<Connection>();
  let server: TCPSocketListener<Connection | undefined> | null = null;
  let allGone: (() => void) | null = null;

  function gone(connection: Connection): void {
    if (!connections.delete(connection)) return;
    admission.leave(connection.ip);
    if (connections.size === 0) allGone?.();
  }

  function accept(socket: Socket<Connection | undefined>): void {
    const ip = plainAddress(socket.remoteAddress);
    if (allGone !== null || !admission.enter(ip)) {
      socket.end(formatReply(allGone === null ? REPLIES.tooManyConnections : REPLIES.shuttingDown));
      return;
    }
    const connection = new Connection({ ...deps, gone }, { ...options, ip }, socket);
    socket.data = connection;
    connections.add(connection);
    connection.open();
  }

  async function start(): Promise<{ port: number }> {
    server = Bun.listen<Connection | undefined>({
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
    for (const connection of [...connections]) connection.dismiss();
    if (connections.size > 0) await Promise.race([empty, sleep(deps.clock, graceMs)]);
    for (const connection of [...connections]) connection.cutOff();
    connections.clear();
    server?.stop(true);
  }

  return { start, stop };
}
