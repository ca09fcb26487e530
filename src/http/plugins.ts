import { Elysia } from "elysia";
import type { Clock } from "../core/time/clock.ts";
import { toResponse } from "./answer.ts";
import { errorAnswer } from "./errors.ts";
import { REQUEST_ID_HEADER, requestIdOf } from "./request-log.ts";
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

/** Turns unknown paths and thrown errors into the error envelope. */
export function errors(table: RouteTable) {
  return new Elysia({ name: "errors" })
    .onError(({ code, error, request, set }) => {
      const thrown = code === "NOT_FOUND" ? routeNotFound(table, request.method, pathOf(request.url)) : error;
      return toResponse(errorAnswer(thrown, requestIdIn(set.headers)));
    })
    .as("global");
}

function pathOf(url: string): string {
  return new URL(url, "http://localhost").pathname;
}
