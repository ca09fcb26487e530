import type { Config } from "../../config.ts";
import type { Store } from "../../store/engine/client.ts";
import { useSession } from "../../flows/account/sign-in.ts";
import { isMemberSession } from "../access/session.ts";
import { touchKey } from "../../store/projects/keys.ts";
import { type Answer, type LaterAnswer, toResponse } from "../routing/answer.ts";
import { createBudget, REQUEST_BODY_LIMITS, createLargeBodyLimit } from "../body/budget.ts";
import { assetRoutes } from "../dashboard/assets.ts";
import { dashboardPage, type Page, type PageDeps } from "../dashboard/shell.ts";
import { type DispatchDeps, dispatch } from "../pipeline/pipeline.ts";
import { type DocsFiles, docsRoutes } from "../openapi/docs.ts";
import type { ServesAt } from "../routing/domain-hosts.ts";
import { createAnswers } from "../pipeline/download.ts";
import { answerErrorAt } from "./error-style.ts";
import { probeRoutes, type ReadyCheck } from "./health.ts";
import { createStepRunner } from "../json/steps.ts";
import { LaterResponses } from "../routing/later.ts";
import { type Answering, listen, type ListeningServer, type TlsFiles, type ListenOn } from "./listen.ts";
import { trackKeyUse } from "../access/key-use.ts";
import { mcpRoutes } from "../routes/mcp.ts";
import { metricsRoutes, type ProtectedMetrics } from "./metrics.ts";
import { createRouter, type Matched, requestIdIn, textsOf } from "./router.ts";
import type { AnsweredRequest } from "../pipeline/request-log.ts";
import { limitCostlyWork } from "../../core/concurrency/costly-work.ts";
import type { Route } from "../routing/route.ts";

export interface HttpDeps
  extends Store,
    Pick<
      DispatchDeps,
      "cursorKey" | "boxKey" | "sessionKey" | "limiter" | "keyLimiter" | "quotas" | "rightOfWay" | "space"
    > {
  config: Pick<Config, "host" | "port" | "maxBodyBytes" | "publicUrl" | "httpProxies">;
  checks: readonly ReadyCheck[];
  /** Files of the reference page. Null: `/docs` answers 404. */
  docs: DocsFiles | null;
  /** The dashboard: what its page needs, and its routes, which the reference does not show. Null: none is served. */
  ui: (Omit<PageDeps, "clock" | "answers"> & { routes: readonly Route[] }) | null;
  /** Called after each answer of a route. */
  onAnswer: ((answered: AnsweredRequest) => void) | null;
  /** The metrics of this process. */
  metrics?: ProtectedMetrics;
  /** Returns whether a path is served at a host. If undefined, each one is. */
  servesAt?: ServesAt;
  /** Routes of other programs, such as mail servers, which the reference does not show. */
  wellKnown?: readonly Route[];
  /** Every route, except probes, metrics and reference. If there are none, the reference is not served. */
  routes: readonly Route[];
}

export interface Http {
  /** Listens on the configured host and port. */
  start(): Promise<{ port: number }>;
  /** Also listens with TLS on a port of the same host. */
  startTls(port: number, tls: readonly TlsFiles[]): Promise<{ port: number }>;
  /** Uses these keys and certificate chains for later TLS connections. Requests in progress are finished. */
  setCertificates(tls: readonly TlsFiles[]): void;
  /** Takes no new connections, waits at most `graceMs` for requests that have arrived, and closes all connections. */
  stop(graceMs: number): Promise<void>;
  /** Closes connections whose requests are answered. Their clients open new ones. */
  closeIdle(): void;
  /** Answers one request without a socket. */
  fetch(request: Request): Promise<Response>;
}

/** Creates the server. It listens nowhere until `start`. */
export function createHttp(deps: HttpDeps): Http {
  const keyUse = trackKeyUse((id, usedAt) =>
    isMemberSession(id) ? useSession(deps.db, id, usedAt) : touchKey(deps.db, id, usedAt),
  );
  const shell: DispatchDeps = {
    ...deps,
    maxBodyBytes: deps.config.maxBodyBytes,
    keyUse,
    inFlight: new Set(),
    reserveBody: createBudget(REQUEST_BODY_LIMITS),
    runForBody: createLargeBodyLimit(),
    runCostly: limitCostlyWork(),
    runSteps: createStepRunner(),
    answers: createAnswers(deps.clock),
  };
  const later = new LaterResponses();
  const answerWhole = async (request: Request): Promise<Response> => {
    const response = await app.fetch(request);
    return later.comingFor(response) ?? response;
  };
  const routes = [
    ...probeRoutes(deps.clock, deps.checks, deps.space),
    ...(deps.metrics === undefined ? [] : metricsRoutes(deps.metrics)),
    ...(deps.routes.length === 0 ? [] : docsRoutes(deps)),
    ...(deps.ui === null ? [] : [...assetRoutes(deps.ui.files), ...deps.ui.routes]),
    ...(deps.wellKnown ?? []),
    ...deps.routes,
    ...(deps.routes.length === 0 ? [] : mcpRoutes({ fetch: answerWhole })),
  ];
  const page =
    deps.ui === null ? null : dashboardPage({ ...deps, ...deps.ui, answers: shell.answers }, answerWhole);
  const ips = new WeakMap<Request, string>();
  const app = createRouter({ clock: deps.clock, page }, routes, (route) =>
    handlerOf({ deps, shell, later, ips, page }, route),
  );
  const answer: Answering = async (request, ip) => {
    if (ip !== null) ips.set(request, ip);
    const response = await app.fetch(request);
    const coming = later.comingFor(response);
    return coming === null ? response : { coming };
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
    setCertificates: secure.setCertificates,
    async stop(graceMs) {
      await Promise.all([...servers, ...secure.servers()].map((server) => server.stop(graceMs)));
      await keyUse.settled();
    },
    closeIdle() {
      for (const server of [...servers, ...secure.servers()]) server.closeIdle();
    },
    fetch: answerWhole,
  };
}

