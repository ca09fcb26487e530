import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import type { Page } from "playwright-core";
import { actionsOn, BROWSER_MS, CHROMIUM, startBrowser, type TestBrowser } from "../support/browser.ts";
import { SERVICE_DOMAIN, startService, type TestService } from "../support/service.ts";

setDefaultTimeout(BROWSER_MS);
const browserTest = test.skipIf(CHROMIUM === null);

const BATCH = 100;
/** Makes over a thousand events. */
const FLOOD_BATCHES = 8;
/** Longer than the page waits after a flood, milliseconds. */
const AFTER_FLOOD_MS = 11_000;

let service: TestService;
let browser: TestBrowser;
let page: Page;
beforeAll(async () => {
  if (CHROMIUM === null) return;
  [service, browser] = await Promise.all([startService(), startBrowser()]);
  ({ page } = await browser.visit(service.url, "/messages", { key: service.accountKey }));
});
afterAll(async () => {
  await browser?.close();
  await service?.stop();
});

const { see } = actionsOn(() => page);
const dot = (state: string) => page.locator(`.live-dot.${state}`).waitFor();

function item(subject: string) {
  const from = { email: `hello@onboarding.${SERVICE_DOMAIN}` };
  return { from, to: [{ email: `delivered@simulator.${SERVICE_DOMAIN}` }], subject, text: "x" };
}

const send = (subject: string) => service.send(item(subject));

async function flood(): Promise<void> {
  const emails = Array.from({ length: BATCH }, (_, n) => item(`One of many ${n}`));
  for (let n = 0; n < FLOOD_BATCHES; n++)
    expect((await service.call("POST", "/v1/emails/batch", { emails })).status).toBe(207);
}

/** Makes the tab as hidden or seen as a browser does when a person changes tabs. */
async function show(state: "hidden" | "visible"): Promise<void> {
  await page.evaluate(`
    Object.defineProperty(document, "visibilityState", { value: "${state}", configurable: true });
    document.dispatchEvent(new Event("visibilitychange"));
  `);
}

browserTest("a hidden tab keeps no stream, and shows what it has missed once it is seen again", async () => {
  await dot("live");
  const closed = page.waitForEvent("requestfailed", (request) => request.url().includes("/v1/events/stream"));
  await show("hidden");
  await closed;
  await send("While hidden");
  const opened = page.waitForRequest(/events\/stream/);
  await show("visible");
  await opened;
  await see("While hidden");
  await dot("live");
});

browserTest("a page goes on from the newest events if those that it missed are gone", async () => {
  await send("Its event is the last one");
  await see("Its event is the last one");
  await page.route(/lastEventId=evt/, (route) => route.fulfill({ status: 409, body: "{}" }), { times: 1 });
  await show("hidden");
  await send("Never streamed");
  const refused = page.waitForResponse((response) => response.status() === 409);
  await show("visible");
  await refused;
  await see("Never streamed");
  await dot("live");
});

browserTest("with very many events pages read again from time to time, until there are fewer", async () => {
  await page.clock.install();
  await page.reload();
  await dot("live");
  await flood();
  await dot("busy");
  await send("After the flood");
  await page.clock.runFor(AFTER_FLOOD_MS);
  await see("After the flood");
  await page.clock.runFor(AFTER_FLOOD_MS);
  await dot("live");
  await send("Live again");
  await page.clock.runFor(AFTER_FLOOD_MS);
  await see("Live again");
});

browserTest("Live shows each event, also of very many", async () => {
  await page.goto(`${service.url}/live`);
  await see("Live");
  await flood();
  await send("At the end of the flood");
  const { body } = await service.call("GET", "/v1/emails?limit=1");
  await page.clock.runFor(AFTER_FLOOD_MS);
  await page.locator(`a[href="/messages/${body.data[0].id}"]`).first().waitFor();
  await dot("live");
});

browserTest("a tab that was opened out of sight shows what has come when it is first seen", async () => {
  const { context } = await browser.visit(service.url, "/livez", { key: service.accountKey });
  const hidden = await context.newPage();
  await hidden.addInitScript(
    `Object.defineProperty(document, "visibilityState", { value: "hidden", configurable: true })`,
  );
  await hidden.goto(`${service.url}/messages`);
  await hidden.locator("#app[data-app]").waitFor();
  // Its last event is over, too.
  await service.message(await send("Before it is seen"), "delivered");
  const seen = page;
  page = hidden;
  await show("visible");
  await see("Before it is seen");
  page = seen;
});

browserTest("shows an event that came after the page was drawn and before its stream opened", async () => {
  // The last of the events before the page.
  await service.message(await send("Before the page"), "delivered");
  const { page: opened, context } = await browser.visit(service.url, "/livez", { key: service.accountKey });
  const held = Promise.withResolvers<void>();
  await opened.route(/events\/stream/, async (route) => {
    await held.promise;
    await route.continue();
  });
  let lists = 0;
  opened.on("request", (request) => void (new URL(request.url()).pathname === "/v1/emails" && lists++));
  await opened.goto(`${service.url}/messages`);
  await opened.getByText("Before the page").first().waitFor();
  await service.message(await send("In the gap"), "delivered");
  expect(lists).toBe(0);
  held.resolve();
  await opened.getByText("In the gap").first().waitFor();
  await context.close();
});
