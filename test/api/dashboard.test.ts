import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { UiFile } from "../../src/http/dashboard/assets.ts";
import { bundleUi } from "../../src/wiring/ui/bundle.ts";
import { uiDraw, uiFiles } from "../../src/wiring/ui/files.ts";
import { type TestApi, testApi } from "../support/api.ts";

/** The header of a browser that opens a page. */
const BROWSER = { accept: "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8" };

let api: TestApi;
let files: readonly UiFile[];
beforeAll(async () => {
  files = (await bundleUi()).files;
  api = await testApi({
    http: {
      ui: {
        files: async () => files,
        draw: uiDraw(),
        newestEvent: async () => null,
        routes: [],
        program: "postrider",
        provider: null,
        hasMembers: async () => false,
      },
    },
  });
});
afterAll(() => api.close());

const visit = (path: string, method = "GET") => api.call(method, path, { key: null, headers: BROWSER });

describe("the dashboard's page", () => {
  test.each(["/", "/messages", "/messages/em_1?tab=raw", "/v1x", "/start"])(
    "the dashboard's page is shown at %s",
    async (path) => {
      const shown = await visit(path);
      expect([shown.status, shown.headers.get("content-type")]).toEqual([200, "text/html; charset=utf-8"]);
      expect(shown.text).toContain('<div id="app"></div>');
      // A new version has other files, so the page itself is never kept.
      expect(shown.headers.get("cache-control")).toBe("no-store");
    },
  );

  test("the dashboard's page has one script, and nothing inline or of another origin", async () => {
    const { text, headers } = await visit("/messages");
    expect(headers.get("content-security-policy")).toBe(
      "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; frame-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
    );
    expect(text.match(/<script type="module" src="\/ui\/assets\/start-\w+\.js"><\/script>/g)).toHaveLength(1);
    expect(text).not.toMatch(/<script(?![^>]*src=| type="application\/json")|<style|style=|https?:/);
  });

  test.each([
    "/v1",
    "/v1/nothing",
    "/docs/nothing",
    "/resend/emails",
    "/ui/nothing",
    "/llms.txt",
    "/llms-full.txt",
    "/o/x/y",
    "/c/x/y",
    "/u/x/y",
    "/metrics",
    "/healthz/x",
  ])("the dashboard's page is not shown at the reserved path %s", async (path) => {
    const { status, json } = await visit(path);
    // Resend's errors have a name in place of a type.
    expect([status, json.name ?? json.error.type]).toEqual([404, "not_found"]);
  });

  test("the dashboard's page is not shown at /mcp, which asks for a key", async () => {
    const { status, json } = await visit("/mcp");
    expect([status, json.error.type]).toEqual([401, "authentication_error"]);
  });

  test("the dashboard's page is not shown to a client that does not ask for html", async () => {
    for (const accept of ["*/*", "application/json", ""]) {
      const { status, json } = await api.call("GET", "/messages", { key: null, headers: { accept } });
      expect([accept, status, json.error.type]).toEqual([accept, 404, "not_found"]);
    }
  });

  test("the dashboard's page is not the answer to a write", async () => {
    for (const method of ["POST", "PUT", "DELETE", "PATCH"])
      expect((await visit("/messages", method)).status).toBe(404);
  });

  test("the dashboard's page is not shown by a process without the api role", async () => {
    const without = await testApi();
    const { status } = await without.call("GET", "/messages", { key: null, headers: BROWSER });
    await without.close();
    expect(status).toBe(404);
  });
});

describe("the dashboard's files", () => {
  const paths = () => files.map(({ name }) => `/ui/assets/${name}`);

  test("the dashboard's files are all those that the page names, and each is cached for good", async () => {
    const { text } = await visit("/");
    const named = [...text.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, path]) => path);
    const later = files.filter((file) => file.later === true).map(({ name }) => `/ui/assets/${name}`);
    expect([...named, ...later].sort()).toEqual(paths().sort());
    for (const path of paths()) {
      const { status, headers } = await api.call("GET", path, { key: null });
      expect([status, headers.get("cache-control")]).toEqual([200, "public, max-age=31536000, immutable"]);
      expect(headers.get("x-content-type-options")).toBe("nosniff");
    }
  });

  test("the dashboard's files are sent compressed to a client that takes gzip, and else not", async () => {
    const script = paths().find((path) => path.endsWith(".js")) ?? "";
    const fetched = async (encoding: string) => {
      const headers = { "accept-encoding": encoding };
      const answer = await api.http.fetch(new Request(`http://localhost${script}`, { headers }));
      return { answer, bytes: await answer.bytes() };
    };
    const zipped = await fetched("br, gzip;q=0.5");
    expect(zipped.answer.headers.get("content-encoding")).toBe("gzip");
    for (const encoding of ["", "identity", "gzip;q=0, identity"]) {
      const plain = await fetched(encoding);
      expect(plain.answer.headers.get("content-encoding")).toBeNull();
      expect(plain.bytes).toEqual(Bun.gunzipSync(Buffer.from(zipped.bytes)));
    }
  });

  test("the dashboard's files are nothing but files of the dashboard", async () => {
    for (const name of ["main.js", "..%2f..%2fpackage.json", "%00", ""])
      expect((await api.call("GET", `/ui/assets/${name}`, { key: null })).status).toBe(404);
  });

  test("the dashboard's files that a first page loads have at most 125 kB, compressed, and those of a chart 25 kB", () => {
    const octets = (later: boolean) =>
      files.reduce((sum, file) => sum + ((file.later === true) === later ? file.gzipped.size : 0), 0);
    expect(octets(false)).toBeLessThanOrEqual(125_000);
    expect(octets(true)).toBeLessThanOrEqual(25_000);
  });

  test("the dashboard's files have the same names after each build, which several processes share", async () => {
    const names = (of: readonly UiFile[]) => of.map(({ name }) => name);
    expect(names(await uiFiles()())).toEqual(names(files));
  });
});
