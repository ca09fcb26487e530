import { ERROR_STATUS, type ErrorType } from "../core/errors.ts";
import type { Route } from "./route.ts";

/** Header fields of answers, by the names that the document refers to them with. */
export const HEADERS = {
  requestId: {
    description: "The request's own where it is 1 to 128 of `A-Z a-z 0-9 . _ -`, else a new one.",
    required: true,
    schema: { type: "string" },
  },
  rateLimitLimit: {
    description:
      "Requests that the project, or the key on account-level paths, may make at once; with a finite plan.",
    schema: { type: "integer" },
  },
  rateLimitRemaining: {
    description: "How many of them are left.",
    schema: { type: "integer" },
  },
  rateLimitReset: {
    description: "Seconds until all of them may be made again.",
    schema: { type: "integer" },
  },
  replayed: {
    description: "Stands on an answer that an earlier request with the same `Idempotency-Key` was given.",
    schema: { type: "string", enum: ["true"] },
  },
  retryAfter: {
    description: "Seconds after which to ask again.",
    schema: { type: "integer" },
  },
  authenticate: {
    description: "The scheme asked for.",
    schema: { type: "string", enum: ["Bearer"] },
  },
  allow: {
    description: "The methods that the path takes.",
    schema: { type: "string" },
  },
  location: {
    description: "Where the link leads.",
    schema: { type: "string" },
  },
} as const;

type Headers = Record<string, { $ref: string }>;

function refer(name: keyof typeof HEADERS): { $ref: string } {
  return { $ref: `#/components/headers/${name}` };
}

const OF_ALL: Headers = { "X-Request-Id": refer("requestId") };
/** Answers to whoever has shown a key. */
const OF_KEYS: Headers = {
  "RateLimit-Limit": refer("rateLimitLimit"),
  "RateLimit-Remaining": refer("rateLimitRemaining"),
  "RateLimit-Reset": refer("rateLimitReset"),
};

/** What else an error of a type is answered with. */
const OF_ERRORS: Partial<Record<ErrorType, Headers>> = {
  authentication_error: { "WWW-Authenticate": refer("authenticate") },
  method_not_allowed: { Allow: refer("allow") },
  conflict: { "Retry-After": refer("retryAfter") },
  rate_limited: { "Retry-After": refer("retryAfter") },
  service_unavailable: { "Retry-After": refer("retryAfter") },
};

/** Header fields of a route's answer with the status, errors excepted. */
export function headersOfAnswer({ level, method }: Route, status: number): Headers {
  const isOpen = level === "open";
  return {
    ...OF_ALL,
    ...(isOpen ? {} : OF_KEYS),
    ...(!isOpen && method === "POST" ? { "Idempotent-Replayed": refer("replayed") } : {}),
    ...(status === 302 ? { Location: refer("location") } : {}),
  };
}

/** Header fields of an error, whatever the route. */
export function headersOfError(type: ErrorType): Headers {
  const counted = ERROR_STATUS[type] !== ERROR_STATUS.authentication_error;
  return { ...OF_ALL, ...(counted ? OF_KEYS : {}), ...OF_ERRORS[type] };
}
