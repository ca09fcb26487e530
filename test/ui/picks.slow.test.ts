import { expect } from "bun:test";
import { brokenRules } from "../support/axe.ts";
import { deliveredRecord } from "../support/mail-in.ts";
import { until } from "../support/poll.ts";
import { startService } from "../support/service.ts";
import { actionsOn, NO_FAULTS } from "../support/browser.ts";
import { browserTest, dashboard, WIDE } from "../support/dashboard.ts";

const ui = dashboard({
  start: () => startService({ DELIVERY: "capture" }),
  prepare: () => ui.service.call("POST", "/v1/inboxes", { address: "help@inbox.mail.test" }),
  path: "/messages",
  as: "projectKey",
  viewport: WIDE,
});
const { see, press, fill } = ui;
const arrive = (subject: string) =>
  ui.service.call("POST", "/v1/inbound/simulate", { to: "help@inbox.mail.test", subject, text: "Hello" });
const arrivedThread = async (subject: string): Promise<string> => (await arrive(subject)).body.threadId;

browserTest(
  "selected messages are sent again, and those that cannot be stay selected with the reason",
  async () => {
    for (const subject of ["First", "Second"])
      await ui.service.message(
        await ui.service.send({ from: "help@inbox.mail.test", to: "ana@one.test", subject }),
        "delivered",
      );
    await arrive("Received");
    await ui.go("/messages");
    await see("Received");
    for (const key of ["j", "x", "j", "j", "X"]) await ui.page.keyboard.press(key);
    await see("3 selected");
    await press("Send again");
    await ui.page.getByRole("dialog").getByRole("button", { name: "Send again" }).click();
    await see("2 sent again, 1 not:");
    await see(/Received to .*: It was received, not sent\./);
    await see("1 selected");
    const { body } = await ui.service.call("GET", "/v1/emails?direction=outbound");
    expect(body.data.map(({ subject }: { subject: string }) => subject).sort()).toEqual(
      ["First", "First", "Second", "Second"].sort(),
    );
  },
);

browserTest("selected threads are archived", async () => {
  for (const subject of ["Old one", "Old two", "Stays"]) await arrive(subject);
  await ui.go("/inboxes");
  for (const subject of ["Old one", "Old two"])
    await ui.page.getByRole("checkbox", { name: `Select ${subject}` }).click();
  await press("Archive");
  await see("2 archived.");
  await ui.page.getByText("Old one").first().waitFor({ state: "detached" });
  await see("Stays");
  const { body } = await ui.service.call("GET", "/v1/threads?archived=true");
  expect(body.data.length).toBe(2);
});

browserTest("selected suppressions are exported as a table without formulas, and lifted", async () => {
  for (const email of ["a@one.test", "b@one.test"])
    await ui.service.call("POST", "/v1/suppressions", { email, note: '=1+1, "x"' });
  await ui.go("/suppressions");
  await see("a@one.test");
  await ui.page.getByRole("checkbox").first().click();
  await press("Select all shown");
  const [download] = await Promise.all([ui.page.waitForEvent("download"), press("Export selected")]);
  expect(download.suggestedFilename()).toBe("suppressions.csv");
  const [heading, row] = (await Bun.file(await download.path()).text()).split("\r\n");
  expect(heading).toBe("email,reason,note,createdAt,expiresAt");
  expect(row).toStartWith(`b@one.test,manual,"'=1+1, ""x""",`);
  await press("Lift");
  await ui.page.getByRole("dialog").getByRole("button", { name: "Lift" }).click();
  await see("2 lifted.");
  expect((await ui.service.call("GET", "/v1/suppressions")).body.data).toEqual([]);
});

