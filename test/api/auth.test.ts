import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { RateVerdict } from "../../src/http/access/rate.ts";
import { type TestApi, testApi } from "../support/api.ts";

let api: TestApi;
let verdict: RateVerdict | null = null;
const taken: [string, string][] = [];

beforeAll(async () => {
  api = await testApi({
    limiter: async (id, plan) => {
      taken.push([id, plan]);
      return verdict;
    },
  });
});
afterAll(() => api.close());

describe("an Authorization header", () => {
  const rows: [string, (secret: string) => string | null, number][] = [
    ["Bearer and the secret", (secret) => `Bearer ${secret}`, 200],
    ["the scheme in another case", (secret) => `bearer ${secret}`, 200],
    ["none", () => null, 401],
    ["empty", () => "", 401],
    ["the scheme alone", () => "Bearer", 401],
    ["another scheme", (secret) => `Basic ${secret}`, 401],
    ["the secret alone", (secret) => secret, 401],
    ["a secret with its last character changed", (secret) => `Bearer ${secret.slice(0, -1)}!`, 401],
    ["a secret cut short", (secret) => `Bearer ${secret.slice(0, -1)}`, 401],
    ["a secret in lower case", (secret) => `Bearer ${secret.toLowerCase()}`, 401],
    ["two secrets", (secret) => `Bearer ${secret} ${secret}`, 401],
    ["a very long secret", () => `Bearer ${"x".repeat(513)}`, 401],
    ["SQL", () => "Bearer '--", 401],
  ];
  test.each(rows)("%s", async (_name, header, status) => {
    const authorization = header(api.acme.a.key);
    const headers: Record<string, string> = authorization === null ? {} : { authorization };
    const called = await api.call("GET", "/v1/domains", { key: null, headers });
    expect(called.status).toBe(status);
    if (status !== 401) return;
    expect(called.json.error.type).toBe("authentication_error");
    expect(called.headers.get("www-authenticate")).toBe("Bearer");
  });

  test("a revoked key fails at the very next request, for good", async () => {
    const secret = await api.key({ senderId: api.acme.a.id });
    const made = await api.call("GET", "/v1/api-keys", { key: secret });
    expect(made.status).toBe(200);
    const id = made.json.data[0].id;
    expect((await api.call("DELETE", `/v1/api-keys/${id}`, { key: secret })).status).toBe(204);
    const refused = await api.call("GET", "/v1/api-keys", { key: secret });
    expect([refused.status, refused.json.error.type]).toEqual([401, "authentication_error"]);
  });

  test("a key revoked while its request's body comes slowly is refused", async () => {
    const secret = await api.key({ name: "leaked" });
    const ends: [string, number, () => Promise<unknown>][] = [
      ["nothing", 201, async () => undefined],
      [
        "revoked",
        401,
        () => api.db.write([{ sql: "UPDATE api_keys SET revoked_at = 1 WHERE name = 'leaked'", args: [] }]),
      ],
    ];
    for (const [what, status, happens] of ends) {
      const parts = [`{"name":"minted after `, `${what}"}`];
      const body = new ReadableStream<Uint8Array>({
        async pull(controller) {
          const part = parts.shift();
          if (part === undefined) return controller.close();
          if (parts.length === 0) {
            await happens();
            api.clock.advance(1001);
          }
          controller.enqueue(Buffer.from(part));
        },
      });
      const answer = await api.call("POST", "/v1/api-keys", {
        key: secret,
        headers: { "content-type": "application/json" },
        body,
      });
      expect([what, answer.status]).toEqual([what, status]);
    }
  });

  test("lastUsedAt is updated when the key is used, at most once a minute", async () => {
    const secret = await api.key({ name: "watched" });
    const lastUsed = async () => {
      // A write that waits for those of earlier requests. When it is done, so are they.
      await api.db.write([{ sql: "UPDATE api_keys SET name = name WHERE id = ''", args: [] }]);
      const row = await api.db.first<{ last_used_at: number | null }>(
        "SELECT last_used_at FROM api_keys WHERE name = 'watched'",
      );
      return row?.last_used_at ?? null;
    };
    const first = api.clock.now();
    await api.call("GET", "/v1/senders", { key: secret });
    expect(await lastUsed()).toBe(first);
    api.clock.advance(59_999);
    await api.call("GET", "/v1/senders", { key: secret });
    expect(await lastUsed()).toBe(first);
    api.clock.advance(1);
    await api.call("GET", "/v1/senders", { key: secret });
    expect(await lastUsed()).toBe(first + 60_000);
  });
});

