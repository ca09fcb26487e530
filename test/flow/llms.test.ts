import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { docPages, readPage } from "../support/doc-page.ts";
import { startService, type TestService } from "../support/service.ts";

const START_MS = 30_000;
/** Pages for people who work on the code, which the service does not serve. */
const NOT_SERVED = ["README.md", "docs/architecture.md", "docs/releasing.md", "docs/security.md"];

let service: TestService;
beforeAll(async () => {
  service = await startService();
}, START_MS);
afterAll(() => service.stop());

async function textAt(path: string): Promise<string> {
  const response = await fetch(`${service.url}${path}`);
  expect(response.status, path).toBe(200);
  return response.text();
}

/** Targets of the links in a page, with `PUBLIC_URL` replaced by the address of the service. */
function targetsIn(text: string): string[] {
  return [...text.matchAll(/\]\(([^)\s]+)\)/g)].map(([, target = ""]) => target);
}

describe("the documentation for programs", () => {
  test("/llms.txt lists every page and every operation, and its links work", async () => {
    const index = await textAt("/llms.txt");
    expect(index).toStartWith("# Postrider\n\n> ");
    const served = (await docPages()).filter((page) => !NOT_SERVED.includes(page));
    for (const page of served) expect(index, `src/wiring/doc-pages.ts lacks ${page}`).toContain(`/${page})`);
    const { paths } = JSON.parse(await textAt("/docs/json")) as { paths: Record<string, object> };
    for (const path of Object.keys(paths).filter((one) => one.startsWith("/v1/")))
      expect(index).toContain(path);
    const targets = targetsIn(index);
    expect(targets.length).toBeGreaterThan(served.length);
    for (const target of targets) await textAt(new URL(target).pathname);
  });

  test("/llms-full.txt has the pages and the reference with its examples", async () => {
    const full = await textAt("/llms-full.txt");
    for (const page of ["docs/send.md", "docs/webhooks.md", "docs/settings.md"])
      expect(full).toContain((await readPage(page)).split("\n")[0] ?? "");
    expect(full).toContain("## POST /v1/emails\n");
    expect(full).toContain('"subject": "Hello from Postrider"');
    expect(full).toContain("A key with scopes needs `emails:send`.");
    expect(full).not.toContain("```json\nundefined");
  });

  test.each(["send", "sdk"])("/docs/%s.md has links that work", async (page) => {
    const links = targetsIn(await textAt(`/docs/${page}.md`)).filter((target) => !target.startsWith("#"));
    expect(links.length).toBeGreaterThan(page === "sdk" ? -1 : 1);
    for (const target of links) {
      const url = new URL(target, `${service.url}/docs/${page}.md`);
      if (url.origin === service.url) await textAt(url.pathname);
    }
  });

  test("the documentation for programs is Markdown that may be cached for an hour", async () => {
    const { headers } = await fetch(`${service.url}/docs/send.md`);
    expect([headers.get("content-type"), headers.get("cache-control")]).toEqual([
      "text/markdown; charset=utf-8",
      "public, max-age=3600",
    ]);
  });
});

describe("the guides for people", () => {
  /** Paths of the links in a guide that lead to the service, as a browser finds them. */
  function linksOf(html: string, guide: string): string[] {
    const targets = [...html.matchAll(/ href="([^"#]+)/g)].map(
      ([, to = ""]) => new URL(to, service.url + guide),
    );
    return targets.filter(({ origin }) => origin === service.url).map(({ pathname }) => pathname);
  }

  test("/docs/guide lists every guide, and all links of the guides work", async () => {
    const index = await textAt("/docs/guide");
    const guides = linksOf(index, "/docs/guide").filter((target) => target.startsWith("/docs/guide/"));
    const listed = targetsIn(await textAt("/llms.txt")).filter((target) => target.endsWith(".md"));
    expect(guides).toEqual(
      listed.map((target) => new URL(target).pathname.replace(/docs\/(.*)\.md/, "docs/guide/$1")),
    );
    const targets = new Set<string>();
    for (const guide of guides) {
      const html = await textAt(guide);
      expect(html, guide).toContain("<h1");
      expect(html, guide).not.toMatch(/href="[^":]*\.md/);
      for (const target of linksOf(html, guide)) targets.add(target);
    }
    targets.delete("/");
    for (const target of targets) await textAt(target);
  });

  test("a guide runs and loads nothing", async () => {
    const { headers } = await fetch(`${service.url}/docs/guide/send`);
    expect(headers.get("content-type")).toBe("text/html; charset=utf-8");
    expect(headers.get("content-security-policy")).toStartWith("default-src 'none'; style-src 'sha256-");
  });
});
