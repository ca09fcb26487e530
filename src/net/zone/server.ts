import type { Clock } from "../../core/time/clock.ts";
import { createResponder, type Responder, type ResponderDeps } from "./responder.ts";
import { clientNetwork, createResponseLimiter, type ResponseLimiter } from "./response-limiter.ts";
import { TcpSession, type TcpSocket } from "./tcp-session.ts";

/** Maximum number of connections in total and from one network (RFC 7766 §6.2.2: a client needs one). */
export const MAX_TCP_CONNECTIONS = 512;
export const MAX_TCP_CONNECTIONS_PER_NETWORK = 32;
/** Attempts to find a port that is free for both UDP and TCP, if any port will do. */
const PORT_PICKS = 20;
/** Maximum number of attempts to send one datagram. */
const MAX_SENDS = 3;

export interface ZoneServerOptions {
  /** Addresses to listen on. */
  hosts: readonly string[];
  /** 0 chooses a free one. */
  port: number;
}

export interface ZoneServer {
  readonly port: number;
  /** Closes at once. A client without an answer asks again, or asks another server. */
  stop(): void;
}

interface Serving {
  clock: Clock;
  responder: Responder;
  limiter: ResponseLimiter;
  /** Oldest first. */
  sessions: Set<TcpSession>;
  /** Open connections by network. */
  perNetwork: Map<string, number>;
}

interface Bound {
  port: number;
  close(): void;
}

/** Serves zones by UDP and TCP. Rejects if the port cannot be bound. */
export async function startZoneServer(
  deps: ResponderDeps,
  { hosts, port }: ZoneServerOptions,
): Promise<ZoneServer> {
  const serving: Serving = {
    clock: deps.clock,
    responder: createResponder(deps),
    limiter: createResponseLimiter(deps.clock),
    sessions: new Set(),
    perNetwork: new Map(),
  };
  const bound: Bound[] = [];
  const stop = (): void => {
    for (const { close } of bound) close();
    for (const session of [...serving.sessions]) session.close();
  };
  try {
    for (const host of hosts) bound.push(await listen(serving, host, bound[0]?.port ?? port));
  } catch (error) {
    stop();
    throw error;
  }
  return { port: bound[0]?.port ?? port, stop };
}

/** TCP first, because a TCP port cannot be shared by mistake. */
async function listen(serving: Serving, host: string, port: number): Promise<Bound> {
  for (let pick = 1; ; pick++) {
    const tcp = listenTcp(serving, host, port);
    try {
      const udp = await listenUdp(serving, host, tcp.port);
      const close = (): void => {
        udp.close();
        tcp.stop(true);
      };
      return { port: tcp.port, close };
    } catch (error) {
      tcp.stop(true);
      if (port !== 0 || pick === PORT_PICKS) throw error;
    }
  }
}

function listenUdp(serving: Serving, hostname: string, port: number): Promise<Bun.udp.Socket<"buffer">> {
  return Bun.udpSocket({
    hostname,
    port,
    binaryType: "buffer",
    socket: {
      data: (socket, packet, from, address) => void answerDatagram(serving, socket, packet, from, address),
      // The kernel reports clients that are unreachable. There is nothing to do.
      error: () => undefined,
    },
  });
}

async function answerDatagram(
  serving: Serving,
  socket: Bun.udp.Socket<"buffer">,
  packet: Buffer,
  port: number,
  address: string,
): Promise<void> {
  // Port 0 cannot receive an answer.
  const response = port === 0 ? null : await serving.responder(packet, "udp", address);
  if (response === null || socket.closed) return;
  const verdict = response.trusted
    ? "send"
    : serving.limiter.take(clientNetwork(address), response.kind, response.question);
  const octets = verdict === "slip" ? response.truncated() : response.octets;
  if (verdict === "drop" || octets === null) return;
  send(socket, octets, port, address);
}

/**
 * Sends an answer. If an earlier datagram found a closed port, the kernel reports that at the next send, to any client,
 * and sends nothing. Without another attempt, queries from such ports would suppress answers to other clients. If the
 * socket's buffer is full, the answer is dropped and the client asks again.
 */
function send(socket: Bun.udp.Socket<"buffer">, octets: Buffer, port: number, address: string): void {
  for (let attempt = 0; attempt < MAX_SENDS; attempt++)
    try {
      socket.send(octets, port, address);
      return;
    } catch {
      // Or the address is unreachable, because it was forged or the client is gone.
    }
}

function listenTcp(serving: Serving, hostname: string, port: number) {
  return Bun.listen<TcpSession | undefined>({
    hostname,
    port,
    // A client may close its side after its last question and still wait for the answer.
    allowHalfOpen: true,
    socket: {
      open: (socket) => admit(serving, socket),
      data: (socket, chunk) => socket.data?.received(chunk),
      drain: (socket) => socket.data?.drained(),
      end: (socket) => socket.data?.peerEnded(),
      close: (socket) => socket.data?.closed(),
      error: (socket) => socket.data?.close(),
    },
  });
}

/**
 * Admits a connection. If there are too many, closes the oldest. One network cannot displace the connections of all.
 */
function admit(serving: Serving, socket: TcpSocket): void {
  const { clock, responder, sessions, perNetwork } = serving;
  const network = clientNetwork(socket.remoteAddress);
  const others = perNetwork.get(network) ?? 0;
  if (others >= MAX_TCP_CONNECTIONS_PER_NETWORK) {
    socket.terminate();
    return;
  }
  const [oldest] = sessions;
  if (sessions.size >= MAX_TCP_CONNECTIONS) oldest?.close();
  const onClosed = (): void => {
    sessions.delete(session);
    const left = (perNetwork.get(network) ?? 0) - 1;
    if (left > 0) perNetwork.set(network, left);
    else perNetwork.delete(network);
  };
  const session: TcpSession = new TcpSession({ clock, responder, onClosed }, socket);
  socket.data = session;
  sessions.add(session);
  perNetwork.set(network, (perNetwork.get(network) ?? 0) + 1);
}
