import { Elysia } from "elysia";
import type { Config } from "../config.ts";
import { type Clock, within } from "../core/clock.ts";
import { clientAddress } from "../core/networks.ts";
import { AppError } from "../core/errors.ts";
import { gathering, turn } from "../core/turn.ts";
import type { Db } from "../store/engine/client.ts";
import { touchKey } from "../store/keys.ts";
import { toResponse } from "./answer.ts";
import { BodyRoom } from "./body-room.ts";
import { BodyTurns } from "./body-turns.ts";
import { type DispatchDeps, dispatch } from "./dispatch.ts";
import { type DocsFiles, docsRoutes } from "./docs.ts";
import { openAnswers } from "./download.ts";
import { errorAnswer } from "./errors.ts";
import { probeRoutes, type ReadyCheck } from "./health.ts";
import { trackKeyUse } from "./key-use.ts";
import { type MetricsDoor, metricsRoute } from "./metrics.ts";
import { errors, requestId, requestIdIn, SECURITY_HEADERS, securityHeaders } from "./plugins.ts";
import { REQUEST_ID_HEADER, requestIdOf } from "./request-id.ts";
import type { RateLimiter } from "./rate.ts";
import type { Route } from "./route.ts";
import { routeTable } from "./route-table.ts";

/** A request answered, for counters and the access log. */
export interface AnsweredRequest {
  requestId: string;
  method: string;
  /** The route's path with its `:name` segments: a bounded set of labels. */
  route: string;
  status: number;
  durationMs: number;
}

/** What the HTTP shell runs on. */
export interface HttpDeps {
  db: Db;
  clock: Clock;
  config: Pick<Config, "host" | "port" | "maxBodyBytes" | "publicUrl" | "httpProxies">;
  /** Authenticates cursors. */
  cursorKey: Uint8Array;
  /** Seals secrets at rest. */
  boxKey: Uint8Array;
  /** Token buckets; null: no rate limit. */
  limiter: RateLimiter | null;
  /** What `/readyz` asks. */
  checks: readonly ReadyCheck[];
  /** Files of the reference page; null: `/docs` answers 404. */
  docs: DocsFiles | null;
  /** Called after each answer of a route. */
  onAnswer: ((answered: AnsweredRequest) => void) | null;
  /** `/metrics`; left out where there is none. */
  metrics?: MetricsDoor;
  /** Every route besides probes, metrics and reference. Empty: the reference has nothing to show, and is not served. */
  routes: readonly Route[];
}

/** The HTTP door. */
export interface Http {
  /** Listens on the configured host and port. */
  start(): Promise<{ port: number }>;
  /** Takes no new connection, waits for requests in hand and those sent by now, at most `graceMs`, then cuts what is left. */
  stop(graceMs: number): Promise<void>;
  /** Closes connections that have been answered and have sent nothing since. Their clients make new ones. */
  closeIdle(): void;
  /** Answers one request without a socket. */
  fetch(request: Request): Promise<Response>;
}

/**
 * Seconds without a byte after which a connection is closed; Bun does so up to four seconds before. Longer than what nginx and
 * the load balancers of clouds keep a connection to us at rest: 60 seconds unless they are told otherwise. Where the
 * server ends it first, the next request may meet the end on its way, and the client is answered 502.
 */
export const IDLE_TIMEOUT_SECONDS = 75;

/** Turns of the event loop in which a stop still reads what clients have sent. */
const PARTING_TURNS = 20;

/** Bun answers an empty 413 over its own limit; ours, which has the envelope, must be the one that trips. */
const SERVER_BODY_BYTES = 2 ** 40;

/** Puts the shell together. Nothing listens until `start`. */
export function createHttp(deps: HttpDeps): Http {
  const keyUse = trackKeyUse((keyId, usedAt) => touchKey(deps.db, keyId, usedAt));
  const shell: DispatchDeps = {
    ...deps,
    maxBodyBytes: deps.config.maxBodyBytes,
    keyUse,
    inFlight: new Set(),
    room: new BodyRoom(),
    turns: new BodyTurns(),
    answers: openAnswers(deps.clock),
  };
  const routes = [
    ...probeRoutes(deps.clock, deps.checks),
    ...(deps.metrics === undefined ? [] : [metricsRoute(deps.metrics)]),
    ...(deps.routes.length === 0 ? [] : docsRoutes(deps)),
    ...deps.routes,
  ];
  const ips = new WeakMap<Request, string>();
  // Otherwise Elysia looks for the path only behind a host name of a standard length.
  const app = new Elysia({ handler: { standardHostname: false } })
    .use(requestId(deps.clock))
    .use(securityHeaders())
    .use(errors(routeTable(routes)))
    .use(resources(deps, shell, routes, ips));
  let server: Bun.Server<undefined> | null = null;
  let parting = false;
  return {
    async start() {
      server = listen(deps, async (request, ip) => {
        if (ip !== null) ips.set(request, ip);
        const response = await app.fetch(request);
        // RFC 9112 §9.6: whoever is told writes no further request into a connection that we are about to close.
        if (parting) response.headers.set("connection", "close");
        return response;
      });
      return { port: server.port ?? 0 };
    },
    async stop(graceMs) {
      parting = true;
      if (server !== null) await stopServer(server, deps.clock, graceMs);
      await keyUse.settled();
    },
    closeIdle() {
      server?.closeIdleConnections();
    },
    async fetch(request) {
      return app.fetch(request);
    },
  };
}

