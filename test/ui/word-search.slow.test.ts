import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import type { Page } from "playwright-core";
import { BROWSER_MS, CHROMIUM, startBrowser, type TestBrowser, actionsOn } from "../support/browser.ts";
import { until } from "../support/poll.ts";
import { startService, type TestService } from "../support/service.ts";

setDefaultTimeout(BROWSER_MS);
const browserTest = test.skipIf(CHROMIUM === null);

let service: TestService;
let browser: TestBrowser;
let page: Page;
beforeAll(async () => {
  if (CHROMIUM === null) return;
  [service, browser] = await Promise.all([startService({ DELIVERY: "capture" }), startBrowser()]);
  await service.call("POST", "/v1/inboxes", { address: "help@inbox.mail.test" });
  const text = "The <b>parcel</b> with the lamp has not come.";
  for (const subject of ["Where is it", "Lamp"])
    await service.call("POST", "/v1/inbound/simulate", { to: "help@inbox.mail.test", subject, text });
  await service.call("POST", "/v1/inbound/simulate", {
    to: "help@inbox.mail.test",
    subject: "Other",
    text: "Hi",
  });
  await until(async () => (await service.call("GET", "/v1/emails?text=parcel")).body.data.length === 2);
  ({ page } = await browser.visit(service.url, "/messages", {
    key: service.projectKey,
    viewport: { width: 1440, height: 900 },
  }));
});
afterAll(async () => {
  await browser?.close();
  await service?.stop();
});

const { see } = actionsOn(() => page);

for (const [path, label] of [
  ["/messages", "Search messages"],
  ["/inboxes", "Search threads"],
] as const)
  browserTest(`${path} finds words in messages and marks them as plain text`, async () => {
    await page.goto(`${service.url}${path}`);
    await see("Other");
    await page.getByLabel("Search in").selectOption("words");
    await page.keyboard.press("/");
    await page.getByLabel(label).fill("parcel LAMP");
    await page.locator("mark").nth(3).waitFor();
    expect(await page.locator("mark").allTextContents()).toEqual(["parcel", "lamp", "parcel", "lamp"]);
    expect(await page.locator(".marked").first().textContent()).toContain("The <b>parcel</b> with the lamp");
    expect(new URL(page.url()).searchParams.get("text")).toBe("parcel LAMP");
    expect(await page.getByText("Other", { exact: true }).count()).toBe(0);
    await page.getByLabel("Search in").selectOption("names");
    await page.getByLabel(label).fill("other");
    await see("Other");
  });
