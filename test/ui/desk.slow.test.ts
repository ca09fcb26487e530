import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import type { Page } from "playwright-core";
import { actionsOn, BROWSER_MS, CHROMIUM, startBrowser, type TestBrowser } from "../support/browser.ts";
import { deliveredRecord } from "../support/mail-in.ts";
import { SERVICE_DOMAIN, startService, type TestService } from "../support/service.ts";

setDefaultTimeout(BROWSER_MS);
const browserTest = test.skipIf(CHROMIUM === null);

/** A red pixel. */
const PNG =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";

let service: TestService;
let browser: TestBrowser;
let page: Page;
beforeAll(async () => {
  if (CHROMIUM === null) return;
  [service, browser] = await Promise.all([startService({ DELIVERY: "capture" }), startBrowser()]);
  await service.call("POST", "/v1/inboxes", { address: "help@inbox.mail.test" });
  ({ page } = await browser.visit(service.url, "/messages", {
    key: service.projectKey,
    viewport: { width: 1440, height: 900 },
  }));
});
afterAll(async () => {
  await browser?.close();
  await service?.stop();
});

const { see, press, fill } = actionsOn(() => page);

browserTest(
  "a received message shows the sender's name in the list, and the address in the conversation",
  async () => {
    const { body } = await service.call("POST", "/v1/inbound/simulate", {
      to: "help@inbox.mail.test",
      from: { email: "ana@forged.test", name: "Ana Lima" },
      subject: "Where is it?",
      text: "Where is my order?",
    });
    await page.goto(`${service.url}/messages`);
    const row = page.getByRole("link", { name: /Where is it/ }).first();
    await row.waitFor();
    expect(await row.textContent()).toContain("Ana Lima ana@forged.test");
    expect(await page.locator(".list-heads").textContent()).toBe("StatusAddressSubjectAge");
    await page.goto(`${service.url}/threads/${body.threadId}`);
    await see("ana@forged.test");
  },
);

browserTest("an attached picture is shown, and other files are not", async () => {
  const id = await service.send({
    from: { email: "help@inbox.mail.test" },
    to: "ana@one.test",
    attachments: [
      { filename: "red.png", content: PNG, contentType: "image/png" },
      { filename: "red.svg", content: btoa("<svg/>"), contentType: "image/svg+xml" },
    ],
  });
  await page.goto(`${service.url}/messages/${id}?tab=attachments`);
  const picture = page.getByRole("img", { name: "red.png" });
  await picture.waitFor();
  expect(
    await picture.evaluate(
      (image) => (image as unknown as { decode(): Promise<void>; naturalWidth: number }).naturalWidth,
    ),
  ).toBe(1);
  expect(await page.getByRole("img", { name: "red.svg" }).count()).toBe(0);
});

browserTest("an invitation in a conversation is accepted with a button", async () => {
  const event = [
    "BEGIN:VCALENDAR",
    "METHOD:REQUEST",
    "BEGIN:VEVENT",
    "UID:1@ben.test",
    "DTSTART;TZID=Europe/Berlin:20261201T120000",
    "SUMMARY:Lunch",
    "ORGANIZER:mailto:ben@ben.test",
    "END:VEVENT",
    "END:VCALENDAR",
  ];
  const { threadId } = await deliveredRecord(service, {
    to: "help@inbox.mail.test",
    headers: ["From: Ben <ben@ben.test>", "Subject: Lunch?", "Content-Type: text/calendar"],
    body: event.join("\r\n"),
  });
  await page.goto(`${service.url}/threads/${threadId}`);
  await see("2026-12-01, 12:00 (Europe/Berlin)");
  await see("(no text)");
  await page.getByRole("button", { name: "Accept", exact: true }).click();
  await see("Accepted: Lunch");
  const { messages } = (await service.call("GET", `/v1/threads/${threadId}`)).body;
  expect(messages[1]).toMatchObject({ direction: "outbound", to: ["ben@ben.test"] });
});

browserTest("the filter of the last 24 hours can be removed", async () => {
  await page.goto(`${service.url}/messages`);
  await page.locator("summary").getByText("Filter").click();
  await page.getByRole("button", { name: "Last 24 hours" }).click();
  await page.waitForURL(/after=/);
  await see("Where is it?");
  await page.getByRole("link", { name: /Remove Not before/ }).click();
  await page.waitForURL((url) => !url.search.includes("after"));
  expect(await page.getByText("Where is it?").count()).toBeGreaterThan(0);
});

