import { Elysia } from "elysia";
import type { Clock } from "../core/clock.ts";
import { toResponse } from "./answer.ts";
import { errorAnswer } from "./errors.ts";
import { REQUEST_ID_HEADER, requestIdOf } from "./request-id.ts";
import { type RouteTable, unrouted } from "./route-table.ts";

type Headers = Record<string, string | number>;

/** The id that `requestId` gave this request. */
export function requestIdIn(headers: Readonly<Headers>): string {
  return String(headers[REQUEST_ID_HEADER] ?? "");
}

/** Gives every request its id and every answer the header, whatever comes of it. */
export function requestId(clock: Clock) {
  return new Elysia({ name: "request-id" })
    .onRequest(({ request, set }) => {
      set.headers[REQUEST_ID_HEADER] = requestIdOf(request.headers, clock.now());
    })
    .as("global");
}

/** Headers of every answer. An answer that may be cached says so itself. */
export const SECURITY_HEADERS = {
  // Against a browser that takes an answer for another type than it names (MIME sniffing).
  "x-content-type-options": "nosniff",
  // Against mail and contacts left behind in a shared cache.
  "cache-control": "no-store",
} as const;

/** Puts them into every answer. */
export function securityHeaders() {
  return new Elysia({ name: "security-headers" })
    .onRequest(({ set }) => {
      Object.assign(set.headers, SECURITY_HEADERS);
    })
    .as("global");
}

/** Turns whatever no route took, and whatever was thrown, into the error envelope. */
export function errors(table: RouteTable) {
  return new Elysia({ name: "errors" })
    .onError(({ code, error, request, set }) => {
      const thrown = code === "NOT_FOUND" ? unrouted(table, request.method, pathOf(request.url)) : error;
      return toResponse(errorAnswer(thrown, requestIdIn(set.headers)));
    })
    .as("global");
}

function pathOf(url: string): string {
  return new URL(url, "http://localhost").pathname;
}
