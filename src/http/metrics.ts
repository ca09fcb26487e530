import { createHash, timingSafeEqual } from "node:crypto";
import { AppError } from "../core/errors.ts";
import { isInNetworks } from "../core/networks.ts";
import { raw } from "./answer.ts";
import { openRoute, type Route } from "./route.ts";

/** What `/metrics` answers, and whom. */
export interface MetricsDoor {
  /** Whoever asks must bring it; null: this machine alone may ask. */
  token: string | null;
  contentType: string;
  read(): Promise<string>;
}

const LOOPBACK = ["127.0.0.0/8", "::1"];
/** Headers by which a proxy tells that it asks for somebody else. */
const FORWARDED = ["x-forwarded-for", "x-real-ip", "forwarded", "via"];

/** `/metrics` in Prometheus' text form. No part of the API: neither a key nor the reference knows of it. */
export function metricsRoute({ token, contentType, read }: MetricsDoor): Route {
  return openRoute({
    method: "GET",
    path: "/metrics",
    operationId: "metrics",
    summary: "Counters of this process for Prometheus",
    answers: { 200: contentType },
    async handle({ request, ip }) {
      if (token !== null) requireToken(token, request.headers.get("authorization"));
      else if (!isLocal(request.headers, ip))
        throw new AppError(
          "permission_error",
          "Without METRICS_TOKEN the metrics are for this machine alone.",
        );
      return raw(await read(), contentType);
    },
  });
}

/** Compared by their hashes, in constant time: how long it takes tells nothing of the token, nor of its length. */
function requireToken(token: string, header: string | null): void {
  const given = /^Bearer +(\S+) *$/i.exec(header ?? "")?.[1];
  if (given === undefined || !timingSafeEqual(sha256(given), sha256(token)))
    throw new AppError("authentication_error", "Send Authorization: Bearer, followed by METRICS_TOKEN.");
}

function sha256(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}

/**
 * Whether the client is a program on this machine. A proxy here that HTTP_PROXIES does not name makes the whole world
 * look so: what was passed on is nobody's on this machine.
 */
function isLocal(headers: Headers, ip: string | null): boolean {
  return ip !== null && isInNetworks(ip, LOOPBACK) && !FORWARDED.some((name) => headers.has(name));
}
