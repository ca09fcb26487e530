import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import { match } from "../../../src/ui/state/paths.ts";
import { adviceParts, PLACES } from "../../../src/ui/words/operations.ts";

describe("advice in the dashboard", () => {
  test.each([
    ["or lift the suppression with DELETE /v1/suppressions.", "Suppressions › Lift", "/suppressions"],
    ["Verify it: POST /v1/domains/dom_1/verify.", "Domains › Verify", "/domains/dom_1"],
    ["Rotate it: POST /v1/domains/dom_1/rotate-dkim.", "Domains › Rotate DKIM", "/domains/dom_1?rotate=1"],
    ["call POST /v1/domains/{id}/verify.", "Domains › Verify", "/domains"],
    [
      "lift it with DELETE /v1/suppressions?email=a%2Bb%40c.d.",
      "Suppressions › Lift",
      "/suppressions/a%2Bb%40c.d",
    ],
    [
      'Switch it on with PATCH /v1/domains/dom_1/receiving {"enabled":true}.',
      "Domains › Receiving",
      "/domains/dom_1",
    ],
    ["Names as `GET /v1/lanes` shows them.", "Home › Providers", "/"],
    ["Read the conversation in GET /v1/emails/{id}/attempts.", "the tab SMTP", null],
    ["call POST /v1/lanes/mx1.example.com+mx2.example.com/open.", "Home › Providers › Open", "/"],
    ["by POST /v1/emails/{id}/approve or /reject.", "the buttons above", null],
  ])("%s names the page that does it", (advice, text, href) => {
    const parts = adviceParts(advice);
    expect(parts.find((part) => part.text === text)?.href ?? null).toBe(href);
    expect(parts.map((part) => part.text).join("")).toEndWith(".");
    expect(parts.map((part) => part.text).join("")).not.toContain("/v1/");
  });

  test("keeps the words around an operation, and operations without a page", () => {
    expect(adviceParts("A. POST /v1/emails/batch sends many.").map(({ text }) => text)).toEqual([
      "A. POST /v1/emails/batch sends many.",
    ]);
    expect(adviceParts("").length).toBe(0);
  });
});

test.each(PLACES.flatMap(([operation, , href]) => (href === null ? [] : [[operation, href] as const])))(
  "%s has a page at %s",
  async (_operation, href) => {
    // Their module needs the types of browsers, so the paths of the pages are read from its text.
    const routes = await Bun.file(join(import.meta.dir, "../../../src/ui/frame/routes.ts")).text();
    const pages = [...routes.matchAll(/"(\/[^"]*)"/g)].map(([, path = ""]) => path);
    const { pathname } = new URL(href.replace(":id", "x_1"), "http://dashboard.test");
    expect(pages.filter((page) => match(page, pathname) !== null)).not.toEqual([]);
  },
);
