import { Elysia } from "elysia";
import type { Config } from "../config.ts";
import type { Clock } from "../core/time/clock.ts";
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
import { answerErrorAt } from "./error-style.ts";
import { probeRoutes, type ReadyCheck } from "./health.ts";
import { createStepRunner } from "./json/steps.ts";
import { type Answering, listen, type ListeningServer, type TlsFiles } from "./listen.ts";
import { trackKeyUse } from "./access/key-use.ts";
import { mcpRoutes } from "./routes/mcp.ts";
import { metricsRoutes, type ProtectedMetrics } from "./metrics.ts";
import { errors, requestId, requestIdIn, securityHeaders } from "./plugins.ts";
import type { AnsweredRequest } from "./request-log.ts";
import type { RateLimiter } from "./access/rate.ts";
import type { Route } from "./route.ts";
import { routeTable } from "./route-table.ts";
import { createTlsServer } from "./tls-server.ts";

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
  /** Routes of other programs, such as mail servers, which the reference does not show. */
  wellKnown?: readonly Route[];
  /** Every route, except probes, metrics and reference. If there are none, the reference is not served. */
  routes: readonly Route[];
}

/** The HTTP server. */
export interface Http {
  /** Listens on the configured host and port. */
  start(): Promise<{ port: number }>;
  /** Also listens with TLS on a port of the same host. */
  startTls(port: number, tls: TlsFiles): Promise<{ port: number }>;
  /** Uses this key and certificate chain for later TLS connections. Requests in progress are finished. */
  setCertificate(tls: TlsFiles): void;
  /** Takes no new connections, waits at most `graceMs` for requests that have arrived, and closes all connections. */
  stop(graceMs: number): Promise<void>;
  /** Closes connections whose requests are answered. Their clients open new ones. */
  closeIdle(): void;
  /** Answers one request without a socket. */
  fetch(request: Request): Promise<Response>;
}

/** Creates the server. It listens nowhere until `start`. */
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
    ...(deps.wellKnown ?? []),
    ...deps.routes,
    ...(deps.routes.length === 0 ? [] : mcpRoutes({ fetch: async (request) => app.fetch(request) })),
  ];
  const ips = new WeakMap<Request, string>();
  // Otherwise Elysia finds the path only if the host name has a standard length.
  const app: { fetch(request: Request): Response | Promise<Response> } = new Elysia({
    handler: { standardHostname: false },
  })
    .use(requestId(deps.clock))
    .use(securityHeaders())
    .use(errors(routeTable(routes), deps.ui === null ? null : dashboardPage(deps.ui.files)))
    .use(resources(deps, shell, routes, ips));
  const answer: Answering = (request, ip) => {
    if (ip !== null) ips.set(request, ip);
    return Promise.resolve(app.fetch(request));
  };
  const servers: ListeningServer[] = [];
  const secure = createTlsServer((on) => listen(deps, answer, on));
  return {
    async start() {
      const server = listen(deps, answer, { port: deps.config.port });
      servers.push(server);
      return { port: server.port };
    },
    startTls: secure.start,
    setCertificate: secure.setCertificate,
    async stop(graceMs) {
      await Promise.all([...servers, ...secure.servers()].map((server) => server.stop(graceMs)));
      await keyUse.settled();
    },
    closeIdle() {
      for (const server of [...servers, ...secure.servers()]) server.closeIdle();
    },
    async fetch(request) {
      return app.fetch(request);
    },
  };
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
    const routed = { request, params: textsOf(params), requestId: id, ip, headers: set.headers };
    const failed = (error: unknown) => answerErrorAt(route.path, error, id, request.headers);
    let answer = await dispatch(shell, route, routed).catch(failed);
    if (answer.later !== undefined) answer = await answer.later.catch(failed);
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
