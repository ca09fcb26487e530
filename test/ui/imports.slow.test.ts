import { expect } from "bun:test";
import { brokenRules } from "../support/axe.ts";
import { actionsOn, NO_FAULTS } from "../support/browser.ts";
import { until } from "../support/poll.ts";
import { browserTest, dashboard } from "../support/dashboard.ts";

const ui = dashboard({ path: "/contacts" });

const CONTACTS =
  "email,first_name,last_name,unsubscribed,plan\nana@x.test,Ana,Lind,false,pro\nben@x.test,,,true,\nnobody,,,,\n";
const BOUNCES = "EmailAddress,Reason,LastUpdateTime\nold@x.test,BOUNCE,2020-04-10T21:03:05Z\n";

for (const [list, file, form, texts] of [
  [
    "contacts",
    CONTACTS,
    "Resend",
    ["3 rows: 2 new, 0 changed, 0 unchanged, 1 with a fault", "Left out: plan."],
  ],
  ["suppressions", BOUNCES, "Amazon SES", ["1 row: 1 new, 0 changed, 0 unchanged, 0 with a fault"]],
] as const)
  browserTest(
    `a file of ${list} is shown before it is imported, and its results and the list can be saved`,
    async () => {
      const { page } = ui;
      const broken: string[] = [];
      await ui.go(`/${list}`);
      await page.getByRole("link", { name: "Import", exact: true }).click();
      await page
        .getByLabel("File")
        .setInputFiles({ name: "list.csv", mimeType: "text/csv", buffer: Buffer.from(file) });
      for (const text of [`A file of ${form}.`, ...texts]) await page.getByText(text).first().waitFor();
      expect((await ui.service.call("GET", `/v1/${list}`)).body.data).toEqual([]);
      broken.push(...(await brokenRules(page)));
      await page
        .getByRole("dialog")
        .getByRole("button", { name: `Import ${list}` })
        .click();
      await page.getByText("Done").first().waitFor();
      broken.push(...(await brokenRules(page)));
      expect(broken).toEqual([]);
      const [results] = await Promise.all([
        page.waitForEvent("download"),
        page.getByRole("button", { name: "Save results" }).click(),
      ]);
      expect(await Bun.file(await results.path()).text()).toStartWith("row,email,outcome,error\r\n2,");
      await page.getByRole("dialog").getByRole("button", { name: "Close", exact: true }).last().click();
      const [saved] = await Promise.all([
        page.waitForEvent("download"),
        page.getByRole("button", { name: "Export" }).click(),
      ]);
      expect(await Bun.file(await saved.path()).text()).toContain("@x.test");
      expect(ui.visit.faults).toEqual(NO_FAULTS);
    },
  );

browserTest("why the results of an import cannot be saved stays in sight", async () => {
  const { body } = await ui.service.call("POST", "/v1/contacts/import", CONTACTS, {
    headers: { "content-type": "text/csv" },
  });
  await until(async () => (await ui.service.call("GET", `/v1/imports/${body.id}`)).body.status === "done");
  const { page, context } = await ui.browser.visit(ui.service.url, "/livez", { key: ui.service.projectKey });
  await page.clock.install();
  await page.route("**/rows", (route) => route.abort());
  await page.goto(`${ui.service.url}/contacts?import=${body.id}`);
  const { see, press } = actionsOn(() => page);
  await see("Done");
  await press("Save results");
  const problem = page.getByRole("dialog").getByRole("alert");
  await problem.waitFor();
  await page.clock.runFor(5_000);
  expect(await problem.count()).toBe(1);
  await context.close();
});
