import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import type { Page } from "playwright-core";
import { actionsOn, BROWSER_MS, CHROMIUM, startBrowser, type TestBrowser } from "../support/browser.ts";
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
  ({ page } = await browser.visit(service.url, "/livez", { key: service.projectKey }));
});
afterAll(async () => {
  await browser?.close();
  await service?.stop();
});

const { see, press, fill } = actionsOn(() => page);

browserTest("a template is filled in by fields, tried by a test to oneself, and sent", async () => {
  const { body: template } = await service.call("POST", "/v1/templates", {
    name: "Order",
    subject: "Order {{ order.number }}",
    text: "Hello {{ name }}, {% for item in items %}{{ item }};{% endfor %}",
  });
  await page.goto(`${service.url}/templates/${template.id}`);
  await press("Send");
  await fill("From", "help@inbox.mail.test");
  await fill("To", "ana@one.test");
  await fill("order.number", "42");
  await fill("name", "Ana");
  await fill("items", '["tea","cups"]');
  await press("Send me a test");
  const own = (await service.call("GET", "/v1/me")).body.account.ownerEmail;
  const link = page.getByRole("link", { name: `Open the test to ${own}` });
  await link.waitFor();
  const tried = await service.message(
    ((await link.getAttribute("href")) ?? "").slice("/messages/".length),
    "delivered",
  );
  expect(tried).toMatchObject({ to: [own], cc: [], subject: "Order 42", text: "Hello Ana, tea;cups;" });
  await press("Send message");
  await see("ana@one.test");
  const [sent] = (await service.call("GET", "/v1/emails?to=ana@one.test")).body.data;
  // The template gives the subject when the message is sent.
  expect(await service.message(sent.id, "delivered")).toMatchObject({
    subject: "Order 42",
    to: ["ana@one.test"],
  });
});

browserTest("data that is no JSON object cannot be sent", async () => {
  await page.goto(`${service.url}/messages?compose=1`);
  await page.getByLabel("Template").selectOption({ label: "Order" });
  await press("JSON");
  await fill("Data as JSON", "[1]");
  await see("The data is no JSON object.");
  expect(await page.getByRole("button", { name: "Send message" }).isDisabled()).toBe(true);
});