/** Listens; hands on each request that names a host as a host is named, with the address of the client. */
function listen(
  { clock, config, db }: HttpDeps,
  answer: (request: Request, ip: string | null) => Promise<Response>,
): Bun.Server<undefined> {
  // None is answered from before what others had committed when it came.
  const taken = gathering(() => db.heard());
  return Bun.serve({
    hostname: config.host,
    port: config.port,
    idleTimeout: IDLE_TIMEOUT_SECONDS,
    maxRequestBodySize: SERVER_BODY_BYTES,
    // Bun's development page shows stacks and paths.
    development: false,
    // Unless told otherwise Bun shares the port (Linux, SO_REUSEPORT): a second process that was started by mistake
    // would take half of the requests, and nobody would be told.
    reusePort: false,
    async fetch(raw, self) {
      const peer = self.requestIP(raw)?.address;
      await taken();
      if (!HOST.test(raw.headers.get("host") ?? "")) return refuseHost(clock.now(), raw);
      const forwarded = raw.headers.get("x-forwarded-for");
      const ip = peer === undefined ? null : clientAddress(peer, forwarded, config.httpProxies);
      return answer(absolute(raw), ip);
    },
  });
}

/** What a Host header may hold (RFC 9112 §3.2, RFC 3986 §3.2.2): a name, an address, none; and a port. */
const HOST = /^(?:[A-Za-z0-9._~-]*|\[[0-9A-Fa-f:.]+\])(?::\d{0,5})?$/;

/** 400, as RFC 9112 §3.2 wants it, ahead of a router that could not read the URL. */
function refuseHost(now: number, { headers }: Request): Response {
  const id = requestIdOf(headers, now);
  const error = new AppError("invalid_request", "The Host header names no host.", { param: "Host" });
  const answer = errorAnswer(error, id);
  return toResponse({
    ...answer,
    headers: { ...answer.headers, ...SECURITY_HEADERS, [REQUEST_ID_HEADER]: id },
  });
}

/** A request without a Host header has a URL without a host; the router and we want a whole one. */
function absolute(request: Request): Request {
  return URL.canParse(request.url) ? request : new Request(pathUrl(request.url), request);
}

/** The URL of a request target behind a host of our own; a target that is no path leads nowhere. */
function pathUrl(target: string): string {
  const path = target.startsWith("/") ? target : "/";
  return `http://localhost${path}`;
}

/** Our routes as Elysia's. The body is read by the shell itself, after key and scope have been checked. */
function resources(
  deps: HttpDeps,
  shell: DispatchDeps,
  routes: readonly Route[],
  ips: WeakMap<Request, string>,
) {
  const app = new Elysia({ name: "resources" });
  for (const route of routes)
    app.route(route.method, route.path, handlerOf(deps, shell, route, ips), { parse: "none" });
  return app;
}

function handlerOf(deps: HttpDeps, shell: DispatchDeps, route: Route, ips: WeakMap<Request, string>) {
  return async ({ request, params, set }: Routed): Promise<Response> => {
    const startedAt = deps.clock.now();
    const id = requestIdIn(set.headers);
    const ip = ips.get(request) ?? null;
    const answer = await dispatch(shell, route, {
      request,
      params: textsOf(params),
      requestId: id,
      ip,
      headers: set.headers,
    }).catch((error: unknown) => errorAnswer(error, id));
    const durationMs = deps.clock.now() - startedAt;
    const { status } = answer;
    deps.onAnswer?.({ requestId: id, method: request.method, route: route.path, status, durationMs });
    const headers = { ...textsOf(set.headers), ...answer.headers };
    // What is left there Elysia would put into a second response, made of this one.
    set.headers = {};
    return toResponse({ ...answer, headers });
  };
}

interface Routed {
  request: Request;
  /** Absent where the path has none. */
  params?: Record<string, unknown>;
  set: { headers: Record<string, string | number> };
}

/**
 * What the router has put together, as texts. A segment that is no percent-encoding comes as null from it: no id is like the
 * empty text.
 */
function textsOf(params: Record<string, unknown> = {}): Record<string, string> {
  return Object.fromEntries(Object.entries(params).map(([name, value]) => [name, String(value ?? "")]));
}

/**
 * A few turns of the event loop: Bun's stop closes each connection on which it has read no request, and those that were
 * sent before would be lost unanswered.
 */
async function untilRead(): Promise<void> {
  for (let count = 0; count < PARTING_TURNS; count++) await turn();
}

async function stopServer(server: Bun.Server<undefined>, clock: Clock, graceMs: number): Promise<void> {
  const done = untilRead()
    .then(() => server.stop())
    .then(() => true);
  if (!(await within(clock, graceMs, done, false))) await server.stop(true);
}
