import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import type { Page } from "playwright-core";
import { actionsOn, BROWSER_MS, CHROMIUM, startBrowser, type TestBrowser } from "../support/browser.ts";
import { startService, type TestService } from "../support/service.ts";

setDefaultTimeout(BROWSER_MS);
const browserTest = test.skipIf(CHROMIUM === null);

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

const { see, press } = actionsOn(() => page);
const arrive = (subject: string) =>
  service.call("POST", "/v1/inbound/simulate", { to: "help@inbox.mail.test", subject, text: "Hello" });

browserTest(
  "selected messages are sent again, and those that cannot be stay selected with the reason",
  async () => {
    for (const subject of ["First", "Second"])
      await service.message(
        await service.send({ from: "help@inbox.mail.test", to: "ana@one.test", subject }),
        "delivered",
      );
    await arrive("Received");
    await page.goto(`${service.url}/messages`);
    await see("Received");
    for (const key of ["j", "x", "j", "j", "X"]) await page.keyboard.press(key);
    await see("3 selected");
    await press("Send again");
    await page.getByRole("dialog").getByRole("button", { name: "Send again" }).click();
    await see("2 sent again, 1 not:");
    await see(/Received to .*: It was received, not sent\./);
    await see("1 selected");
    const { body } = await service.call("GET", "/v1/emails?direction=outbound");
    expect(body.data.map(({ subject }: { subject: string }) => subject).sort()).toEqual(
      ["First", "First", "Second", "Second"].sort(),
    );
  },
);

browserTest("selected threads are archived", async () => {
  for (const subject of ["Old one", "Old two", "Stays"]) await arrive(subject);
  await page.goto(`${service.url}/inboxes`);
  for (const subject of ["Old one", "Old two"])
    await page.getByRole("checkbox", { name: `Select ${subject}` }).click();
  await press("Archive");
  await see("2 archived.");
  await page.getByText("Old one").first().waitFor({ state: "detached" });
  await see("Stays");
  const { body } = await service.call("GET", "/v1/threads?archived=true");
  expect(body.data.length).toBe(2);
});

browserTest("selected suppressions are exported as a table without formulas, and lifted", async () => {
  for (const email of ["a@one.test", "b@one.test"])
    await service.call("POST", "/v1/suppressions", { email, note: '=1+1, "x"' });
  await page.goto(`${service.url}/suppressions`);
  await see("a@one.test");
  await page.getByRole("checkbox").first().click();
  await press("Select all shown");
  const [download] = await Promise.all([page.waitForEvent("download"), press("Export selected")]);
  expect(download.suggestedFilename()).toBe("suppressions.csv");
  const [heading, row] = (await Bun.file(await download.path()).text()).split("\r\n");
  expect(heading).toBe("email,reason,note,createdAt,expiresAt");
  expect(row).toStartWith(`b@one.test,manual,"'=1+1, ""x""",`);
  await press("Lift");
  await page.getByRole("dialog").getByRole("button", { name: "Lift" }).click();
  await see("2 lifted.");
  expect((await service.call("GET", "/v1/suppressions")).body.data).toEqual([]);
});
