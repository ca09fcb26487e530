import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { Type } from "@sinclair/typebox";
import { AppError } from "../../src/core/errors.ts";
import { ok, raw } from "../../src/http/routing/answer.ts";
import { openRoute, projectRoute, type Route } from "../../src/http/routing/route.ts";
import { type Called, type TestApi, testApi } from "../support/api.ts";

const LIMIT = 2000;

/** Routes that only exist in tests, to show the shell itself. */
function probes(): Route[] {
  return [
    projectRoute({
      method: "POST",
      path: "/v1/probe/:id",
      operationId: "probe",
      summary: "Shows what the handler is given",
      scope: "emails:send",
      body: Type.Object({
        to: Type.Optional(Type.Array(Type.Object({ email: Type.String() }))),
        count: Type.Optional(Type.Integer()),
        data: Type.Optional(Type.Record(Type.String(), Type.Unknown())),
      }),
      answers: { 200: Type.Object({ params: Type.Unknown(), body: Type.Unknown() }) },
      handle: ({ params, body }) => ok({ params, body }),
    }),
    projectRoute({
      method: "GET",
      path: "/v1/broken",
      operationId: "broken",
      summary: "Fails",
      scope: "emails:read",
      answers: { 200: null },
      handle: () => {
        throw new Error("SELECT secret FROM /srv/postrider");
      },
    }),
    projectRoute({
      method: "GET",
      path: "/v1/unavailable",
      operationId: "unavailable",
      summary: "Fails for want of a database",
      scope: "emails:read",
      answers: { 200: null },
      handle: () => Promise.reject(Object.assign(new Error("no"), { code: "ECONNREFUSED" })),
    }),
    openRoute({
      method: "GET",
      path: "/pixel",
      operationId: "pixel",
      summary: "Bytes",
      answers: { 200: "image/gif" },
      handle: () => raw(new Uint8Array([1, 2, 3]), "image/gif", { "cache-control": "private" }),
    }),
    openRoute({
      method: "POST",
      path: "/open",
      operationId: "open",
      summary: "Refuses",
      answers: { 200: null },
      errors: ["rate_limited"],
      handle: () => {
        throw new AppError("rate_limited", "Slow down.", { retryAfterSeconds: 7 });
      },
    }),
  ];
}

let api: TestApi;
beforeAll(async () => {
  api = await testApi({ maxBodyBytes: LIMIT, routes: probes });
});
afterAll(() => api.close());

interface Row {
  name: string;
  call: [method: string, path: string, body?: unknown, headers?: Record<string, string>];
  key?: string | null;
  status: number;
  error?: Record<string, unknown>;
  headers?: Record<string, string | null>;
}

function expectAnswer(called: Called, row: Row): void {
  expect(called.status).toBe(row.status);
  if (row.error !== undefined) expect(called.json.error).toMatchObject(row.error);
  for (const [name, value] of Object.entries(row.headers ?? {})) expect(called.headers.get(name)).toBe(value);
}

const FORM = { "content-type": "application/x-www-form-urlencoded" };