describe("the project of a request", () => {
  type Who = "wide" | "project";
  const rows: [string, Who, (api: TestApi) => Record<string, string>, number, object | null][] = [
    ["wide key, no header", "wide", () => ({}), 400, { type: "invalid_request", param: "X-Service-Product" }],
    ["wide key, empty header", "wide", () => ({ "x-service-product": "" }), 400, { type: "invalid_request" }],
    ["wide key, id", "wide", ({ acme }) => ({ "x-service-product": acme.a.id }), 200, null],
    ["wide key, external id", "wide", () => ({ "x-service-product": "acme-a" }), 200, null],
    ["wide key, alias", "wide", () => ({ "x-service-sender": "acme-a" }), 200, null],
    [
      "wide key, both the same",
      "wide",
      () => ({ "x-service-sender": "acme-a", "x-service-product": "acme-a" }),
      200,
      null,
    ],
    [
      "wide key, both different",
      "wide",
      () => ({ "x-service-sender": "acme-a", "x-service-product": "acme-b" }),
      400,
      { type: "invalid_request", param: "X-Service-Product" },
    ],
    [
      "wide key, unknown",
      "wide",
      () => ({ "x-service-product": "nobody" }),
      404,
      { type: "not_found", param: "X-Service-Product" },
    ],
    [
      "wide key, another account's id",
      "wide",
      ({ other }) => ({ "x-service-product": other.a.id }),
      404,
      { type: "not_found", param: "X-Service-Product" },
    ],
    [
      "wide key, another account's external id",
      "wide",
      () => ({ "x-service-product": "other-a" }),
      404,
      null,
    ],
    ["project key, no header", "project", () => ({}), 200, null],
    ["project key, empty header", "project", () => ({ "x-service-product": "" }), 200, null],
    [
      "wide key, alias and an empty header",
      "wide",
      () => ({ "x-service-product": "", "x-service-sender": "acme-a" }),
      200,
      null,
    ],
    ["project key, its own id", "project", ({ acme }) => ({ "x-service-product": acme.a.id }), 200, null],
    ["project key, its own external id", "project", () => ({ "x-service-sender": "acme-a" }), 200, null],
    [
      "project key, another project",
      "project",
      () => ({ "x-service-product": "acme-b" }),
      403,
      { type: "permission_error", param: "X-Service-Product" },
    ],
  ];
  test.each(rows)("%s", async (_name, who, headers, status, error) => {
    const key = who === "wide" ? api.acme.wide : api.acme.a.key;
    const called = await api.call("GET", "/v1/webhooks", { key, headers: headers(api) });
    expect(called.status).toBe(status);
    if (error !== null) expect(called.json.error).toMatchObject(error);
  });
});

describe("scopes", () => {
  test("every route refuses a key that lacks its scope, and names the scope", async () => {
    for (const route of api.routes) {
      if (route.scope === null) continue;
      const scopes = [route.scope === "metrics:read" ? "emails:read" : "metrics:read"];
      const key = await api.key({ senderId: api.acme.a.id, scopes });
      const called = await api.call(route.method, route.path.replace(":id", "x"), { key });
      expect([route.operationId, called.status]).toEqual([route.operationId, 403]);
      expect(called.json.error).toMatchObject({
        type: "permission_error",
        code: "missing_scope",
        param: route.scope,
      });
    }
  });

  test("a key with the scope is accepted", async () => {
    const key = await api.key({ senderId: api.acme.a.id, scopes: ["domains:read"] });
    expect((await api.call("GET", "/v1/domains", { key })).status).toBe(200);
    expect((await api.call("POST", "/v1/domains", { key, body: {} })).status).toBe(403);
  });
});

describe("the request rate", () => {
  test("the request rate is counted for each project under its plan, and on account routes for each key as pro", async () => {
    taken.length = 0;
    await api.call("GET", "/v1/domains");
    await api.call("GET", "/v1/api-keys");
    const { json } = await api.call("GET", "/v1/api-keys?limit=100", { key: api.acme.wide });
    const prefix = api.acme.a.key.slice(0, 11);
    const own = json.data.find((key: { keyPrefix: string }) => key.keyPrefix === prefix);
    expect(taken[0]).toEqual([api.acme.a.id, "unlimited"]);
    expect(taken[1]).toEqual([own.id, "pro"]);
  });

  test("the request rate counts requests that name a foreign project against their key", async () => {
    const rows = [
      { key: api.acme.wide, name: "nobody", status: 404 },
      { key: api.acme.a.key, name: "acme-b", status: 403 },
    ];
    for (const { key, name, status } of rows) {
      taken.length = 0;
      const called = await api.call("GET", "/v1/domains", { key, headers: { "x-service-product": name } });
      expect(called.status).toBe(status);
      expect(taken).toEqual([[expect.stringMatching(/^key_/), "pro"]]);
    }
  });

  test("the request rate shows its headers on every answer under a finite plan, and 429 with Retry-After over it", async () => {
    const limit = { limit: 20, remaining: 3, resetSeconds: 2, retryAfterSeconds: 0 };
    verdict = { allowed: true, ...limit };
    for (const path of ["/v1/domains", "/v1/domains/none"]) {
      const called = await api.call("GET", path);
      expect(called.headers.get("ratelimit-limit")).toBe("20");
      expect(called.headers.get("ratelimit-remaining")).toBe("3");
      expect(called.headers.get("ratelimit-reset")).toBe("2");
    }
    verdict = { allowed: false, ...limit, remaining: 0, retryAfterSeconds: 4 };
    const called = await api.call("GET", "/v1/domains");
    expect([called.status, called.json.error.type]).toEqual([429, "rate_limited"]);
    expect(called.headers.get("retry-after")).toBe("4");
    expect(called.headers.get("ratelimit-remaining")).toBe("0");
    verdict = null;
    expect((await api.call("GET", "/v1/domains")).headers.get("ratelimit-limit")).toBeNull();
  });
});
