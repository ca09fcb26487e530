import { Elysia } from "elysia";
import type { Config } from "../config.ts";
import { type Clock, within } from "../core/time/clock.ts";
import { clientAddress } from "../core/networks.ts";
import { AppError } from "../core/errors.ts";
import { resumeTogether, yieldToEventLoop } from "../core/concurrency/event-loop.ts";
import type { Quotas } from "../core/quotas.ts";
import type { FreeSpace } from "../flows/free-space.ts";
import type { Db } from "../store/engine/client.ts";
import { touchKey } from "../store/keys.ts";
import { toResponse } from "./answer.ts";
import { createBudget, REQUEST_BODY_LIMITS } from "./body/budget.ts";
import { createLargeBodyLimit } from "./body/large-bodies.ts";
import { assetRoutes, type UiSource } from "./dashboard/assets.ts";
import { dashboardPage } from "./dashboard/shell.ts";
import { type DispatchDeps, dispatch } from "./dispatch.ts";
import { type DocsFiles, docsRoutes } from "./openapi/docs.ts";
import { createAnswers } from "./download.ts";
import { errorAnswer } from "./errors.ts";
import { probeRoutes, type ReadyCheck } from "./health.ts";
import { createStepRunner } from "./json/steps.ts";
import { trackKeyUse } from "./access/key-use.ts";
import { metricsRoutes, type ProtectedMetrics } from "./metrics.ts";
import { errors, requestId, requestIdIn, SECURITY_HEADERS, securityHeaders } from "./plugins.ts";
import { type AnsweredRequest, REQUEST_ID_HEADER, requestIdOf } from "./request-log.ts";
import type { RateLimiter } from "./access/rate.ts";
import type { Route } from "./route.ts";
import { routeTable } from "./route-table.ts";

/** Dependencies of the HTTP server. */
export interface HttpDeps {
  db: Db;
  clock: Clock;
  config: Pick<Config, "host" | "port" | "maxBodyBytes" | "publicUrl" | "httpProxies">;
  /** Authenticates cursors. */
  cursorKey: Uint8Array;
  /** Encrypts secrets in the database. */
  boxKey: Uint8Array;
  /** Seals the cookies of sessions. */
  sessionKey: Uint8Array;
  /** Token buckets. Null: there is no rate limit. */
  limiter: RateLimiter | null;
  /** The limits of each plan. */
  quotas: Quotas;
  /** Knows whether the disk has space for new content. */
  space: FreeSpace;
  /** The checks of `/readyz`. */
  checks: readonly ReadyCheck[];
  /** Files of the reference page. Null: `/docs` answers 404. */
  docs: DocsFiles | null;
  /** The dashboard: its files, and its routes, which the reference does not show. Null: there is none. */
  ui: { files: UiSource; routes: readonly Route[] } | null;
  /** Called after each answer of a route. */
  onAnswer: ((answered: AnsweredRequest) => void) | null;
  /** The metrics of this process. */
  metrics?: ProtectedMetrics;
  /** Every route, except probes, metrics and reference. If there are none, the reference is not served. */
  routes: readonly Route[];
}

/** The HTTP server. */
export interface Http {
  /** Listens on the configured host and port. */
  start(): Promise<{ port: number }>;
  /** Takes no new connections, waits at most `graceMs` for requests that have arrived, and closes all connections. */
  stop(graceMs: number): Promise<void>;
  /** Closes connections whose requests are answered. Their clients open new ones. */
  closeIdle(): void;
  /** Answers one request without a socket. */
  fetch(request: Request): Promise<Response>;
}

/**
 * Seconds without a byte after which a connection is closed. Bun closes it up to four seconds earlier. It must be
 * longer than the idle time of nginx and cloud load balancers, 60 seconds by default. If the server closed first, the
 * next request could be lost, and the client would get 502.
 */
export const IDLE_TIMEOUT_SECONDS = 75;

/** Turns of the event loop in which a stopping server still reads what clients have sent. */
const PARTING_TURNS = 20;

/** Bun answers an empty 413 over its own limit. Ours must apply first, because its 413 has the error envelope. */
const SERVER_BODY_BYTES = 2 ** 40;

