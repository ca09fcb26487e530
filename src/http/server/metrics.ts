import { createHash, timingSafeEqual } from "node:crypto";
import { raw } from "../routing/answer.ts";
import { openRoute, type Route } from "../routing/route.ts";
import { routeNotFound } from "./route-table.ts";

/** Metrics of a process in Prometheus' text form. */
export interface MetricsSource {
  contentType: string;
  read(): Promise<string>;
}

/** Metrics, and the token that a client on the API's port must send. */
export interface ProtectedMetrics extends MetricsSource {
  /** Null: the API's port has no `/metrics`. */
  token: string | null;
}

/** Returns the route `/metrics` of the API's port; none if there is no token. API keys do not open it, and the reference does not list it. */
export function metricsRoutes({ token, contentType, read }: ProtectedMetrics): Route[] {
  if (token === null) return [];
  return [
    openRoute({
      method: "GET",
      path: "/metrics",
      operationId: "metrics",
      summary: "Read counters of this process for Prometheus",
      answers: { 200: contentType },
      async handle({ request }) {
        requireToken(token, request.headers.get("authorization"));
        return raw(await read(), contentType);
      },
    }),
  ];
}

/**
 * Throws 404 for another token, as for a path that does not exist. Compares hashes in constant time, so that the time
 * tells nothing of the token or its length.
 */
function requireToken(token: string, header: string | null): void {
  const given = /^Bearer +(\S+) *$/i.exec(header ?? "")?.[1];
  if (given === undefined || !timingSafeEqual(sha256(given), sha256(token)))
    throw routeNotFound([], "GET", "/metrics");
}

function sha256(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}

export interface MetricsServer {
  port: number;
  stop(): Promise<void>;
}

/** Names of this machine in a Host header. Any other name was made to point here by a web page (DNS rebinding). */
const LOCAL_HOST = /^(?:localhost|127\.0\.0\.1|\[::1\])(?::\d{1,5})?$/i;

/**
 * Serves `/metrics` on loopback without a token.
 * @param port 0: the system chooses one
 */
export function serveMetrics({ contentType, read }: MetricsSource, port: number): MetricsServer {
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port,
    development: false,
    reusePort: false,
    async fetch(request) {
      const { pathname } = new URL(request.url);
      if (pathname !== "/metrics" || !LOCAL_HOST.test(request.headers.get("host") ?? ""))
        return new Response("Only GET /metrics is here.\n", { status: 404 });
      return new Response(await read(), {
        headers: { "content-type": contentType, "cache-control": "no-store" },
      });
    },
    error: () => new Response("The metrics could not be read.\n", { status: 500 }),
  });
  return { port: server.port ?? 0, stop: () => server.stop(true) };
}
