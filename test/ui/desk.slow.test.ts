import { expect, test } from "bun:test";
import { deliveredRecord } from "../support/mail-in.ts";
import { receivingInboxes, SERVICE_DOMAIN, startService } from "../support/service.ts";
import { COMPLETE_CHROMIUM, NO_FAULTS, startBrowser } from "../support/browser.ts";
import { browserTest, dashboard, WIDE } from "../support/dashboard.ts";

/** A red pixel. */
const PNG =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";

/** One page that says so. */
const PDF = `%PDF-1.4
1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj
2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj
3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 300 200]>>endobj
trailer<</Size 4/Root 1 0 R>>
%%EOF`;

const ui = dashboard({
  start: () => startService({ DELIVERY: "capture" }),
  prepare: () => ui.service.call("POST", "/v1/inboxes", { address: "help@inbox.mail.test" }),
  path: "/messages",
  as: "projectKey",
  viewport: WIDE,
});
const { see, press, fill } = ui;

browserTest(
  "a received message shows the sender's name in the list, and the address in the conversation",
  async () => {
    const { body } = await ui.service.call("POST", "/v1/inbound/simulate", {
      to: "help@inbox.mail.test",
      from: { email: `ana@${"bank.".repeat(20)}forged.test`, name: "Ana Lima" },
      subject: "Where is it?",
      text: "Where is my order?",
    });
    await ui.go("/messages");
    const row = ui.page.getByRole("link", { name: /Where is it/ }).first();
    await row.waitFor();
    expect(await row.textContent()).toContain("Ana Lima ana@bank.");
    expect(await ui.page.locator(".list-heads").textContent()).toBe("StatusAddressSubjectAge");
    await ui.go(`/threads/${body.threadId}`);
    await see("forged.test");
    // A cut would hide the end, which is the domain that counts.
    const address = ui.page.locator(".letter .address");
    expect(await address.evaluate((shown) => shown.scrollWidth - shown.clientWidth)).toBeLessThanOrEqual(0);
  },
);

browserTest("an attached picture is shown, and other files are not", async () => {
  const id = await ui.service.send({
    from: { email: "help@inbox.mail.test" },
    to: "ana@one.test",
    attachments: [
      { filename: "red.png", content: PNG, contentType: "image/png" },
      { filename: "red.svg", content: btoa("<svg/>"), contentType: "image/svg+xml" },
    ],
  });
  await ui.go(`/messages/${id}?tab=attachments`);
  const picture = ui.page.getByRole("img", { name: "red.png" });
  await picture.waitFor();
  expect(
    await picture.evaluate(
      (image) => (image as unknown as { decode(): Promise<void>; naturalWidth: number }).naturalWidth,
    ),
  ).toBe(1);
  expect(await ui.page.getByRole("img", { name: "red.svg" }).count()).toBe(0);
});

test.skipIf(COMPLETE_CHROMIUM === null)(
  "an attached PDF file opens in a frame when the reader asks for it",
  async () => {
    const id = await ui.service.send({
      from: { email: "help@inbox.mail.test" },
      to: "ana@one.test",
      attachments: [{ filename: "bill.pdf", content: btoa(PDF), contentType: "application/pdf" }],
    });
    const browser = await startBrowser(COMPLETE_CHROMIUM);
    const key = ui.service.projectKey;
    const { page, faults } = await browser.visit(ui.service.url, `/messages/${id}?tab=attachments`, { key });
    const frame = page.locator("iframe[title='Preview of bill.pdf']");
    expect(await frame.count()).toBe(0);
    const answered = page.waitForResponse(/inline=1/);
    await page.getByRole("button", { name: "Preview" }).click();
    expect((await answered).headers()["content-disposition"]).toStartWith("inline");
    await frame.waitFor();
    expect(faults).toEqual(NO_FAULTS);
    await browser.close();
  },
);

browserTest("the first steps go once they are done, and stay away", async () => {
  const wide = (path: string, body: object) =>
    ui.service.call("POST", path, body, { key: ui.service.accountKey });
  const senderId = (await wide("/v1/senders", { name: "New" })).body.id;
  const keyOf = async (more: object) =>
    (await wide("/v1/api-keys", { name: "steps", senderId, ...more })).body.secret;
  const key = await keyOf({});
  const [inboxId] = await receivingInboxes(ui.service, "steps.test", ["new@steps.test"], key);
  const reader = await keyOf({ scopes: ["emails:read", "inboxes:write"] });
  const { page, context } = await ui.browser.visit(ui.service.url, "/", { key: reader });
  const steps = page.getByRole("region", { name: "First steps" });
  await steps.getByText("0 of 1").waitFor();
  await ui.service.call("POST", "/v1/inbound/simulate", { inboxId, text: "Hi" }, { key });
  await steps.waitFor({ state: "detached" });
  await page.reload();
  await page.getByRole("region", { name: "Recent trouble" }).waitFor();
  expect(await steps.count()).toBe(0);
  await context.close();
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
  const { threadId } = await deliveredRecord(ui.service, {
    to: "help@inbox.mail.test",
    headers: ["From: Ben <ben@ben.test>", "Subject: Lunch?", "Content-Type: text/calendar"],
    body: event.join("\r\n"),
  });
  await ui.go(`/threads/${threadId}`);
  await see("2026-12-01, 12:00 (Europe/Berlin)");
  await see("(no text)");
  await ui.page.getByRole("button", { name: "Accept", exact: true }).click();
  await see("Accepted: Lunch");
  const { messages } = (await ui.service.call("GET", `/v1/threads/${threadId}`)).body;
  expect(messages[1]).toMatchObject({ direction: "outbound", to: ["ben@ben.test"] });
});