/** Creates the server. It does not listen until `start`. */
export function createHttp(deps: HttpDeps): Http {
  const keyUse = trackKeyUse((keyId, usedAt) => touchKey(deps.db, keyId, usedAt));
  const shell: DispatchDeps = {
    ...deps,
    maxBodyBytes: deps.config.maxBodyBytes,
    keyUse,
    inFlight: new Set(),
    reserveBody: createBudget(REQUEST_BODY_LIMITS),
    runForBody: createLargeBodyLimit(),
    runSteps: createStepRunner(),
    answers: createAnswers(deps.clock),
  };
  const routes = [
    ...probeRoutes(deps.clock, deps.checks, deps.space),
    ...(deps.metrics === undefined ? [] : metricsRoutes(deps.metrics)),
    ...(deps.routes.length === 0 ? [] : docsRoutes(deps)),
    ...(deps.ui === null ? [] : [...assetRoutes(deps.ui.files), ...deps.ui.routes]),
    ...deps.routes,
  ];
  const ips = new WeakMap<Request, string>();
  // Otherwise Elysia finds the path only if the host name has a standard length.
  const app = new Elysia({ handler: { standardHostname: false } })
    .use(requestId(deps.clock))
    .use(securityHeaders())
    .use(errors(routeTable(routes), deps.ui === null ? null : dashboardPage(deps.ui.files)))
    .use(resources(deps, shell, routes, ips));
  let server: Bun.Server<undefined> | null = null;
  let parting = false;
  return {
    async start() {
      server = listen(deps, async (request, ip) => {
        if (ip !== null) ips.set(request, ip);
        const response = await app.fetch(request);
        // RFC 9112 §9.6: if a client sees this header, it sends no further request on a connection that is about to
        // close.
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

/** Listens, and passes on each request with a valid Host header and the address of the client. */
function listen(
  { clock, config, db }: HttpDeps,
  answer: (request: Request, ip: string | null) => Promise<Response>,
): Bun.Server<undefined> {
  // Each answer must include what other processes had committed when the request came.
  const taken = resumeTogether(() => db.refreshReads());
  return Bun.serve({
    hostname: config.host,
    port: config.port,
    idleTimeout: IDLE_TIMEOUT_SECONDS,
    maxRequestBodySize: SERVER_BODY_BYTES,
    // Bun's development page would show stack traces and paths.
    development: false,
    // By default Bun shares the port (SO_REUSEPORT on Linux). A second process that was started by mistake would then
    // take half of the requests without an error.
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

/** Syntax of a Host header (RFC 9112 §3.2, RFC 3986 §3.2.2): a name, an address or nothing, and a port. */
const HOST = /^(?:[A-Za-z0-9._~-]*|\[[0-9A-Fa-f:.]+\])(?::\d{0,5})?$/;

/** Returns the 400 of RFC 9112 §3.2. It comes before the router, which could not parse the URL. */
function refuseHost(now: number, { headers }: Request): Response {
  const id = requestIdOf(headers, now);
  const error = new AppError("invalid_request", "The Host header names no host.", { param: "Host" });
  const answer = errorAnswer(error, id);
  return toResponse({
    ...answer,
    headers: { ...answer.headers, ...SECURITY_HEADERS, [REQUEST_ID_HEADER]: id },
  });
}

/** Returns the request with a complete URL. If it has no Host header, its URL has no host. */
function absolute(request: Request): Request {
  return URL.canParse(request.url) ? request : new Request(pathUrl(request.url), request);
}

/** Returns the URL of a request target with a host of ours. If the target is not a path, the URL matches no route. */
function pathUrl(target: string): string {
  const path = target.startsWith("/") ? target : "/";
  return `http://localhost${path}`;
}

/** Registers our routes with Elysia. The body is read later, after key and scope have been checked. */
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
    const startedAt = deps.clock.elapsed();
    const id = requestIdIn(set.headers);
    const ip = ips.get(request) ?? null;
    const answer = await dispatch(shell, route, {
      request,
      params: textsOf(params),
      requestId: id,
      ip,
      headers: set.headers,
    }).catch((error: unknown) => errorAnswer(error, id));
    const durationMs = deps.clock.elapsed() - startedAt;
    const { status } = answer;
    deps.onAnswer?.({ requestId: id, method: request.method, route: route.path, status, durationMs });
    const headers = { ...textsOf(set.headers), ...answer.headers };
    // Elysia would copy remaining headers into a second response made from this one.
    set.headers = {};
    return toResponse({ ...answer, headers });
  };
}

interface Routed {
  request: Request;
  /** Absent if the path has no parameters. */
  params?: Record<string, unknown>;
  set: { headers: Record<string, string | number> };
}

/**
 * Returns the path parameters as texts. If a segment is not valid percent-encoding, the router gives null. It becomes
 * the empty text, which is never an id.
 */
function textsOf(params: Record<string, unknown> = {}): Record<string, string> {
  return Object.fromEntries(Object.entries(params).map(([name, value]) => [name, String(value ?? "")]));
}

/**
 * Waits a few turns of the event loop. When Bun stops, it closes each connection on which it has read no request, and
 * requests that were already sent would be lost.
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
