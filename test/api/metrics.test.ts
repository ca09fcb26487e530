import { afterEach, describe, expect, test } from "bun:test";
import { METRICS_CONTENT_TYPE } from "../../src/metrics.ts";
import { type TestApi, testApi } from "../support/api.ts";
import { type MetricsServer, serveMetrics } from "../../src/http/server/metrics.ts";
import { openApiDocument } from "../../src/http/openapi/openapi.ts";

const TOKEN = "a-token-of-the-metrics";
const TEXT = "# HELP a_metric Of this test.\n";

let api: TestApi | null = null;
afterEach(async () => {
  await api?.close();
  api = null;
});

/** Starts a service with `/metrics`. Returns its URL and the number of reads. */
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
    [null, 404],
    [TOKEN, 404],
    [`Basic ${TOKEN}`, 404],
    ["Bearer ", 404],
    [`Bearer ${TOKEN}x`, 404],
    [`Bearer ${TOKEN.slice(0, -1)}`, 404],
    [`Bearer ${TOKEN} ${TOKEN}`, 404],
    [`Bearer ${TOKEN.toUpperCase()}`, 404],
  ];
  test.each(rows)(
    "Authorization %p is answered %p, and metrics are read only if it is right",
    async (given, status) => {
      const { url, reads } = await started(TOKEN);
      // A proxy's headers change nothing: a client with the token may connect from anywhere.
      const headers = {
        "x-forwarded-for": "203.0.113.9",
        ...(given === null ? {} : { authorization: given }),
      };
      const answer = await fetch(url, { headers });
      expect(answer.status).toBe(status);
      expect(reads.count).toBe(status === 200 ? 1 : 0);
      if (status === 200) {
        expect(answer.headers.get("content-type")).toBe(METRICS_CONTENT_TYPE);
        expect(await answer.text()).toBe(TEXT);
      } else expect(await answer.json()).toMatchObject({ error: { type: "not_found" } });
    },
  );

  test("an API key is not a token", async () => {
    const { api: running, url } = await started(TOKEN);
    const headers = { authorization: `Bearer ${running.acme.wide}` };
    expect((await fetch(url, { headers })).status).toBe(404);
  });
});

test("without METRICS_TOKEN, the API's port has no metrics", async () => {
  const { url, reads } = await started(null);
  const answer = await fetch(url);
  expect([answer.status, reads.count]).toEqual([404, 0]);
  expect(await answer.json()).toMatchObject({ error: { type: "not_found" } });
});

describe("METRICS_PORT", () => {
  let server: MetricsServer | null = null;
  afterEach(async () => {
    await server?.stop();
    server = null;
  });
  const local = () => {
    server = serveMetrics({ contentType: METRICS_CONTENT_TYPE, read: async () => TEXT }, 0);
    return server.port;
  };

  test("serves the metrics on loopback without a token", async () => {
    const answer = await fetch(`http://127.0.0.1:${local()}/metrics`);
    expect([answer.status, answer.headers.get("content-type")]).toEqual([200, METRICS_CONTENT_TYPE]);
    expect(await answer.text()).toBe(TEXT);
  });

  test("serves nothing else", async () => {
    const port = local();
    for (const path of ["/", "/livez", "/v1/emails", "/metrics/x"])
      expect((await fetch(`http://127.0.0.1:${port}${path}`)).status).toBe(404);
  });

  const hosts: [host: string, status: number][] = [
    ["localhost", 200],
    ["127.0.0.1:1", 200],
    ["[::1]:1", 200],
    ["rebound.example", 404],
    ["localhost.rebound.example", 404],
  ];
  test.each(hosts)("answers a request for host %s with %i", async (host, status) => {
    const answer = await fetch(`http://127.0.0.1:${local()}/metrics`, { headers: { host } });
    expect(answer.status).toBe(status);
  });

  test("listens on no other address", async () => {
    const port = local();
    const other = await fetch(`http://127.0.0.2:${port}/metrics`).then(
      ({ status }) => status,
      () => "refused",
    );
    expect(other).toBe("refused");
  });
});

test("metrics are not part of the API's reference", async () => {
  const { api: running } = await started(null);
  const paths = Object.keys(openApiDocument(running.routes).paths as object);
  expect(paths.filter((path) => /metrics/.test(path))).toEqual([]);
  expect(paths.length).toBeGreaterThan(10);
});

test("a process without API routes answers health and metrics, and nothing else", async () => {
  const metrics = { token: TOKEN, contentType: METRICS_CONTENT_TYPE, read: async () => TEXT };
  api = await testApi({ http: { metrics, routes: [] } });
  const { port } = await api.http.start();
  const statuses = await Promise.all(
    ["/livez", "/healthz", "/readyz", "/metrics", "/docs", "/docs/json", "/v1/emails"].map(async (path) => {
      const headers = { authorization: `Bearer ${TOKEN}` };
      return (await fetch(`http://127.0.0.1:${port}${path}`, { headers })).status;
    }),
  );
  expect(statuses).toEqual([200, 200, 200, 200, 404, 404, 404]);
});
