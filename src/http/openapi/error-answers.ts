import { type TSchema, Type } from "@sinclair/typebox";
import { ERROR_CODES, ERROR_TYPES, type ErrorType } from "../../core/errors.ts";
import { ERROR_STATUS } from "../routing/errors.ts";
import type { Route } from "../routing/route.ts";
import { OneOf } from "../routing/schemas.ts";
import { exampleId } from "./examples.ts";
import { headersOfError } from "./headers.ts";
import { DATE_TIME } from "../routing/shown-format.ts";

export const ErrorEnvelope = Type.Object(
  {
    error: Type.Object({
      type: OneOf(ERROR_TYPES),
      message: Type.String(),
      code: Type.Optional(OneOf(ERROR_CODES)),
      param: Type.Optional(
        Type.String({ description: "Path of the field at fault, such as `to[0].email`." }),
      ),
      issues: Type.Optional(
        Type.Array(
          Type.Object({
            message: Type.String(),
            param: Type.String(),
            code: Type.Optional(OneOf(ERROR_CODES)),
          }),
        ),
      ),
      resetAt: Type.Optional(
        Type.String({ ...DATE_TIME, description: "When a used-up quota is available again." }),
      ),
      requestId: Type.String(),
    }),
  },
  { description: "The body of every answer outside 2xx." },
);

const ERROR_TEXT: Readonly<Record<ErrorType, string>> = {
  invalid_request: "The request cannot be read, or names a wrong project or cursor.",
  authentication_error: "The API key is missing, unknown or revoked.",
  permission_error: "The key, the project or its quota does not allow this.",
  not_found: "The resource does not exist, or belongs to another project.",
  method_not_allowed: "The path does not take this method.",
  request_timeout: "The body arrived too slowly. It has 30 seconds, and one more for each 16 KiB.",
  conflict:
    "The resource already exists or is in the wrong state, or the Idempotency-Key was used for another request.",
  payload_too_large: "The body is over the limit.",
  validation_error: "A value is not valid. `issues` names each one.",
  rate_limited: "Too many requests. `Retry-After` says when to try again.",
  internal_error: "A fault of the service. With an Idempotency-Key it is safe to try again.",
  service_unavailable: "The service cannot answer just now.",
};

/**
 * Returns whether the schema can refuse a query. If all its fields are optional plain strings, it takes any query.
 */
function canRefuse(query: TSchema | undefined): boolean {
  const properties: TSchema[] = Object.values(query?.properties ?? {});
  const isAnyText = ({ type, pattern, minLength, maxLength }: TSchema) =>
    type === "string" && [pattern, minLength, maxLength].every((limit) => limit === undefined);
  return (query?.required ?? []).length > 0 || !properties.every(isAnyText);
}

/** Returns the error types that a route can answer with. */
export function errorsOf(route: Route): ErrorType[] {
  const types = new Set<ErrorType>(route.errors ?? []);
  const add = (when: boolean, ...more: ErrorType[]) => {
    if (when) for (const type of more) types.add(type);
  };
  add(
    route.level !== "open",
    "authentication_error",
    "permission_error",
    "rate_limited",
    "service_unavailable",
  );
  add(route.level === "project", "invalid_request", "not_found");
  add(route.path.includes(":"), "not_found");
  add(
    route.body !== undefined,
    "invalid_request",
    "request_timeout",
    "payload_too_large",
    "validation_error",
  );
  add(canRefuse(route.query), "validation_error");
  add(route.query?.properties?.cursor !== undefined, "invalid_request");
  add(
    route.method === "POST" && route.level !== "open",
    "invalid_request",
    "request_timeout",
    "conflict",
    "payload_too_large",
  );
  add(true, "internal_error");
  return [...types].sort((a, b) => ERROR_STATUS[a] - ERROR_STATUS[b]);
}

/** Fields of the example of an error, besides type and message. */
const EXAMPLE_DETAILS: Partial<Readonly<Record<ErrorType, object>>> = {
  permission_error: { code: "domain_not_verified", param: "from.email" },
  conflict: { code: "duplicate", param: "email" },
  validation_error: {
    code: "missing_field",
    param: "to",
    issues: [{ message: '"to" is required.', param: "to", code: "missing_field" }],
  },
};

/** Returns the answer of each error type, as the document shows it. */
export function errorResponses(): Record<string, unknown> {
  return Object.fromEntries(ERROR_TYPES.map((type) => [type, errorResponse(type)]));
}

function errorResponse(type: ErrorType): Record<string, unknown> {
  const message = ERROR_TEXT[type];
  const error = { type, message, ...EXAMPLE_DETAILS[type], requestId: exampleId("req") };
  const schema = { $ref: "#/components/schemas/Error" };
  return {
    description: message,
    headers: headersOfError(type),
    content: { "application/json": { schema, example: { error } } },
  };
}
