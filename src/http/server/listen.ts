import type { Config } from "../../config.ts";
import { type Clock, within } from "../../core/time/clock.ts";
import { clientAddress } from "../../core/networks.ts";
import { AppError, notFound } from "../../core/errors.ts";
import { resumeTogether, yieldToEventLoop } from "../../core/concurrency/event-loop.ts";
import type { Store } from "../../store/engine/client.ts";
import { EVENT_STREAM_TYPE, toResponse } from "../routing/answer.ts";
import { pathIn, type ServesAt } from "../routing/domain-hosts.ts";
import { errorAnswer } from "../routing/errors.ts";
import { SECURITY_HEADERS } from "./router.ts";
import { REQUEST_ID_HEADER, requestIdOf } from "../pipeline/request-log.ts";

/**
 * Seconds without a byte after which a connection is closed. Bun closes it up to four seconds earlier. It must be
 * longer than the idle time of nginx and cloud load balancers, 60 seconds by default. If the server closed first, the
 * next request could be lost, and the client would get 502.
 */
export const IDLE_TIMEOUT_SECONDS = 75;

/** Ticks of the event loop in which a stopping server still reads what clients have sent. */
const PARTING_TURNS = 20;

/** Bun answers an empty 413 over its own limit. Ours must apply first, because its 413 has the error envelope. */
const SERVER_BODY_BYTES = 2 ** 40;

export interface ListenDeps extends Store {
  config: Pick<Config, "host" | "httpProxies">;
  /** Returns whether a path is served at a host. If undefined, each one is. */
  servesAt?: ServesAt;
}

/** A response that comes later. While it is awaited, nothing else of its request should stay in memory. */
export interface LaterResponse {
  coming: Promise<Response>;
}

/** Answers a request. `ip` is the client's address. */
export type Answering = (request: Request, ip: string | null) => Promise<Response | LaterResponse>;

/** Private key and certificate chain, in PEM. */
export interface TlsFiles {
  key: string;
  cert: string;
  /** The host that a client must ask for to meet it. If undefined, it is for all other clients. */
  serverName?: string;
}

export interface ListenOn {
  /** 0 takes any free one. */
  port: number;
  /** The certificates, the one for clients that ask for no known host first. If undefined, without TLS. */
  tls?: readonly TlsFiles[];
  /** True if a second server of this process listens on the port, too. */
  shared?: true;
}

export interface ListeningServer {
  readonly port: number;
  /** Takes no new connections, waits at most `graceMs` for requests that have arrived, and closes all connections. */
  stop(graceMs: number): Promise<void>;
  /** Closes connections whose requests are answered. */
  closeIdle(): void;
}

/** Listens, and passes on each request with a valid Host header and the address of the client. */
export function listen(
  { clock, config, db, servesAt }: ListenDeps,
  answer: Answering,
  { port, tls, shared }: ListenOn,
): ListeningServer {
  let parting = false;
  // RFC 9112 §9.6: if a client sees this header, it sends no further request on a connection that is about to close.
  const finished = (response: Response): Response => {
    if (parting) response.headers.set("connection", "close");
    return response;
  };
  // Each answer must include what other processes had committed when the request came.
  const taken = resumeTogether(() => db.refreshReads());
  const server = Bun.serve({
    hostname: config.host,
    port,
    ...(tls === undefined ? {} : { tls: [...tls] }),
    idleTimeout: IDLE_TIMEOUT_SECONDS,
    maxRequestBodySize: SERVER_BODY_BYTES,
    // Bun's development page would show stack traces and paths.
    development: false,
    // By default Bun shares the port (SO_REUSEPORT on Linux). A second process that was started by mistake would then
    // take half of the requests without an error.
    reusePort: shared === true,
    async fetch(raw, self) {
      const peer = self.requestIP(raw)?.address;
      await taken();
      const host = raw.headers.get("host") ?? "";
      if (!HOST.test(host)) return refuse(clock.now(), raw, noHost());
      if (servesAt?.(host, pathIn(raw.url)) === false) return refuse(clock.now(), raw, notFound("path"));
      const forwarded = raw.headers.get("x-forwarded-for");
      const ip = peer === undefined ? null : clientAddress(peer, forwarded, config.httpProxies);
      const answered = await answer(absolute(raw), ip);
      if (!(answered instanceof Response)) return answered.coming.then(finished);
      if (answered.headers.get("content-type") === EVENT_STREAM_TYPE) self.timeout(raw, 0);
      return finished(answered);
    },
  });
  return {
    port: server.port ?? 0,
    stop(graceMs) {
      parting = true;
      return stopServer(server, clock, graceMs);
    },
    closeIdle: () => void server.closeIdleConnections(),
  };
}

/** Syntax of a Host header (RFC 9112 §3.2, RFC 3986 §3.2.2): a name, an address or nothing, and a port. */
const HOST = /^(?:[A-Za-z0-9._~-]*|\[[0-9A-Fa-f:.]+\])(?::\d{0,5})?$/;

/** Returns the 400 of RFC 9112 §3.2. */
function noHost(): AppError {
  return new AppError("invalid_request", "The Host header names no host.", { param: "Host" });
}

/** Returns an error that comes before the router, which could not parse the URL, or must not see it. */
function refuse(now: number, { headers }: Request, error: AppError): Response {
  const id = requestIdOf(headers, now);
  const answer = errorAnswer(error, id);
  return toResponse({
    ...answer,
    headers: { ...answer.headers, ...SECURITY_HEADERS, [REQUEST_ID_HEADER]: id },
  });
}

/**
 * Returns the request with a complete http URL. If it has no Host header, its URL has no host. In an https URL, Elysia
 * would look for the path at the wrong place.
 */
function absolute(request: Request): Request {
  const { url } = request;
  if (url.startsWith("https:")) return new Request(`http${url.slice("https".length)}`, request);
  return URL.canParse(url) ? request : new Request(pathUrl(url), request);
}

/** Returns the URL of a request target with a host of ours. If the target is not a path, the URL matches no route. */
function pathUrl(target: string): string {
  const path = target.startsWith("/") ? target : "/";
  return `http://localhost${path}`;
}

/**
 * Waits a few ticks of the event loop. When Bun stops, it closes each connection on which it has read no request,
 * and requests that were already sent would be lost.
 */
async function untilRead(): Promise<void> {
  for (let count = 0; count < PARTING_TURNS; count++) await yieldToEventLoop();
}

async function stopServer(server: Bun.Server<undefined>, clock: Clock, graceMs: number): Promise<void> {
  const done = untilRead()
    .then(() => server.stop())
    .then(() => true);
  if (!(await within(clock, graceMs, done, false))) await server.stop(true);
}