browserTest(
  "a conversation is labelled, assigned, snoozed and archived by keys, and each can be undone",
  async () => {
    const threadId = await arrivedThread("Work on me");
    const becomes = (wanted: object) =>
      until(async () =>
        Bun.deepMatch(wanted, (await ui.service.call("GET", `/v1/threads/${threadId}`)).body),
      );
    const member = await ui.service.call(
      "POST",
      "/v1/members",
      { email: "otto@example.com", role: "support" },
      { key: ui.service.accountKey },
    );
    const visit = await ui.browser.visit(ui.service.url, "/inboxes", {
      key: ui.service.accountKey,
      viewport: WIDE,
    });
    const { page } = visit;
    const { see } = actionsOn(() => page);
    // It is being marked as read when the first key comes.
    const [marking, read] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    await page.route(`**/v1/threads/${threadId}`, async (route) => {
      if (route.request().method() === "PATCH") {
        marking.resolve();
        await read.promise;
      }
      await route.continue();
    });
    await page.getByRole("link", { name: /Work on me/ }).click();
    const done = (text: string) => page.locator(".undo", { hasText: text }).waitFor();
    const keys = async (...names: string[]) => {
      for (const name of names) await page.keyboard.press(name);
    };
    await page.getByPlaceholder("Write a reply").waitFor();
    await marking.promise;
    await keys("l", ..."billing", "Enter");
    read.resolve();
    await done("Labelled billing.");
    await keys("i", ..."otto", "Enter");
    await done("Assigned to otto@example.com.");
    await becomes({ labels: ["billing"], assigneeId: member.body.id });
    await keys("z");
    await page.getByText("Assigned to otto", { exact: true }).waitFor({ state: "detached" });
    await becomes({ labels: ["billing"], assigneeId: null });
    await keys("b", ..."tomorrow", "Enter");
    await page.waitForURL(/\/inboxes$/);
    await becomes({ folder: "snoozed" });
    await done("Snoozed until");
    await keys("z");
    await page.getByRole("link", { name: /Work on me/ }).waitFor();
    await becomes({ folder: "inbox", labels: ["billing"] });
    const filtered = page.waitForResponse(/\/v1\/threads\?.*label=billing/);
    await page.getByLabel("Label", { exact: true }).selectOption("billing");
    await page.waitForURL(/label=billing/);
    await (await filtered).finished();
    // The keys act on what is known of the conversation, even before it is read again.
    const archived = Promise.withResolvers<void>();
    await page.route(`**/v1/threads/${threadId}`, async (route) => {
      if (route.request().method() === "GET") await archived.promise;
      await route.continue();
    });
    const row = page.locator(".row", { hasText: "Work on me" });
    // The rows of the filter take the place of those before, and the focus goes with those.
    await until(async () => {
      await row.press("Enter");
      return /\/threads\//.test(page.url());
    });
    await page.locator(".detail h2", { hasText: "Work on me" }).waitFor();
    await keys("e");
    await see("No thread fits this view.");
    await becomes({ archived: true });
    archived.resolve();
    expect(visit.faults).toEqual(NO_FAULTS);
    await visit.context.close();
  },
);

browserTest(
  "selected threads are labelled and put into the trash by keys, and brought back at once",
  async () => {
    const ids = [await arrivedThread("Twin one"), await arrivedThread("Twin two")];
    const all = (query: string) =>
      ui.service
        .call("GET", `/v1/threads?${query}`)
        .then(({ body }) => body.data.map(({ id }: { id: string }) => id));
    await ui.go("/inboxes?q=Twin");
    await see("Twin two");
    const keys = async (...names: string[]) => {
      for (const name of names) await ui.page.keyboard.press(name);
    };
    await keys("j", "x", "j", "x", "l", ..."pair", "Enter");
    await see("2 labelled pair.");
    expect((await all("label=pair")).sort()).toEqual([...ids].sort());
    await keys("x", "k", "x", "#");
    await see("2 moved to trash.");
    expect((await all("folder=trash&label=pair")).length).toBe(2);
    await keys("z");
    await see("Twin two");
    expect((await all("label=pair")).length).toBe(2);
  },
);

browserTest(
  "a reply to all shows its recipients, is saved as a draft, and can be taken back after it was sent",
  async () => {
    const { threadId } = await deliveredRecord(ui.service, {
      to: "help@inbox.mail.test",
      headers: [
        "From: Ana <ana@one.test>",
        "To: help@inbox.mail.test",
        "Cc: bea@one.test",
        "Subject: To all",
      ],
    });
    const [{ id: inboxId }] = (await ui.service.call("GET", "/v1/inboxes")).body.data;
    await ui.service.call("PATCH", `/v1/inboxes/${inboxId}`, { signature: "Mia, Acme" });
    await ui.go(`/threads/${threadId}`);
    const box = ui.page.getByPlaceholder("Write a reply");
    await box.waitFor();
    await see("Mia, Acme");
    const drafts = async () =>
      (await ui.service.call("GET", `/v1/drafts?threadId=${threadId}`)).body.data as { id: string }[];
    await ui.page.keyboard.press("a");
    await ui.page.keyboard.type("First try");
    await see("Draft saved");
    expect(await ui.page.getByLabel("Cc", { exact: true }).inputValue()).toBe("bea@one.test");
    const [draft] = await drafts();
    expect((await ui.service.call("GET", `/v1/drafts/${draft?.id}`)).body).toMatchObject({
      text: "First try",
      cc: [{ email: "bea@one.test" }],
    });
    await ui.page.keyboard.press("Control+Enter");
    await see("Leaves in 10 seconds");
    expect(await drafts()).toEqual([]);
    await ui.page.keyboard.press("z");
    await see("Taken back");
    expect(await box.inputValue()).toBe("First try");
    await see("Draft saved");
    // The tab is closed, and another one continues.
    const other = await ui.browser.visit(ui.service.url, `/threads/${threadId}`, {
      key: ui.service.projectKey,
    });
    const there = other.page.getByPlaceholder("Write a reply");
    await other.page.getByText("Draft saved").waitFor();
    expect(await there.inputValue()).toBe("First try");
    await there.fill("Second try");
    await other.page.getByText("Not saved yet").waitFor({ state: "detached" });
    await other.page.getByText("Draft saved").waitFor();
    await box.fill("Third try");
    await see("Another window has changed this draft");
    await press("Keep mine as a new draft");
    await see("Draft saved");
    expect(await drafts()).toHaveLength(2);
    await press("Send reply");
    await see("Leaves in 10 seconds");
    const { messages } = (await ui.service.call("GET", `/v1/threads/${threadId}`)).body;
    expect(messages.at(-1)).toMatchObject({
      to: ["ana@one.test"],
      addresses: { cc: [{ email: "bea@one.test" }] },
    });
    expect(messages.at(-1).text).toStartWith("Third try\n\n-- \nMia, Acme\n\nOn ");
    // Both what was done last and the send before it can be undone.
    await ui.page.keyboard.press("e");
    await see("Archived.");
    await ui.page.keyboard.press("z");
    await ui.page.getByText("Archived.").waitFor({ state: "detached" });
    await ui.page.keyboard.press("z");
    await ui.page.getByText("Leaves in 10 seconds").waitFor({ state: "detached" });
    const after = (await ui.service.call("GET", `/v1/threads/${threadId}`)).body;
    expect(after).toMatchObject({ archived: false });
    expect(after.messages.at(-1)).toMatchObject({
      status: "failed",
      recipients: [{ reason: "canceled" }, {}],
    });
    await other.context.close();
  },
);