const ROWS: Row[] = [
  {
    name: "an unknown path is 404",
    call: ["GET", "/v1/nothing"],
    status: 404,
    error: { type: "not_found" },
  },
  {
    name: "a path without its base is 404 that names the base",
    call: ["GET", "/domains"],
    status: 404,
    error: { message: expect.stringContaining("Try GET /v1/domains") },
  },
  {
    name: "another unknown path is 404 that names the reference",
    call: ["GET", "/v1/nothing"],
    status: 404,
    error: { message: "No such path. The paths of the API are at /docs." },
  },
  { name: "the root is 404", call: ["GET", "/"], status: 404, error: { type: "not_found" } },
  { name: "an unknown path is 404 without a key too", call: ["GET", "/x"], key: null, status: 404 },
  {
    name: "a method that the path does not support is 405 with those it does",
    call: ["PUT", "/v1/domains"],
    status: 405,
    error: { type: "method_not_allowed" },
    headers: { allow: "GET, HEAD, POST" },
  },
  {
    name: "405 on a path with an id",
    call: ["POST", "/v1/webhooks/whk_1", {}],
    status: 405,
    headers: { allow: "DELETE, GET, HEAD, PATCH" },
  },
  { name: "OPTIONS is 405", call: ["OPTIONS", "/v1/domains"], status: 405 },
  {
    name: "text that is not JSON is 400",
    call: ["POST", "/v1/probe/1", "{"],
    status: 400,
    error: { type: "invalid_request" },
  },
  {
    name: "another content type is 400",
    call: ["POST", "/v1/probe/1", "{}", FORM],
    status: 400,
    error: { type: "invalid_request" },
  },
  {
    name: "a body that is not an object is 422",
    call: ["POST", "/v1/probe/1", "[]"],
    status: 422,
    error: { type: "validation_error" },
  },
  { name: "no body if one is required is 422", call: ["POST", "/v1/probe/1"], status: 422 },
  {
    name: "every violation of the schema is reported, by its path",
    call: ["POST", "/v1/probe/1", { to: [{ email: 1 }, {}], count: 1.5 }],
    status: 422,
    error: {
      type: "validation_error",
      param: "to[0].email",
      issues: [
        expect.objectContaining({ param: "to[0].email" }),
        expect.objectContaining({ param: "to[1].email", code: "missing_field" }),
        expect.objectContaining({ param: "count" }),
      ],
    },
  },
  {
    name: "a body over the limit is 413",
    call: ["POST", "/v1/probe/1", `"${"x".repeat(LIMIT)}"`],
    status: 413,
    error: { type: "payload_too_large" },
  },
  {
    name: "a body declared over the limit is 413 without reading it",
    call: ["POST", "/v1/probe/1", "{}", { "content-length": String(LIMIT + 1) }],
    status: 413,
  },
  {
    name: "a body of exactly the limit is accepted",
    call: ["POST", "/v1/probe/1", `{}${" ".repeat(LIMIT - 2)}`],
    status: 200,
  },
  {
    name: "the key is checked before the body is read",
    call: ["POST", "/v1/probe/1", "x".repeat(LIMIT + 1)],
    key: null,
    status: 401,
    headers: { "www-authenticate": "Bearer" },
  },
  {
    name: "an unexpected error is 500 and reveals nothing",
    call: ["GET", "/v1/broken"],
    status: 500,
    error: { type: "internal_error", message: "Something went wrong on our side." },
  },
  {
    name: "an unreachable database is 503",
    call: ["GET", "/v1/unavailable"],
    status: 503,
    error: { type: "service_unavailable" },
    headers: { "retry-after": "1" },
  },
  {
    name: "a Retry-After is sent as a header",
    call: ["POST", "/open"],
    key: null,
    status: 429,
    headers: { "retry-after": "7" },
  },
  {
    name: "an open route's bytes are sent as they are",
    call: ["GET", "/pixel"],
    key: null,
    status: 200,
    headers: { "content-type": "image/gif", "cache-control": "private", "x-content-type-options": "nosniff" },
  },
  { name: "HEAD is answered as GET", call: ["HEAD", "/v1/domains"], status: 200 },
  { name: "a trailing slash changes nothing", call: ["GET", "/v1/domains/"], status: 200 },
  {
    name: "an API answer must not be cached",
    call: ["GET", "/v1/domains"],
    status: 200,
    headers: { "cache-control": "no-store", "x-content-type-options": "nosniff", "www-authenticate": null },
  },
];

