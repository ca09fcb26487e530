import { type Arrivals, arrivals } from "./arrivals.ts";
import type { KeyAndCert } from "./tls.ts";

export interface SinkRequest {
  method: string;
  path: string;
  headers: Headers;
  body: string;
}

/** The answer to a request: a status, or a response that the test builds. */
export type SinkAnswer = number | ((request: SinkRequest) => Response | Promise<Response>);

export interface HttpsSink {
  port: number;
  /** On 127.0.0.1. */
  url: string;
  requests: Arrivals<SinkRequest>;
  /** Applies to later requests. A list is used up item by item, then its last item repeats. */
  answer(...answers: SinkAnswer[]): void;
  stop(): Promise<void>;
}

/** A web server on loopback that keeps the requests it gets. If it has a certificate, it serves https. */
export function startSink(tls?: KeyAndCert): HttpsSink {
  const requests = arrivals<SinkRequest>();
  let answers: SinkAnswer[] = [200];
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    // The test decides how long an answer takes.
    idleTimeout: 0,
    ...(tls === undefined ? {} : { tls }),
    async fetch(raw) {
      const { pathname, search } = new URL(raw.url);
      const body = await raw.text();
      const request = { method: raw.method, path: pathname + search, headers: raw.headers, body };
      const answer = (answers.length > 1 ? answers.shift() : answers[0]) ?? 200;
      requests.add(request);
      return typeof answer === "number" ? new Response(null, { status: answer }) : answer(request);
    },
  });
  const port = server.port ?? 0;
  return {
    port,
    url: `${tls === undefined ? "http" : "https"}://127.0.0.1:${port}`,
    requests,
    answer: (...next) => {
      answers = next;
    },
    stop: () => server.stop(true),
  };
}

export interface RawSink {
  port: number;
  /** Connections so far. */
  connections: Arrivals<number>;
  /** One item for each connection that has been closed. */
  closed: Arrivals<number>;
  /** One item each time a response has been written. */
  answered: Arrivals<number>;
  /** Bytes of the response that the last connection has accepted. */
  taken(): number;
  stop(): void;
}

/** A server that answers any request with the given bytes, valid or not. "endless" never stops sending. */
export function startRawSink(
  head: string,
  then: "end" | "wait" | "endless" = "wait",
  tls?: KeyAndCert,
): RawSink {
  const connections = arrivals<number>();
  const closed = arrivals<number>();
  const answered = arrivals<number>();
  const block = Buffer.alloc(64 * 1024, "x");
  let taken = 0;
  const pour = (socket: Bun.Socket): void => {
    for (let written = block.length; written === block.length; taken += Math.max(0, written))
      written = socket.write(block);
  };
  const server = Bun.listen({
    hostname: "127.0.0.1",
    port: 0,
    ...(tls === undefined ? {} : { tls }),
    socket: {
      open: () => connections.add(connections.items.length + 1),
      data: (socket) => {
        if (head !== "") socket.write(head);
        answered.add(answered.items.length + 1);
        if (then === "end") socket.end();
        if (then === "endless") pour(socket);
      },
      drain: (socket) => void (then === "endless" && pour(socket)),
      close: () => closed.add(closed.items.length + 1),
      error: () => undefined,
    },
  });
  return {
    port: server.port,
    connections,
    closed,
    answered,
    taken: () => taken,
    stop: () => server.stop(true),
  };
}