browserTest("the filter of the last 24 hours can be removed", async () => {
  await ui.go("/messages");
  await ui.page.locator("summary").getByText("Filter").click();
  await ui.page.getByRole("button", { name: "Last 24 hours" }).click();
  await ui.page.waitForURL(/after=/);
  await see("Where is it?");
  await ui.page.getByRole("link", { name: /Remove Not before/ }).click();
  await ui.page.waitForURL((url) => !url.search.includes("after"));
  expect(await ui.page.getByText("Where is it?").count()).toBeGreaterThan(0);
});

browserTest("a subject begins at its own side, and the recipients beyond the eighth open", async () => {
  const subject = "ברוכים הבאים";
  const to = Array.from({ length: 20 }, (_, at) => `p${at}@one.test`);
  const id = await ui.service.send({ from: "help@inbox.mail.test", to, subject });
  await ui.go(`/messages/${id}`);
  const heading = ui.page.getByRole("heading", { name: subject });
  await heading.waitFor();
  expect(await ui.page.evaluate("getComputedStyle(document.querySelector('.detail h2')).direction")).toBe(
    "rtl",
  );
  const last = ui.page.locator(".address", { hasText: "p19@one.test" });
  expect(await last.isVisible()).toBe(false);
  await ui.page.getByText("and 12 more").click();
  await last.waitFor();
});

browserTest("Home shows the figures of the span before", async () => {
  await ui.go("/");
  await see("0 before");
});

browserTest(
  "Live begins with the events of before it was opened, each once and the newest first",
  async () => {
    const first = await ui.service.send({
      from: "help@inbox.mail.test",
      to: "old@one.test",
      subject: "Before",
    });
    await ui.service.message(first, "delivered");
    await ui.go("/live");
    const rows = ui.page.locator(`.tail .row[href="/messages/${first}"]`);
    await rows.nth(3).waitFor();
    await ui.service.send({ from: "help@inbox.mail.test", to: "new@one.test", subject: "After" });
    await see("new@one.test");
    await ui.go("/messages");
    await ui.go("/live");
    await rows.nth(3).waitFor();
    expect(await rows.count()).toBe(4);
    const times = await ui.page
      .locator(".tail time")
      .evaluateAll((all) => all.map((one) => one.getAttribute("datetime")));
    expect(times).toEqual([...times].sort().reverse());
  },
);

browserTest("a bounced message says that its address is suppressed now, and lifts that", async () => {
  const to = `bounced@simulator.${SERVICE_DOMAIN}`;
  const id = await ui.service.send({ from: "help@inbox.mail.test", to, subject: "No such person" });
  await ui.service.message(id, "bounced");
  await ui.service.call("POST", "/v1/suppressions", { email: to });
  await ui.go(`/messages/${id}`);
  await see("is suppressed now: it gets no more mail.");
  await press("Lift the suppression");
  await press("Lift suppression");
  await ui.page.getByText("is suppressed now").waitFor({ state: "detached" });
  expect((await ui.service.call("GET", `/v1/suppressions?email=${to}`)).body.data).toEqual([]);
});

browserTest(
  "a message and a thread that their lists lack are shown above them while they are open",
  async () => {
    const id = await ui.service.send({
      from: "help@inbox.mail.test",
      to: "ana@one.test",
      subject: "Elsewhere",
    });
    await ui.go(`/messages/${id}?status=failed`);
    await ui.page.locator(".pinned", { hasText: "Elsewhere" }).waitFor();
    await ui.go(`/messages/${id}`);
    await ui.page.locator(`.rows [data-row="${id}"]`).waitFor();
    expect(await ui.page.locator(".pinned").count()).toBe(0);
    const { body } = await ui.service.call("GET", "/v1/threads?limit=1");
    const [thread] = body.data;
    await ui.go(`/threads/${thread.id}?view=archived`);
    await ui.page.locator(".pinned", { hasText: thread.subject }).waitFor();
  },
);

browserTest("a filter is saved under a name, applied, and forgotten", async () => {
  await ui.go("/messages?status=delivered&tag=campaign:spring&q=x");
  await ui.page.locator("summary").getByText("Filter").click();
  await fill("Name of this filter", "Spring");
  await ui.page.keyboard.press("Enter");
  await ui.go("/messages");
  await ui.page.locator("summary").getByText("Filter").click();
  await ui.page.getByRole("link", { name: "Spring", exact: true }).click();
  await ui.page.waitForURL(/tag=campaign/);
  expect(Object.fromEntries(new URL(ui.page.url()).searchParams)).toEqual({
    status: "delivered",
    q: "x",
    tag: "campaign:spring",
  });
  await ui.page.locator("summary").getByText("Filter").click();
  await press("Forget Spring");
  expect(await ui.page.getByRole("link", { name: "Spring", exact: true }).count()).toBe(0);
});

browserTest(
  "a conversation goes to the trash by a key, is listed there with its notes, and comes back",
  async () => {
    const { body } = await ui.service.call("POST", "/v1/inbound/simulate", {
      to: "help@inbox.mail.test",
      subject: "Throw me away",
      text: "Hi",
    });
    await ui.service.call("POST", `/v1/threads/${body.threadId}/notes`, { text: "Nothing to keep" });
    const folder = async () => (await ui.service.call("GET", `/v1/threads/${body.threadId}`)).body.folder;
    await ui.go(`/threads/${body.threadId}`);
    await see("Nothing to keep");
    await ui.page.keyboard.press("#");
    await ui.page.waitForURL(/\/inboxes$/);
    expect(await folder()).toBe("trash");
    await ui.page.getByRole("link", { name: "Trash", exact: true }).click();
    await ui.page.getByRole("link", { name: /Throw me away/ }).click();
    await press("Move to inbox");
    await ui.page.getByText("No thread fits this view.").waitFor();
    expect(await folder()).toBe("inbox");
  },
);