describe("the shell", () => {
  test.each(ROWS.map((row) => [row.name, row] as const))("%s", async (_name, row) => {
    const [method, path, body, headers] = row.call;
    const how = { body, ...(row.key === undefined ? {} : { key: row.key }), ...(headers ? { headers } : {}) };
    const called = await api.call(method, path, how);
    expectAnswer(called, row);
    expect(called.text).not.toMatch(/SELECT|\/srv|at \w+ \(/);
    if (called.status >= 400 && called.text !== "")
      expect(called.json.error.requestId).toBe(called.headers.get("x-request-id"));
  });

  test.each(ROWS.map((row) => [row.name, row] as const))("echoes a request id: %s", async (_name, row) => {
    const [method, path, body, headers = {}] = row.call;
    const how = { body, headers: { ...headers, "x-request-id": "mine.1_a-B" } };
    const called = await api.call(method, path, {
      ...how,
      ...(row.key === undefined ? {} : { key: row.key }),
    });
    expect(called.headers.get("x-request-id")).toBe("mine.1_a-B");
  });

  test("the shell hides fields that a schema does not name, and leaves the values of others as they came", async () => {
    const data = { a: { b: { c: [1, "2", null] } }, "": 1 };
    const { json } = await api.call("POST", "/v1/probe/1", { body: { extra: { deep: [1, null] }, data } });
    expect(json.body).toEqual({ data });
  });

  test("the shell reads __proto__ as a name like any other", async () => {
    const called = await api.call("POST", "/v1/probe/1", {
      body: '{"__proto__":{"x":1},"data":{"__proto__":2}}',
    });
    expect(called.text).toContain('"data":{"__proto__":2}');
    expect(called.text).not.toContain('"x"');
    expect(Object.hasOwn(Object.prototype, "x")).toBe(false);
  });

  const SEGMENTS: [string, string][] = [
    ["a%2Fb", "a/b"],
    ["..%2f..", "../.."],
    ["%00", "\u0000"],
    ["%zz", ""],
    ["%F0%9F%93%AE", "\u{1F4EE}"],
    ["'%20OR%201=1--", "' OR 1=1--"],
  ];
  test.each(SEGMENTS)("the shell passes on the segment %s percent-decoded", async (segment, value) => {
    const { json } = await api.call("POST", `/v1/probe/${segment}`, { body: {} });
    expect(json.params).toEqual({ id: value });
  });
});

describe("hostile ids", () => {
  const IDS = [
    "%00",
    "%zz",
    "..%2f..%2fetc",
    "'%20OR%20'1'='1",
    "dom_%25",
    "__proto__",
    "constructor",
    "x".repeat(5000),
    "%F0%9F%93%AE",
    "dom_00000000000000000000000000",
  ];
  const PATHS: [string, (id: string) => string][] = [
    ["GET", (id) => `/v1/domains/${id}`],
    ["DELETE", (id) => `/v1/domains/${id}`],
    ["POST", (id) => `/v1/domains/${id}/verify`],
    ["POST", (id) => `/v1/domains/${id}/rotate-dkim`],
    ["GET", (id) => `/v1/domains/${id}/receiving`],
    ["GET", (id) => `/v1/inboxes/${id}`],
    ["DELETE", (id) => `/v1/inboxes/${id}`],
    ["GET", (id) => `/v1/webhooks/${id}`],
    ["DELETE", (id) => `/v1/webhooks/${id}`],
    ["DELETE", (id) => `/v1/api-keys/${id}`],
  ];
  test.each(PATHS)("%s %p is 404 for each", async (method, path) => {
    for (const id of IDS) {
      const called = await api.call(method, path(id));
      expect([id, called.status]).toEqual([id, 404]);
      expect(called.json.error.type).toBe("not_found");
    }
  });
});

describe("the reference", () => {
  test("the reference is an OpenAPI document with each route once, named and with its errors", async () => {
    const { status, json } = await api.call("GET", "/docs/json", { key: null });
    expect(status).toBe(200);
    expect(json.openapi).toBe("3.1.0");
    const operations = Object.values(
      json.paths as Record<string, Record<string, Record<string, unknown>>>,
    ).flatMap((path) => Object.values(path));
    expect(operations).toHaveLength(api.routes.length);
    const ids = operations.map((operation) => operation.operationId);
    expect(new Set(ids).size).toBe(ids.length);
    for (const operation of operations) {
      expect(Object.keys(operation.responses as object)).toContain("500");
      if ((operation.security as unknown[]).length > 0)
        expect(Object.keys(operation.responses as object)).toEqual(
          expect.arrayContaining(["401", "403", "429"]),
        );
    }
  });

  test("the reference shows a query's and a body's fields", async () => {
    const { json } = await api.call("GET", "/docs/json", { key: null });
    const list = json.paths["/v1/domains"].get;
    expect(list.parameters.map((parameter: { name?: string }) => parameter.name)).toContain("limit");
    const post = json.paths["/v1/domains"].post;
    expect(post.requestBody.content["application/json"].schema.required).toEqual(["domain"]);
  });
});
