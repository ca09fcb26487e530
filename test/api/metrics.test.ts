import { afterEach, describe, expect, test } from "bun:test";
import { METRICS_CONTENT_TYPE } from "../../src/metrics.ts";
import { type TestApi, testApi } from "../support/api.ts";
import { openApiDocument } from "../../src/http/openapi.ts";

const TOKEN = "a-token-of-the-metrics";
const TEXT = "# HELP a_metric Of this test.\n";

let api: TestApi | null = null;
afterEach(async () => {
  await api?.close();
  api = null;
});

/** Starts a service with `/metrics`; gives its URL and how often they were read. */
async function started(token: string | null, httpProxies: readonly string[] = []) {
  const reads = { count: 0 };
  const read = async () => {
    reads.count++;
    return TEXT;
  };
  const metrics = { token, contentType: METRICS_CONTENT_TYPE, read };
  const config = { host: "127.0.0.1", port: 0, maxBodyBytes: 1000, publicUrl: "", httpProxies };
  api = await testApi({ http: { metrics, config } });
  const { port } = await api.http.start();
  return { api, reads, url: `http://127.0.0.1:${port}/metrics` };
}

describe("with METRICS_TOKEN", () => {
  const rows: [given: string | null, status: number][] = [
    [`Bearer ${TOKEN}`, 200],
    [`bearer  ${TOKEN} `, 200],
    [null, 401],
    [TOKEN, 401],
    [`Basic ${TOKEN}`, 401],
    ["Bearer ", 401],
    [`Bearer ${TOKEN}x`, 401],
    [`Bearer ${TOKEN.slice(0, -1)}`, 401],
    [`Bearer ${TOKEN} ${TOKEN}`, 401],
    [`Bearer ${TOKEN.toUpperCase()}`, 401],
  ];
  test.each(rows)(
    "Authorization %p is answered %p, and read only where it is right",
    async (given, status) => {
      const { url, reads } = await started(TOKEN);
      // A proxy's headers change nothing: whoever has the token may ask from anywhere.
      const headers = {
        "x-forwarded-for": "203.0.113.9",
        ...(given === null ? {} : { authorization: given }),
      };
      const answer = await fetch(url, { headers });
      expect(answer.status).toBe(status);
      expect(answer.headers.get("www-authenticate")).toBe(status === 401 ? "Bearer" : null);
      expect(reads.count).toBe(status === 200 ? 1 : 0);
      if (status === 200) {
        expect(answer.headers.get("content-type")).toBe(METRICS_CONTENT_TYPE);
        expect(await answer.text()).toBe(TEXT);
      } else expect(await answer.json()).toMatchObject({ error: { type: "authentication_error" } });
    },
  );

  test("an API key is no token", async () => {
    const { api: running, url } = await started(TOKEN);
    const headers = { authorization: `Bearer ${running.acme.wide}` };
    expect((await fetch(url, { headers })).status).toBe(401);
  });
});

describe("without METRICS_TOKEN", () => {
  const rows: [who: string, headers: Record<string, string>, proxies: string[], status: number][] = [
    ["a program on this machine", {}, [], 200],
    ["a program on this machine, beside a proxy that is named", {}, ["127.0.0.1"], 200],
    ["a client of a named proxy", { "x-forwarded-for": "203.0.113.9" }, ["127.0.0.1"], 403],
    ["a client of a proxy that nobody has named", { "x-forwarded-for": "203.0.113.9" }, [], 403],
    ["one that says to be this machine", { "x-forwarded-for": "127.0.0.1" }, [], 403],
    ["a client of a proxy that says so otherwise", { forwarded: "for=203.0.113.9" }, [], 403],
    ["a client of a proxy that says only that it is one", { via: "1.1 proxy" }, [], 403],
    ["a client of a proxy with a header of its own", { "x-real-ip": "203.0.113.9" }, ["127.0.0.1"], 403],
  ];
  test.each(rows)("%s", async (_case, headers, proxies, status) => {
    const { url, reads } = await started(null, proxies);
    const answer = await fetch(url, { headers });
    expect([answer.status, reads.count]).toEqual([status, status === 200 ? 1 : 0]);
    if (status === 403) expect(await answer.json()).toMatchObject({ error: { type: "permission_error" } });
  });

  test("a request that came by no socket is nobody's on this machine", async () => {
    const { api: running } = await started(null);
    expect((await running.http.fetch(new Request("http://localhost/metrics"))).status).toBe(403);
  });
});

test("metrics are no part of the API's reference", async () => {
  const { api: running } = await started(null);
  const paths = Object.keys(openApiDocument(running.routes, "").paths as object);
  expect(paths.filter((path) => /metrics/.test(path))).toEqual([]);
  expect(paths.length).toBeGreaterThan(10);
});

test("a process without routes of the API answers health and metrics, and nothing else", async () => {
  const metrics = { token: null, contentType: METRICS_CONTENT_TYPE, read: async () => TEXT };
  api = await testApi({ http: { metrics, routes: [] } });
  const { port } = await api.http.start();
  const statuses = await Promise.all(
    ["/livez", "/healthz", "/readyz", "/metrics", "/docs", "/docs/json", "/v1/emails"].map(
      async (path) => (await fetch(`http://127.0.0.1:${port}${path}`)).status,
    ),
  );
  expect(statuses).toEqual([200, 200, 200, 200, 404, 404, 404]);
});
