import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import {
  BROWSER_MS,
  CHROMIUM,
  NO_FAULTS,
  startBrowser,
  type TestBrowser,
  type Visit,
} from "../support/browser.ts";
import { startService, type TestService } from "../support/service.ts";

setDefaultTimeout(BROWSER_MS);
const browserTest = test.skipIf(CHROMIUM === null);

let service: TestService;
let browser: TestBrowser;
let visit: Visit;
beforeAll(async () => {
  if (CHROMIUM === null) return;
  [service, browser] = await Promise.all([startService({}), startBrowser()]);
  visit = await browser.visit(service.url, "/contacts", {
    key: service.accountKey,
    viewport: { width: 1280, height: 800 },
  });
});
afterAll(async () => {
  await browser?.close();
  await service?.stop();
});

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
      const { page } = visit;
      await page.goto(`${service.url}/${list}`);
      await page.getByRole("link", { name: "Import", exact: true }).click();
      await page
        .getByLabel("File")
        .setInputFiles({ name: "list.csv", mimeType: "text/csv", buffer: Buffer.from(file) });
      for (const text of [`A file of ${form}.`, ...texts]) await page.getByText(text).first().waitFor();
      if (process.env.SHOTS !== undefined) await shots(visit, `import-${list}`);
      expect((await service.call("GET", `/v1/${list}`)).body.data).toEqual([]);
      await page
        .getByRole("dialog")
        .getByRole("button", { name: `Import ${list}` })
        .click();
      await page.getByText("Done").first().waitFor();
      if (process.env.SHOTS !== undefined) await shots(visit, `import-${list}-done`);
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
      expect(visit.faults).toEqual(NO_FAULTS);
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
