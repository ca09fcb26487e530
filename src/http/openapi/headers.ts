import type { ErrorType } from "../../core/errors.ts";
import { EVENT_STREAM_TYPE } from "../routing/answer.ts";
import { ERROR_STATUS } from "../routing/errors.ts";
import type { Route } from "../routing/route.ts";

/** Header fields of answers, by their names in the document. */
export const HEADERS = {
  requestId: {
    description:
      "The id of the request. It is the client's own if that has 1 to 128 characters of `A-Z a-z 0-9 . _ -`.",
    required: true,
    schema: { type: "string" },
  },
  rateLimitLimit: {
    description:
      "Requests that the project may make at once. On account-level paths it applies to the key. Absent if the plan has no limit.",
    schema: { type: "integer" },
  },
  rateLimitRemaining: {
    description: "Requests that are left.",
    schema: { type: "integer" },
  },
  rateLimitReset: {
    description: "Seconds until the full number is available again.",
    schema: { type: "integer" },
  },
  replayed: {
    description:
      "Present if this is the stored answer of an earlier request with the same `Idempotency-Key`.",
    schema: { type: "string", enum: ["true"] },
  },
  retryAfter: {
    description: "Seconds after which to try again.",
    schema: { type: "integer" },
  },
  authenticate: {
    description: "The authentication scheme.",
    schema: { type: "string", enum: ["Bearer"] },
  },
  allow: {
    description: "The methods that the path takes.",
    schema: { type: "string" },
  },
  unbuffered: {
    description: "Tells nginx to pass events on at once.",
    schema: { type: "string", enum: ["no"] },
  },
  location: {
    description: "The target of the link.",
    schema: { type: "string" },
  },
} as const;

type Headers = Record<string, { $ref: string }>;

function refer(name: keyof typeof HEADERS): { $ref: string } {
  return { $ref: `#/components/headers/${name}` };
}

const OF_ALL: Headers = { "X-Request-Id": refer("requestId") };
/** Headers of answers to requests with a key. */
const OF_KEYS: Headers = {
  "RateLimit-Limit": refer("rateLimitLimit"),
  "RateLimit-Remaining": refer("rateLimitRemaining"),
  "RateLimit-Reset": refer("rateLimitReset"),
};

const OF_ERRORS: Partial<Record<ErrorType, Headers>> = {
  authentication_error: { "WWW-Authenticate": refer("authenticate") },
  method_not_allowed: { Allow: refer("allow") },
  conflict: { "Retry-After": refer("retryAfter") },
  rate_limited: { "Retry-After": refer("retryAfter") },
  service_unavailable: { "Retry-After": refer("retryAfter") },
};

/** Returns the headers of a route's answer with that status, except errors. */
export function headersOfAnswer({ level, method, answers }: Route, status: number): Headers {
  const isOpen = level === "open";
  return {
    ...OF_ALL,
    ...(isOpen ? {} : OF_KEYS),
    ...(!isOpen && method === "POST" ? { "Idempotent-Replayed": refer("replayed") } : {}),
    ...(answers[status] === EVENT_STREAM_TYPE ? { "X-Accel-Buffering": refer("unbuffered") } : {}),
    ...(status === 302 ? { Location: refer("location") } : {}),
  };
}

/** Returns the headers of an error on any route. */
export function headersOfError(type: ErrorType): Headers {
  const counted = ERROR_STATUS[type] !== ERROR_STATUS.authentication_error;
  return { ...OF_ALL, ...(counted ? OF_KEYS : {}), ...OF_ERRORS[type] };
}
