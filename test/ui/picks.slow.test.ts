import { expect } from "bun:test";
import { startService } from "../support/service.ts";
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
