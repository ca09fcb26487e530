import { afterEach, describe, expect, test } from "bun:test";
import { homeRoutes } from "../../src/http/routes/home.ts";
import { type TestApi, testApi } from "../support/api.ts";
import { manualClock } from "../support/manual-clock.ts";

const API = "https://post.example/base";

let api: TestApi | null = null;
afterEach(async () => {
  await api?.close();
  api = null;
});

async function started(broken = false): Promise<TestApi> {
  const run = async () => {
    if (broken) throw new Error("down");
  };
  const home = {
    clock: manualClock(),
    checks: [{ name: "database", run }],
    publicUrl: API,
    delivery: "capture" as const,
    serviceDomain: "post.example",
  };
  api = await testApi({ routes: () => homeRoutes(home) });
  return api;
}

/** Asks as a browser does. */
async function visit({ http }: TestApi) {
  const headers = { accept: "text/html,application/xhtml+xml,*/*;q=0.8" };
  const answer = await http.fetch(new Request("http://localhost/", { headers }));
  return { status: answer.status, headers: answer.headers, text: await answer.text() };
}

describe("GET /", () => {
  test("shows API clients where the reference is, without a key", async () => {
    const { status, json } = await (await started()).call("GET", "/", { key: null });
    expect([status, json]).toEqual([
      200,
      {
        name: "Postrider",
        delivery: "capture",
        reference: `${API}/docs`,
        openapi: `${API}/docs/json`,
        ready: `${API}/readyz`,
      },
    ]);
  });

  test("shows a browser a page that loads and runs nothing", async () => {
    const { status, text, headers } = await visit(await started());
    expect([status, headers.get("content-type")]).toEqual([200, "text/html; charset=utf-8"]);
    expect(text).toContain("Postrider is running");
    expect(text).toContain("It is ready.");
    expect(text).toContain(`curl ${API}/v1/emails`);
    expect(text).toContain("delivered@simulator.post.example");
    expect(text).not.toMatch(/<script|src=|https?:\/\/(?!post\.example)/);
    const style = /<style>([\s\S]*?)<\/style>/.exec(text)?.[1] ?? "";
    const hash = new Bun.CryptoHasher("sha256").update(style).digest("base64");
    expect(headers.get("content-security-policy")).toStartWith(
      `default-src 'none'; style-src 'sha256-${hash}';`,
    );
  });

  test("names what failed if the service is not ready", async () => {
    const { text } = await visit(await started(true));
    expect(text).toContain("It is not ready: database failed.");
  });

  test("answers other methods with 405", async () => {
    expect((await (await started()).call("POST", "/", { key: null })).status).toBe(405);
  });
});
