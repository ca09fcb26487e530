import { Elysia } from "elysia";
import type { Clock } from "../../core/time/clock.ts";
import { type Answer, toResponse } from "../routing/answer.ts";
import { pathOf } from "../routing/query.ts";
import type { Page } from "../dashboard/shell.ts";
import { answerErrorAt } from "./error-style.ts";
import { REQUEST_ID_HEADER, requestIdOf } from "../pipeline/request-log.ts";
import { type RouteTable, routeNotFound } from "./route-table.ts";

type Headers = Record<string, string | number>;

/** Returns the id that `requestId` gave this request. */
export function requestIdIn(headers: Readonly<Headers>): string {
  return String(headers[REQUEST_ID_HEADER] ?? "");
}

/** Gives every request an id, and every answer the header with it, also if the request fails. */
export function requestId(clock: Clock) {
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
export function securityHeaders() {
  return new Elysia({ name: "security-headers" })
    .onRequest(({ set }) => {
      Object.assign(set.headers, SECURITY_HEADERS);
    })
    .as("global");
}

/** Answers unknown paths with the dashboard, if it takes them, or the error envelope, and thrown errors with the envelope. */
export function errors(table: RouteTable, page: Page | null) {
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
      // Elysia adds its own headers to those of a response, even if both have one.
      const fields = Object.fromEntries(
        Object.entries(set.headers).map(([name, value]) => [name, String(value)]),
      );
      set.headers = {};
      return toResponse({ ...answer, headers: { ...fields, ...headers } });
    })
    .as("global");
}
