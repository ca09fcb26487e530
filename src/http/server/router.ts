/**
 * Elysia as a router, and nothing else. A body is read after the key and scope of its request are checked, into memory
 * that was reserved for it. Elysia would read, parse and check it before any handler of ours. Six things are worked
 * around here, and `listen` hands over http URLs alone, because Elysia looks for the path of an https URL at the wrong
 * place.
 *
 * 1. `parse: "none"` makes it leave bodies alone.
 * 2. `standardHostname: false`: otherwise it finds the path only if the host name has a standard length.
 * 3. `set.headers` is emptied after each handler. Elysia would copy them into a second response made from ours.
 * 4. `set.headers` is emptied after an error, too. Elysia adds them to those of a response, even if both have one.
 * 5. A segment that is not valid percent-encoding is null. It becomes the empty string, which is never an id.
 * 6. An unknown path comes as an error with the code NOT_FOUND, and hooks hold for all routes only as `global`.
 */
import { Elysia } from "elysia";
import type { Clock } from "../../core/time/clock.ts";
import { type Answer, toResponse } from "../routing/answer.ts";
import { pathOf } from "../routing/query.ts";
import type { Page } from "../dashboard/shell.ts";
import { answerErrorAt } from "./error-style.ts";
import { REQUEST_ID_HEADER, requestIdOf } from "../pipeline/request-log.ts";
import type { Route } from "../routing/route.ts";
import { type RouteTable, routeNotFound, routeTable } from "./route-table.ts";

type Headers = Record<string, string | number>;

/** Returns the id that `requestId` gave this request. */
export function requestIdIn(headers: Readonly<Headers>): string {
  return String(headers[REQUEST_ID_HEADER] ?? "");
}

/** Gives every request an id, and every answer the header with it, also if the request fails. */
function requestId(clock: Clock) {
  return new Elysia({ name: "request-id" })
    .onRequest(({ request, set }) => {
      set.headers[REQUEST_ID_HEADER] = requestIdOf(request.headers, clock.now());
    })
    .as("global");
}

/** Headers of every answer. An answer that may be cached sets its own. */
export const SECURITY_HEADERS = {
  // Prevents browsers from guessing another content type (MIME sniffing).
  "x-content-type-options": "nosniff",
  // Prevents shared caches from keeping messages and contacts.
  "cache-control": "no-store",
} as const;

/** Adds these headers to every answer. */
function securityHeaders() {
  return new Elysia({ name: "security-headers" })
    .onRequest(({ set }) => {
      Object.assign(set.headers, SECURITY_HEADERS);
    })
    .as("global");
}

/** Answers unknown paths with the dashboard, if it takes them, or the error envelope, and thrown errors with the envelope. */
function errors(table: RouteTable, page: Page | null) {
  const answerTo = async (code: unknown, error: unknown, request: Request): Promise<Answer> => {
    if (code !== "NOT_FOUND") throw error;
    const shown = await page?.(request);
    if (shown) return shown;
    throw routeNotFound(table, request.method, pathOf(request.url));
  };
  return new Elysia({ name: "errors" })
    .onError(async ({ code, error, request, set }) => {
      const hasKey = request.headers.has("authorization");
      const failed = (thrown: unknown) =>
        answerErrorAt(pathOf(request.url), thrown, requestIdIn(set.headers), hasKey);
      const { headers, ...answer } = await answerTo(code, error, request).catch(failed);
      const fields = Object.fromEntries(
        Object.entries(set.headers).map(([name, value]) => [name, String(value)]),
      );
      set.headers = {};
      return toResponse({ ...answer, headers: { ...fields, ...headers } });
    })
    .as("global");
}

/** A request whose path is that of a route. */
export interface Matched {
  request: Request;
  /** Path segments, percent-decoded. */
  params: Readonly<Record<string, string>>;
  /** Headers of the answer, also if the request fails. */
  headers: Headers;
}

/** Finds the route of a request and calls its handler. */
export interface Router {
  fetch(request: Request): Response | Promise<Response>;
}

/** Returns a router for the routes. `page` answers paths of the dashboard, which no route has. */
export function createRouter(
  { clock, page }: { clock: Clock; page: Page | null },
  routes: readonly Route[],
  handlerOf: (route: Route) => (matched: Matched) => Promise<Response>,
): Router {
  const app = new Elysia({ handler: { standardHostname: false } });
  app
    .use(requestId(clock))
    .use(securityHeaders())
    .use(errors(routeTable(routes), page));
  for (const route of routes) {
    const handle = handlerOf(route);
    app.route(
      route.method,
      route.path,
      async ({ request, params, set }: Context) => {
        const response = await handle({ request, params: textsOf(params), headers: set.headers });
        set.headers = {};
        return response;
      },
      { parse: "none" },
    );
  }
  return app;
}

interface Context {
  request: Request;
  /** Absent if the path has no parameters. */
  params?: Record<string, unknown>;
  set: { headers: Headers };
}

/** Returns values as strings. Null, a path segment that is not valid percent-encoding, becomes the empty one. */
export function textsOf(values: Readonly<Record<string, unknown>> = {}): Record<string, string> {
  return Object.fromEntries(Object.entries(values).map(([name, value]) => [name, String(value ?? "")]));
}
