import { afterEach, describe, expect, test } from "bun:test";
import { homeRoutes } from "../../src/http/routes/projects/home.ts";
import { uiDraw } from "../../src/wiring/ui/files.ts";
import { type TestApi, testApi } from "../support/api.ts";

const API = "https://post.example/base";

let api: TestApi | null = null;
afterEach(async () => {
  await api?.close();
  api = null;
});

async function started(): Promise<TestApi> {
  const ui = {
    files: async () => [],
    draw: uiDraw(),
    newestEvent: async () => null,
    routes: [],
    program: "postrider",
    provider: null,
    hasMembers: async () => false,
  };
  api = await testApi({
    routes: () => homeRoutes({ publicUrl: API, delivery: "capture" }),
    http: { ui },
  });
  return api;
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

  test("shows a browser the dashboard", async () => {
    const headers = { accept: "text/html,application/xhtml+xml,*/*;q=0.8" };
    const shown = await (await started()).http.fetch(new Request("http://localhost/", { headers }));
    expect([shown.status, shown.headers.get("content-type")]).toEqual([200, "text/html; charset=utf-8"]);
    expect(await shown.text()).toContain('<div id="app"></div>');
  });

  test("answers other methods with 405", async () => {
    expect((await (await started()).call("POST", "/", { key: null })).status).toBe(405);
  });
});