browserTest(
  "a program's draft is sent by a person as it is, and a note, a canned reply and a forward are written",
  async () => {
    const threadId = await arrivedThread("Proposed");
    const { senderId } = (await ui.service.call("GET", "/v1/threads?limit=1")).body.data[0];
    const bot = await ui.service.call(
      "POST",
      "/v1/api-keys",
      { name: "bot", scopes: ["drafts:write"], senderId },
      { key: ui.service.accountKey },
    );
    const propose = (draft: object) => ui.service.call("POST", "/v1/drafts", draft, { key: bot.body.secret });
    const letter = { from: "help@inbox.mail.test", to: "ben@one.test", subject: "News", text: "We moved" };
    await propose(letter);
    await ui.service.call("POST", "/v1/templates", {
      name: "Late",
      slug: "late",
      subject: "s",
      text: "Order {{ order }} is late.",
    });
    await ui.go("/inboxes?view=drafts");
    await ui.page.getByRole("link", { name: /News/ }).click();
    await see("proposes this message");
    await press("Send draft");
    await see("Leaves in 10 seconds");
    // The draft of the test before may still be there.
    await ui.page.getByRole("link", { name: /News/ }).waitFor({ state: "detached" });
    await propose({ threadId, text: "I can help" });
    await ui.page.getByRole("link", { name: /bot.*Proposed/ }).click();
    await see("proposes this reply");
    const keys = async (...names: string[]) => {
      for (const name of names) await ui.page.keyboard.press(name);
    };
    const shown = async () => (await ui.service.call("GET", `/v1/threads/${threadId}`)).body;
    await keys("d", "Enter");
    await ui.page.getByText("proposes this reply").waitFor({ state: "detached" });
    expect((await shown()).messages.at(-1).text).toBe("I can help");
    await keys("n");
    await ui.page.keyboard.type("Call her");
    await keys("Control+Enter");
    await ui.page.locator(".note", { hasText: "Call her" }).waitFor();
    await keys("t", ..."late", "Enter");
    await fill("order", "7");
    await keys("Enter");
    const box = ui.page.getByPlaceholder("Write a reply");
    await box.waitFor();
    expect(await box.inputValue()).toBe("Order 7 is late.");
    expect(await brokenRules(ui.page)).toEqual([]);
    await keys("Escape", "f");
    await fill("Forward to", "ben@one.test");
    await keys("Control+Enter");
    await see("Leaves in 10 seconds: to ben@one.test.");
    expect((await shown()).messages.at(-1)).toMatchObject({ to: ["ben@one.test"], subject: "Fwd: Proposed" });
    expect(await brokenRules(ui.page)).toEqual([]);
  },
);

browserTest(
  "a conversation and the views break no rule of accessibility on a phone in the dark",
  async () => {
    const threadId = await arrivedThread("On a phone");
    await ui.service.call("PATCH", `/v1/threads/${threadId}`, { labels: ["small"] });
    const looks = { viewport: { width: 390, height: 844 }, colorScheme: "dark" as const };
    const visit = await ui.browser.visit(ui.service.url, `/threads/${threadId}`, {
      key: ui.service.projectKey,
      ...looks,
    });
    await visit.page.getByPlaceholder("Write a reply").waitFor();
    expect(await brokenRules(visit.page)).toEqual([]);
    await visit.page.getByRole("button", { name: "Snooze" }).click();
    await visit.page.getByRole("option", { name: "Tomorrow" }).waitFor();
    expect(await brokenRules(visit.page)).toEqual([]);
    await visit.page.goto(`${ui.service.url}/inboxes?view=drafts`);
    // The last of the views, which are wider than a phone.
    const { x = 0, width = 0 } = (await visit.page.getByRole("link", { name: "Drafts" }).boundingBox()) ?? {};
    expect(x).toBeGreaterThan(0);
    expect(Math.floor(x + width)).toBeLessThanOrEqual(looks.viewport.width);
    expect(await brokenRules(visit.page)).toEqual([]);
    expect([visit.faults, ui.visit.faults]).toEqual([NO_FAULTS, NO_FAULTS]);
    await visit.context.close();
  },
);
