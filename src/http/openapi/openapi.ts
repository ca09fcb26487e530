import { type TSchema, Type } from "@sinclair/typebox";
import type { ErrorType } from "../../core/errors.ts";
import { ERROR_STATUS } from "../errors.ts";
import { HEADERS, headersOfAnswer, headersOfError } from "./headers.ts";
import { withNamedSchemas } from "./schemas.ts";
import { WEBHOOKS } from "./webhooks.ts";
import { PROJECT_HEADER } from "../access/project.ts";
import type { Route } from "../route.ts";
import { asShown, DATE_TIME } from "./shown-format.ts";
import { Warnings } from "../schemas.ts";

const OPENAPI_VERSION = "3.1.0";

const ErrorEnvelope = Type.Object(
  {
    error: Type.Object({
      type: Type.Union(Object.keys(ERROR_STATUS).map((type) => Type.Literal(type))),
      message: Type.String(),
      code: Type.Optional(Type.String()),
      param: Type.Optional(
        Type.String({ description: "Path of the field at fault, such as `to[0].email`." }),
      ),
      issues: Type.Optional(
        Type.Array(
          Type.Object({
            message: Type.String(),
            param: Type.String(),
            code: Type.Optional(Type.String()),
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

/** The cause of each error type. */
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

/** Returns whether the schema can refuse a query. If all its fields are optional plain texts, it takes any query. */
function canRefuse(query: TSchema | undefined): boolean {
  const properties: TSchema[] = Object.values(query?.properties ?? {});
  const isAnyText = ({ type, pattern, minLength, maxLength }: TSchema) =>
    type === "string" && [pattern, minLength, maxLength].every((limit) => limit === undefined);
  return (query?.required ?? []).length > 0 || !properties.every(isAnyText);
}

/** Returns the error types that a route can answer with. */
function errorsOf(route: Route): ErrorType[] {
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

const MayWarn = Type.Object(
  { warnings: Warnings },
  { title: "MayWarn", description: "What the answer to a write may also have." },
);

function contentOf(answer: TSchema | string, { body }: Route): Record<string, unknown> {
  if (typeof answer === "string") return { [answer]: { schema: { type: "string" } } };
  const schema = body === undefined ? answer : Type.Intersect([answer, MayWarn]);
  return { "application/json": { schema } };
}

function responsesOf(route: Route): Record<string, unknown> {
  const answers = Object.entries(route.answers).map(([status, answer]) => [
    status,
    {
      description: route.summary,
      headers: headersOfAnswer(route, Number(status)),
      ...(answer === null ? {} : { content: contentOf(answer, route) }),
    },
  ]);
  const errors = errorsOf(route)
    .filter((type) => route.answers[ERROR_STATUS[type]] === undefined)
    .map((type) => [String(ERROR_STATUS[type]), { $ref: `#/components/responses/${type}` }]);
  return Object.fromEntries([...errors, ...answers]);
}

function parametersOf(route: Route): unknown[] {
  const path = [...route.path.matchAll(/:(\w+)/g)].map(([, name]) => ({
    name,
    in: "path",
    required: true,
    schema: { type: "string" },
  }));
  const required: readonly string[] = route.query?.required ?? [];
  const properties: Record<string, TSchema> = route.query?.properties ?? {};
  const query = Object.entries(properties).map(([name, schema]) => ({
    name,
    in: "query",
    required: required.includes(name),
    schema,
  }));
  const headers: unknown[] = [];
  if (route.level === "project") headers.push({ $ref: "#/components/parameters/project" });
  if (route.method === "POST" && route.level !== "open")
    headers.push({ $ref: "#/components/parameters/idempotencyKey" });
  return [...path, ...query, ...headers];
}

function operationOf(route: Route): Record<string, unknown> {
  return {
    operationId: route.operationId,
    summary: route.summary,
    ...(route.description === undefined ? {} : { description: route.description }),
    tags: [tagOf(route.path)],
    parameters: parametersOf(route),
    ...(route.body === undefined
      ? {}
      : {
          requestBody: {
            required: route.bodyOptional !== true,
            content: { "application/json": { schema: route.body } },
          },
        }),
    responses: responsesOf(route),
    security: route.level === "open" ? [] : [{ apiKey: route.scope === null ? [] : [route.scope] }],
  };
}

/** Returns the resource of a path: its first segment after the version. */
function tagOf(path: string): string {
  return path.split("/").filter((segment) => segment !== "" && segment !== "v1")[0] ?? "service";
}

const PARAMETERS = {
  project: {
    name: PROJECT_HEADER,
    in: "header",
    required: false,
    description:
      "Id or external id of the project. Required with an account-wide key. Alias: X-Service-Sender.",
    schema: { type: "string" },
  },
  idempotencyKey: {
    name: "Idempotency-Key",
    in: "header",
    required: false,
    description: "For 24 hours, a request with the same key and body gets the first answer again.",
    schema: { type: "string", minLength: 1, maxLength: 256 },
  },
};

/** The name of the API. */
export const INFO = {
  title: "Postrider",
  version: "1",
  description: "Sends and receives email over a REST API.",
};

/** Returns the OpenAPI document of the routes. Its server is the origin that the document came from. */
export function openApiDocument(routes: readonly Route[]): Record<string, unknown> {
  const paths: Record<string, Record<string, unknown>> = {};
  for (const route of routes) {
    const path = route.path.replace(/:(\w+)/g, "{$1}");
    paths[path] = { ...paths[path], [route.method.toLowerCase()]: operationOf(route) };
  }
  const named = withNamedSchemas(paths);
  const responses = Object.fromEntries(
    (Object.keys(ERROR_TEXT) as ErrorType[]).map((type) => [
      type,
      {
        description: ERROR_TEXT[type],
        headers: headersOfError(type),
        content: { "application/json": { schema: { $ref: "#/components/schemas/Error" } } },
      },
    ]),
  );
  return asShown({
    openapi: OPENAPI_VERSION,
    info: INFO,
    servers: [{ url: "/" }],
    paths: named.part,
    webhooks: WEBHOOKS,
    components: {
      securitySchemes: { apiKey: { type: "http", scheme: "bearer" } },
      schemas: { Error: ErrorEnvelope, ...named.schemas },
      parameters: PARAMETERS,
      headers: HEADERS,
      responses,
    },
  });
}