browserTest("a subject begins at its own side, and the recipients beyond the eighth open", async () => {
  const subject = "ברוכים הבאים";
  const to = Array.from({ length: 20 }, (_, at) => `p${at}@one.test`);
  const id = await service.send({ from: "help@inbox.mail.test", to, subject });
  await page.goto(`${service.url}/messages/${id}`);
  const heading = page.getByRole("heading", { name: subject });
  await heading.waitFor();
  expect(await page.evaluate("getComputedStyle(document.querySelector('.detail h2')).direction")).toBe("rtl");
  const last = page.locator(".address", { hasText: "p19@one.test" });
  expect(await last.isVisible()).toBe(false);
  await page.getByText("and 12 more").click();
  await last.waitFor();
});

browserTest("Home shows the figures of the span before", async () => {
  await page.goto(`${service.url}/`);
  await see("0 before");
});

browserTest(
  "Live begins with the events of before it was opened, each once and the newest first",
  async () => {
    const first = await service.send({ from: "help@inbox.mail.test", to: "old@one.test", subject: "Before" });
    await service.message(first, "delivered");
    await page.goto(`${service.url}/live`);
    const rows = page.locator(`.tail .row[href="/messages/${first}"]`);
    await rows.nth(3).waitFor();
    await service.send({ from: "help@inbox.mail.test", to: "new@one.test", subject: "After" });
    await see("new@one.test");
    await page.goto(`${service.url}/messages`);
    await page.goto(`${service.url}/live`);
    await rows.nth(3).waitFor();
    expect(await rows.count()).toBe(4);
    const times = await page
      .locator(".tail time")
      .evaluateAll((all) => all.map((one) => one.getAttribute("datetime")));
    expect(times).toEqual([...times].sort().reverse());
  },
);

browserTest("a bounced message says that its address is suppressed now, and lifts that", async () => {
  const to = `bounced@simulator.${SERVICE_DOMAIN}`;
  const id = await service.send({ from: "help@inbox.mail.test", to, subject: "No such person" });
  await service.message(id, "bounced");
  await service.call("POST", "/v1/suppressions", { email: to });
  await page.goto(`${service.url}/messages/${id}`);
  await see("is suppressed now: it gets no more mail.");
  await press("Lift the suppression");
  await press("Lift suppression");
  await page.getByText("is suppressed now").waitFor({ state: "detached" });
  expect((await service.call("GET", `/v1/suppressions?email=${to}`)).body.data).toEqual([]);
});

browserTest(
  "a message and a thread that their lists lack are shown above them while they are open",
  async () => {
    const id = await service.send({ from: "help@inbox.mail.test", to: "ana@one.test", subject: "Elsewhere" });
    await page.goto(`${service.url}/messages/${id}?status=failed`);
    await page.locator(".pinned", { hasText: "Elsewhere" }).waitFor();
    await page.goto(`${service.url}/messages/${id}`);
    await page.locator(`.rows [data-row="${id}"]`).waitFor();
    expect(await page.locator(".pinned").count()).toBe(0);
    const { body } = await service.call("GET", "/v1/threads?limit=1");
    const [thread] = body.data;
    await page.goto(`${service.url}/threads/${thread.id}?view=archived`);
    await page.locator(".pinned", { hasText: thread.subject }).waitFor();
  },
);

browserTest("a filter is saved under a name, applied, and forgotten", async () => {
  await page.goto(`${service.url}/messages?status=delivered&tag=campaign:spring&q=x`);
  await page.locator("summary").getByText("Filter").click();
  await fill("Name of this filter", "Spring");
  await page.keyboard.press("Enter");
  await page.goto(`${service.url}/messages`);
  await page.locator("summary").getByText("Filter").click();
  await page.getByRole("link", { name: "Spring", exact: true }).click();
  await page.waitForURL(/tag=campaign/);
  expect(Object.fromEntries(new URL(page.url()).searchParams)).toEqual({
    status: "delivered",
    q: "x",
    tag: "campaign:spring",
  });
  await page.locator("summary").getByText("Filter").click();
  await press("Forget Spring");
  expect(await page.getByRole("link", { name: "Spring", exact: true }).count()).toBe(0);
});

browserTest(
  "a conversation goes to the trash by a key, is listed there with its notes, and comes back",
  async () => {
    const { body } = await service.call("POST", "/v1/inbound/simulate", {
      to: "help@inbox.mail.test",
      subject: "Throw me away",
      text: "Hi",
    });
    await service.call("POST", `/v1/threads/${body.threadId}/notes`, { text: "Nothing to keep" });
    const folder = async () => (await service.call("GET", `/v1/threads/${body.threadId}`)).body.folder;
    await page.goto(`${service.url}/threads/${body.threadId}`);
    await see("Nothing to keep");
    await page.keyboard.press("#");
    await page.waitForURL(/\/inboxes$/);
    expect(await folder()).toBe("trash");
    await page.getByRole("link", { name: "Trash", exact: true }).click();
    await page.getByRole("link", { name: /Throw me away/ }).click();
    await press("Move to inbox");
    await page.getByText("No thread fits this view.").waitFor();
    expect(await folder()).toBe("inbox");
  },
);
