import { expect } from "bun:test";
import { SERVICE_DOMAIN } from "../support/service.ts";
import { browserTest, dashboard } from "../support/dashboard.ts";

const BATCH = 100;
/** Makes over a thousand events. */
const FLOOD_BATCHES = 8;
/** Longer than the page waits after a flood, milliseconds. */
const AFTER_FLOOD_MS = 11_000;

const ui = dashboard({ path: "/messages" });

const { see } = ui;
const dot = (state: string) => ui.page.locator(`.live-dot.${state}`).waitFor();

function item(subject: string) {
  const from = { email: `hello@onboarding.${SERVICE_DOMAIN}` };
  return { from, to: [{ email: `delivered@simulator.${SERVICE_DOMAIN}` }], subject, text: "x" };
}

const send = (subject: string) => ui.service.send(item(subject));

async function flood(): Promise<void> {
  const emails = Array.from({ length: BATCH }, (_, n) => item(`One of many ${n}`));
  for (let n = 0; n < FLOOD_BATCHES; n++)
    expect((await ui.service.call("POST", "/v1/emails/batch", { emails })).status).toBe(207);
}

/** Makes the tab as hidden or seen as a browser does when a person changes tabs. */
async function show(state: "hidden" | "visible", page = ui.page): Promise<void> {
  await page.evaluate(`
    Object.defineProperty(document, "visibilityState", { value: "${state}", configurable: true });
    document.dispatchEvent(new Event("visibilitychange"));
  `);
}

browserTest("a hidden tab keeps no stream, and shows what it has missed once it is seen again", async () => {
  await dot("live");
  const closed = ui.page.waitForEvent("requestfailed", (request) =>
    request.url().includes("/v1/events/stream"),
  );
  await show("hidden");
  await closed;
  await send("While hidden");
  const opened = ui.page.waitForRequest(/events\/stream/);
  await show("visible");
  await opened;
  await see("While hidden");
  await dot("live");
});

browserTest("a page goes on from the newest events if those that it missed are gone", async () => {
  await send("Its event is the last one");
  await see("Its event is the last one");
  await ui.page.route(/lastEventId=evt/, (route) => route.fulfill({ status: 409, body: "{}" }), { times: 1 });
  await show("hidden");
  await send("Never streamed");
  const refused = ui.page.waitForResponse((response) => response.status() === 409);
  await show("visible");
  await refused;
  await see("Never streamed");
  await dot("live");
});

browserTest("with very many events pages read again from time to time, until there are fewer", async () => {
  await ui.page.clock.install();
  await ui.page.reload();
  await dot("live");
  // However slow the machine is, the page gets all events in one second.
  await ui.page.evaluate(
    "{ const { now } = Date, at = now(); Date.now = () => at; Date.goOn = () => { Date.now = now; } }",
  );
  await flood();
  await dot("busy");
  await ui.page.evaluate("Date.goOn()");
  await send("After the flood");
  await ui.page.clock.runFor(AFTER_FLOOD_MS);
  await see("After the flood");
  await ui.page.clock.runFor(AFTER_FLOOD_MS);
  await dot("live");
  await send("Live again");
  await ui.page.clock.runFor(AFTER_FLOOD_MS);
  await see("Live again");
});

browserTest("Live shows each event, also of very many", async () => {
  await ui.go("/live");
  await see("Live");
  await flood();
  await send("At the end of the flood");
  const { body } = await ui.service.call("GET", "/v1/emails?limit=1");
  await ui.page.clock.runFor(AFTER_FLOOD_MS);
  await ui.page.locator(`a[href="/messages/${body.data[0].id}"]`).first().waitFor();
  await dot("live");
});

browserTest("a tab that was opened out of sight shows what has come when it is first seen", async () => {
  const { context } = await ui.browser.visit(ui.service.url, "/livez", { key: ui.service.accountKey });
  const hidden = await context.newPage();
  await hidden.addInitScript(
    `Object.defineProperty(document, "visibilityState", { value: "hidden", configurable: true })`,
  );
  await hidden.goto(`${ui.service.url}/messages`);
  await hidden.locator("#app[data-app]").waitFor();
  // Its last event is over, too.
  await ui.service.message(await send("Before it is seen"), "delivered");
  await show("visible", hidden);
  await hidden.getByText("Before it is seen").first().waitFor();
});

browserTest("shows an event that came after the page was drawn and before its stream opened", async () => {
  // The last of the events before the page.
  await ui.service.message(await send("Before the page"), "delivered");
  const { page: opened, context } = await ui.browser.visit(ui.service.url, "/livez", {
    key: ui.service.accountKey,
  });
  const held = Promise.withResolvers<void>();
  await opened.route(/events\/stream/, async (route) => {
    await held.promise;
    await route.continue();
  });
  let lists = 0;
  opened.on("request", (request) => void (new URL(request.url()).pathname === "/v1/emails" && lists++));
  await opened.goto(`${ui.service.url}/messages`);
  await opened.getByText("Before the page").first().waitFor();
  await ui.service.message(await send("In the gap"), "delivered");
  expect(lists).toBe(0);
  held.resolve();
  await opened.getByText("In the gap").first().waitFor();
  await context.close();
});
