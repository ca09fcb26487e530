import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import type { Page } from "playwright-core";
import { brokenPages } from "../support/axe.ts";
import { actionsOn, BROWSER_MS, CHROMIUM, startBrowser, type TestBrowser } from "../support/browser.ts";
import { startService, type TestService } from "../support/service.ts";

setDefaultTimeout(BROWSER_MS);
const browserTest = test.skipIf(CHROMIUM === null);

let service: TestService;
let browser: TestBrowser;
let page: Page;
beforeAll(async () => {
  if (CHROMIUM === null) return;
  [service, browser] = await Promise.all([startService(), startBrowser()]);
  const { body } = await service.call("POST", "/v1/templates", {
    slug: "welcome",
    name: "Welcome",
    subject: "Hello",
    text: "x",
  });
  await service.call("PATCH", `/v1/templates/${body.id}`, { subject: "Hello again" });
  ({ page } = await browser.visit(service.url, "/audit", {
    key: service.accountKey,
    viewport: { width: 1440, height: 900 },
  }));
});
afterAll(async () => {
  await browser?.close();
  await service?.stop();
});

const { see } = actionsOn(() => page);

browserTest("the audit log shows who changed what, and a change its fields before and after", async () => {
  await see("Template created");
  await page.getByText("Template updated").first().click();
  const row = page.getByRole("row", { name: /subject/ });
  await row.waitFor();
  expect(await row.getByRole("cell").allTextContents()).toEqual(["Hello", "Hello again"]);
});

browserTest("the audit log is filtered by who made the change, and by what changed", async () => {
  await page.goto(`${service.url}/audit`);
  await page.getByRole("link", { name: "The service" }).click();
  await page.getByText("Template created").first().waitFor({ state: "detached" });
  await page.goto(`${service.url}/audit?target=template`);
  await see("Template created");
  expect(await page.getByText("Project created").count()).toBe(0);
});

browserTest("WCAG AA holds on the audit log, light and dark, wide and narrow", async () => {
  const { page: other, context } = await browser.visit(service.url, "/", { key: service.accountKey });
  const { body } = await service.call("GET", "/v1/audit-log?action=template.update", undefined, {
    key: service.accountKey,
  });
  const broken = await brokenPages(other, service.url, [
    ["/audit", "Template created"],
    [`/audit/${body.data[0].id}`, "Hello again"],
  ]);
  expect(broken).toEqual([]);
  await context.close();
});
