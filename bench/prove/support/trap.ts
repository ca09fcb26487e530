import type { KeyAndCert } from "../../../test/support/tls.ts";

/** A connection, by the address and port that it was made to. */
export interface Caught {
  ip: string;
  port: number;
}

/** Listeners on every address of the machine, which record everything that reaches them. */
export interface Trap {
  /** Connections to addresses other than the endpoint's: they must not happen. */
  caught: Caught[];
  /** First lines of the requests that reached the endpoint. */
  requests: string[];
  stop(): void;
}

export interface TrapOptions {
  ports: readonly number[];
  /** Address of an honest endpoint, which speaks TLS on 443 and answers with the result of `answer` for a path. */
  endpoint: string;
  tls: KeyAndCert;
  answer(path: string): string;
}

interface Piped {
  inner: Bun.Socket | null;
  waiting: Buffer[];
}

const MAPPED = "::ffff:";
const HTTPS = 443;

/** Sets the trap. Counts and cuts every TCP connection to an address that is not the endpoint's. */
export function setTrap(options: TrapOptions): Trap {
  const trap: Trap = {
    caught: [],
    requests: [],
    stop() {
      for (const server of servers) server.stop(true);
    },
  };
  const endpoint = startEndpoint(options, trap);
  const listeners = options.ports.map((port) =>
    Bun.listen<Piped>({
      hostname: "::",
      port,
      socket: {
        open(socket) {
          socket.data = { inner: null, waiting: [] };
          const ip = addressOf(socket);
          if (ip !== options.endpoint) trap.caught.push({ ip, port });
          if (ip === options.endpoint && port === HTTPS) void pipeTo(socket, endpoint.port);
          else socket.end();
        },
        data({ data }, chunk) {
          if (data.inner === null) data.waiting.push(Buffer.from(chunk));
          else data.inner.write(chunk);
        },
        close: ({ data }) => void data.inner?.end(),
        error: () => undefined,
      },
    }),
  );
  const servers: { stop(closeActive: boolean): void }[] = [endpoint, ...listeners];
  return trap;
}

/** The endpoint inside the trap. A TLS listener reports a connection only after the handshake, the trap at once. */
function startEndpoint(options: TrapOptions, trap: Trap): Bun.TCPSocketListener {
  return Bun.listen({
    hostname: "127.0.0.1",
    port: 0,
    tls: options.tls,
    socket: {
      data(socket, chunk) {
        const [line = ""] = chunk.toString("latin1").split("\r\n");
        if (!/^(GET|POST) /.test(line)) return;
        trap.requests.push(line);
        socket.end(options.answer(line.split(" ")[1] ?? ""));
      },
      error: () => undefined,
    },
  });
}

async function pipeTo(socket: Bun.Socket<Piped>, port: number): Promise<void> {
  const inner = await Bun.connect({
    hostname: "127.0.0.1",
    port,
    socket: {
      data: (_inner, chunk) => void socket.write(chunk),
      close: () => void socket.end(),
      error: () => undefined,
    },
  });
  for (const chunk of socket.data.waiting.splice(0)) inner.write(chunk);
  socket.data.inner = inner;
}

/** Returns the address a connection was made to. IPv4 on an IPv6 socket is shown in its own form. */
function addressOf({ localAddress }: Bun.Socket<Piped>): string {
  return localAddress.startsWith(MAPPED) ? localAddress.slice(MAPPED.length) : localAddress;
}
