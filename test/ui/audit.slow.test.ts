import { expect } from "bun:test";
import { brokenPages } from "../support/axe.ts";
import { browserTest, dashboard, WIDE } from "../support/dashboard.ts";

/** A value that is longer than a line of the page. */
const AGAIN = `Hello again${" and again".repeat(30)}`;

const ui = dashboard({
  async prepare() {
    const { body } = await ui.service.call("POST", "/v1/templates", {
      slug: "welcome",
      name: "Welcome",
      subject: "Hello",
      text: "x",
    });
    await ui.service.call("PATCH", `/v1/templates/${body.id}`, { subject: AGAIN });
  },
  path: "/audit",
  viewport: WIDE,
});
const { see } = ui;

browserTest("the audit log shows who changed what, and a change its fields before and after", async () => {
  await see("Template created");
  await ui.page.getByText("Template updated").first().click();
  const row = ui.page.getByRole("row", { name: /subject/ });
  await row.waitFor();
  expect(await row.getByRole("cell").allTextContents()).toEqual(["Hello", AGAIN]);
  const { x = 0, width = 0 } = (await row.boundingBox()) ?? {};
  expect(x + width).toBeLessThanOrEqual(WIDE.width);
});

browserTest("the audit log is filtered by who made the change, and by what changed", async () => {
  await ui.go("/audit");
  await ui.page.getByRole("link", { name: "The service" }).click();
  await ui.page.getByText("Template created").first().waitFor({ state: "detached" });
  await ui.go("/audit?target=template");
  await see("Template created");
  expect(await ui.page.getByText("Project created").count()).toBe(0);
});

browserTest("WCAG AA holds on the audit log, light and dark, wide and narrow", async () => {
  const { page: other, context } = await ui.browser.visit(ui.service.url, "/", {
    key: ui.service.accountKey,
  });
  const { body } = await ui.service.call("GET", "/v1/audit-log?action=template.update", undefined, {
    key: ui.service.accountKey,
  });
  const broken = await brokenPages(other, ui.service.url, [
    ["/audit", "Template created"],
    [`/audit/${body.data[0].id}`, "Hello again"],
  ]);
  expect(broken).toEqual([]);
  await context.close();
});
