import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

/** A server whose paths begin with the name of a fault and an id. It counts the requests of each id. */
export interface FaultyServer {
  url: string;
  stop(): void;
}

interface Tried {
  tries: number;
  /** Idempotency keys of the requests. */
  keys: (string | null)[];
}

type Fault = (tried: Tried, response: ServerResponse, request: IncomingMessage) => void;

function answer(response: ServerResponse, status: number, body: unknown, headers = {}): void {
  response.writeHead(status, { "content-type": "application/json", ...headers });
  response.end(JSON.stringify(body));
}

function refuse(status: number, type: string, headers = {}): Fault {
  return ({ tries }, response) =>
    answer(response, status, { error: { type, message: `try ${tries}`, requestId: "req_1" } }, headers);
}

/** The first try fails, the second succeeds. */
function once(fault: Fault): Fault {
  return (tried, response, request) =>
    tried.tries === 1 ? fault(tried, response, request) : answer(response, 200, tried);
}

const FAULTS: Readonly<Record<string, Fault>> = {
  busy: once(refuse(429, "rate_limited", { "retry-after": "0" })),
  down: once(refuse(503, "service_unavailable", { "retry-after": "0" })),
  cut: once((_, __, request) => void request.socket.destroy()),
  half: once((_, response, request) => {
    response.writeHead(200, { "content-type": "application/json", "content-length": "100" });
    response.write('{"a":', () => request.socket.destroy());
  }),
  broken: refuse(500, "internal_error", { "retry-after": "0" }),
  refused: refuse(422, "validation_error"),
  hour: refuse(429, "rate_limited", { "retry-after": "3600" }),
  wait: refuse(429, "rate_limited", { "retry-after": "30" }),
  proxy(_, response) {
    response.writeHead(502, { "content-type": "text/html" });
    response.end("<h1>Bad gateway</h1>");
  },
  silent: () => undefined,
};

/** Starts the server on a free port. */
export async function startFaultyServer(): Promise<FaultyServer> {
  const seen = new Map<string, Tried>();
  const server = createServer((request, response) => {
    const [, fault = "", id = ""] = (request.url ?? "").split("/");
    const tried = seen.get(id) ?? { tries: 0, keys: [] };
    tried.tries++;
    tried.keys.push(request.headers["idempotency-key"]?.toString() ?? null);
    seen.set(id, tried);
    request.resume();
    request.on("end", () => FAULTS[fault]?.(tried, response, request));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    stop() {
      server.closeAllConnections();
      server.close();
    },
  };
}