/** Dependencies of the handlers of all routes. */
interface Shared {
  deps: HttpDeps;
  shell: DispatchDeps;
  later: LaterResponses;
  /** The address of each request's client. */
  ips: WeakMap<Request, string>;
  /** The dashboard's page, which browsers get at `/`. */
  page: Page | null;
}

/** The facts of a request that its answer needs. */
interface Asked {
  route: Route;
  method: string;
  requestId: string;
  startedAt: number;
  headers: Record<string, string | number>;
  /** True if the request brought a key. */
  hasKey: boolean;
}

function handlerOf(shared: Shared, route: Route) {
  const { deps, shell, later, ips } = shared;
  const page = route.path === "/" ? shared.page : null;
  return async ({ request, params, headers }: Matched): Promise<Response> => {
    const { method } = request;
    const requestId = requestIdIn(headers);
    const hasKey = request.headers.has("authorization");
    const asked = { route, method, requestId, startedAt: deps.clock.elapsed(), headers, hasKey };
    const routed = { request, params, requestId, ip: ips.get(request) ?? null, headers };
    const shown = async () => (await page?.(request)) ?? dispatch(shell, route, routed);
    const answer = await shown().catch((error: unknown) => failed(asked, error));
    return answer.later === undefined
      ? respond(deps, asked, answer)
      : later.standIn(whenReady(shared, asked, answer.later));
  };
}

function failed({ route, requestId, hasKey }: Asked, error: unknown): Answer {
  return answerErrorAt(route.path, error, requestId, hasKey);
}

/** Makes the response, and reports it. */
function respond(deps: HttpDeps, asked: Asked, answer: Answer): Response {
  const { route, method, requestId, startedAt, headers } = asked;
  const durationMs = deps.clock.elapsed() - startedAt;
  deps.onAnswer?.({ requestId, method, route: route.path, status: answer.status, durationMs });
  return toResponse({ ...answer, headers: { ...textsOf(headers), ...answer.headers } });
}

/** Responds when the answer can be made. Until then only its arguments stay in memory. */
function whenReady(shared: Shared, asked: Asked, later: LaterAnswer): Promise<Response> {
  return later.ready().then(() => respondLater(shared, asked, later));
}

async function respondLater({ deps, shell }: Shared, asked: Asked, later: LaterAnswer): Promise<Response> {
  const made = later.make().then((answer) => shell.answers(later.owner).send(answer));
  return respond(deps, asked, await made.catch((error: unknown) => failed(asked, error)));
}

/** A server with TLS whose certificate can be replaced while it listens. */
interface TlsServer {
  /** Rejects if the port cannot be bound. */
  start(port: number, tls: readonly TlsFiles[]): Promise<{ port: number }>;
  /** Uses these keys and chains for later connections. If they cannot be used, throws, and the old ones stay. */
  setCertificates(tls: readonly TlsFiles[]): void;
  /** The one that takes connections, and those that still finish requests. */
  servers(): ListeningServer[];
}

/**
 * Time that a server with an old certificate has for its requests, milliseconds. Long answers, such as streams of events,
 * end then, and their clients ask again.
 */
const OLD_SERVER_GRACE_MS = 600_000;

/**
 * Creates a server with TLS. Bun reads a certificate only when a server begins to listen. So for each new one a second
 * server listens on the port before the first one stops. No connection is refused in between, and requests in progress are
 * finished. A handshake in progress when the first one stops may have to be repeated.
 */
function createTlsServer(listen: (on: ListenOn) => ListeningServer): TlsServer {
  const old = new Set<ListeningServer>();
  let current: ListeningServer | null = null;
  return {
    async start(port, tls) {
      // A shared port could be shared with another process, too. So first make sure that this one is free.
      const probe = listen({ port, tls });
      await probe.stop(0);
      current = listen({ port: probe.port, tls, shared: true });
      return { port: current.port };
    },
    setCertificates(tls) {
      const last = current;
      if (last === null) return;
      current = listen({ port: last.port, tls, shared: true });
      old.add(last);
      void last.stop(OLD_SERVER_GRACE_MS).finally(() => old.delete(last));
    },
    servers: () => [...(current === null ? [] : [current]), ...old],
  };
}
