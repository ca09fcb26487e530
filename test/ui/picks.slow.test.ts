import { expect } from "bun:test";
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
const { see, press } = ui;
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
    const shown = async () => (await ui.service.call("GET", `/v1/threads/${threadId}`)).body;
    const member = await ui.service.call(
      "POST",
      "/v1/members",
      { email: "otto@example.com", role: "support" },
      { key: ui.service.accountKey },
    );
    const visit = await ui.browser.visit(ui.service.url, `/threads/${threadId}`, {
      key: ui.service.accountKey,
      viewport: WIDE,
    });
    const { page } = visit;
    const { see } = actionsOn(() => page);
    const done = (text: string) => page.locator(".undo", { hasText: text }).waitFor();
    const keys = async (...names: string[]) => {
      for (const name of names) await page.keyboard.press(name);
    };
    await page.getByPlaceholder("Write a reply").waitFor();
    await keys("l", ..."billing", "Enter");
    await done("Labelled billing.");
    await keys("i", ..."otto", "Enter");
    await done("Assigned to otto@example.com.");
    expect(await shown()).toMatchObject({ labels: ["billing"], assigneeId: member.body.id });
    await keys("z");
    await page.getByText("Assigned to otto", { exact: true }).waitFor({ state: "detached" });
    expect(await shown()).toMatchObject({ labels: ["billing"], assigneeId: null });
    await keys("b", ..."tomorrow", "Enter");
    await page.waitForURL(/\/inboxes$/);
    expect(await shown()).toMatchObject({ folder: "snoozed" });
    await done("Snoozed until");
    await keys("z");
    await page.getByRole("link", { name: /Work on me/ }).waitFor();
    expect(await shown()).toMatchObject({ folder: "inbox", labels: ["billing"] });
    await page.getByLabel("Label", { exact: true }).selectOption("billing");
    await page.waitForURL(/label=billing/);
    await keys("Escape", "j", "Enter");
    await page.waitForURL(/\/threads\//);
    await keys("e");
    await see("No thread fits this view.");
    expect(await shown()).toMatchObject({ archived: true });
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
