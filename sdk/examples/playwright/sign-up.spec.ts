import { expect, test as base } from "@playwright/test";
import { startPostrider, type TestService } from "postrider/testing";
import { startApp } from "../app/app.cjs";

const test = base.extend<object, { mail: TestService; app: Awaited<ReturnType<typeof startApp>> }>({
  mail: [
    async ({}, use) => {
      const mail = await startPostrider();
      await use(mail);
      await mail.stop();
    },
    { scope: "worker" },
  ],
  app: [
    async ({ mail }, use) => {
      const app = await startApp({ apiKey: mail.apiKey, baseUrl: mail.url });
      await use(app);
      await app.stop();
    },
    { scope: "worker" },
  ],
});

test("a new user follows the link in the message", async ({ page, mail, app }) => {
  await page.goto(app.url);
  await page.getByLabel("Email").fill("ana@example.com");
  await page.getByRole("button", { name: "Sign up" }).click();
  const message = await mail.waitFor({ to: "ana@example.com" });
  await page.goto(message.links[0]?.url ?? "");
  await expect(page.getByRole("heading")).toHaveText("Welcome, ana@example.com");
});
