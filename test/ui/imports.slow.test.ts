import { expect } from "bun:test";
import { NO_FAULTS, type Visit } from "../support/browser.ts";
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
      const { page } = ui.visit;
      await page.goto(`${ui.service.url}/${list}`);
      await page.getByRole("link", { name: "Import", exact: true }).click();
      await page
        .getByLabel("File")
        .setInputFiles({ name: "list.csv", mimeType: "text/csv", buffer: Buffer.from(file) });
      for (const text of [`A file of ${form}.`, ...texts]) await page.getByText(text).first().waitFor();
      if (process.env.SHOTS !== undefined) await shots(ui.visit, `import-${list}`);
      expect((await ui.service.call("GET", `/v1/${list}`)).body.data).toEqual([]);
      await page
        .getByRole("dialog")
        .getByRole("button", { name: `Import ${list}` })
        .click();
      await page.getByText("Done").first().waitFor();
      if (process.env.SHOTS !== undefined) await shots(ui.visit, `import-${list}-done`);
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

async function shots({ page }: Visit, name: string): Promise<void> {
  for (const [as, colorScheme, width] of [
    ["light", "light", 1280],
    ["dark", "dark", 1280],
    ["phone", "light", 390],
  ] as const) {
    await page.emulateMedia({ colorScheme });
    await page.setViewportSize({ width, height: 800 });
    await page.screenshot({ path: `/tmp/shots/${name}-${as}.png` });
  }
  await page.emulateMedia({ colorScheme: "light" });
  await page.setViewportSize({ width: 1280, height: 800 });
}
