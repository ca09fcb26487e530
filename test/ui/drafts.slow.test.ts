import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import type { Page } from "playwright-core";
import {
  actionsOn,
  BROWSER_MS,
  CHROMIUM,
  NO_FAULTS,
  startBrowser,
  type TestBrowser,
  type Visit,
} from "../support/browser.ts";
import { SERVICE_DOMAIN, startService, type TestService } from "../support/service.ts";

setDefaultTimeout(BROWSER_MS);
const browserTest = test.skipIf(CHROMIUM === null);

const MAX_FILES = 20;

let service: TestService;
let browser: TestBrowser;
let visit: Visit;
let page: Page;
beforeAll(async () => {
  if (CHROMIUM === null) return;
  [service, browser] = await Promise.all([startService(), startBrowser()]);
  visit = await browser.visit(service.url, "/messages", { key: service.accountKey });
  ({ page } = visit);
});
afterAll(async () => {
  await browser?.close();
  await service?.stop();
});

const go = (path: string) => page.goto(service.url + path);
const { see, press, follow, fill } = actionsOn(() => page);
const typedIn = (label: string) => page.getByLabel(label, { exact: true }).inputValue();
const gone = () => page.getByRole("dialog").waitFor({ state: "detached" });

describe("the compose window", () => {
  browserTest("shows errors of fields that it does not show", async () => {
    await go("/messages?compose=1");
    await fill("To", `delivered@simulator.${SERVICE_DOMAIN}`);
    await fill("Subject", "Without a body");
    await press("Send message");
    await page.locator(".problem", { hasText: "html" }).waitFor();
    await fill("To", "no address");
    await page.getByRole("tab", { name: "curl" }).click();
    await press("Send message");
    await page.locator(".problem", { hasNotText: "html" }).waitFor();
    await page.getByRole("tab", { name: "Message" }).click();
    await page.locator(".field.invalid").waitFor();
    await fill("To", "ana@example.com");
    await page.locator(".field.invalid").waitFor({ state: "detached" });
    await fill("To", "no address");
    await press("Send message");
    await page.locator("input[aria-invalid=true]:focus").waitFor();
  });

  browserTest("keeps what was typed when it is closed, until it is discarded", async () => {
    await go("/messages");
    await follow("Send a message");
    await fill("Subject", "Half written");
    await page.mouse.click(2, 2);
    expect(await typedIn("Subject")).toBe("Half written");
    await page.keyboard.press("Escape");
    await gone();
    await page.keyboard.press("c");
    expect(await typedIn("Subject")).toBe("Half written");
    await press("Discard");
    await gone();
    await page.keyboard.press("c");
    expect(await typedIn("Subject")).toBe("");
  });

  browserTest("says how many files are too many", async () => {
    const files = Array.from({ length: MAX_FILES + 2 }, (_, at) => ({
      name: `${at}.txt`,
      mimeType: "text/plain",
      buffer: Buffer.from("x"),
    }));
    await page.locator("input[type=file]").setInputFiles(files);
    await see("A message takes 20 files, so 2 files were left out.");
    await press("Remove 19.txt");
    await page.getByText("were left out").waitFor({ state: "detached" });
    await press("Discard");
  });
});

browserTest("a reply that was not sent is there when the thread is opened again", async () => {
  const inbox = await service.call("POST", "/v1/inboxes", { address: `desk@inbox.${SERVICE_DOMAIN}` });
  const { body } = await service.call("POST", "/v1/inbound/simulate", {
    to: inbox.body.address,
    from: "ana@example.com",
    subject: "Where?",
    text: "Hello",
  });
  expect(body.threadId).toStartWith("thr_");
  await go(`/threads/${body.threadId}`);
  await page.getByPlaceholder("Write a reply").fill("It is on its");
  await page.keyboard.press("Escape");
  await page.locator(".sections a", { hasText: "Messages" }).first().click();
  await page.waitForURL(/\/messages$/);
  await page.goBack();
  await page.waitForURL(/\/threads\//);
  expect(await page.getByPlaceholder("Write a reply").inputValue()).toBe("It is on its");
});

browserTest(
  "a template's changes that were not saved are there when its editor is opened again",
  async () => {
    const { body } = await service.call("POST", "/v1/templates", {
      name: "Welcome",
      subject: "Hi",
      text: "x",
    });
    await go(`/templates/${body.id}`);
    await fill("Subject", "Hi {{ name }}");
    await see("Not saved yet.");
    await follow("All templates");
    await page.waitForURL(/\/templates$/);
    await follow("Welcome");
    await see("Not saved yet.");
    expect(await typedIn("Subject")).toBe("Hi {{ name }}");
    // So the browser asks before it leaves the app.
    const isHeld = "!dispatchEvent(new Event('beforeunload', { cancelable: true }))";
    expect(await page.evaluate(isHeld)).toBe(true);
    await press("Save template");
    await see("Saved.");
    expect((await service.call("GET", `/v1/templates/${body.id}`)).body.subject).toBe("Hi {{ name }}");
  },
);

browserTest("the zone file of a domain that receives has its MX record", async () => {
  await service.call("POST", "/v1/domains", { domain: "zone.test" });
  await go("/domains");
  await page.evaluate("navigator.clipboard.writeText = async (text) => void (window.copied = text)");
  const copied = async () => {
    await press("Copy zone file");
    return page.evaluate("window.copied");
  };
  await page.locator(".row", { hasText: "zone.test" }).click();
  await page.getByRole("switch", { name: "Receive mail for this domain" }).click();
  await page.getByText("Mail to inboxes of this domain is received.").waitFor();
  await page.getByText("MX", { exact: true }).first().waitFor();
  expect(await copied()).toMatch(/^zone\.test\. IN MX 10 \S+\.$/m);
});

browserTest("makes no faults", async () => {
  expect(visit.faults).toEqual(NO_FAULTS);
});
