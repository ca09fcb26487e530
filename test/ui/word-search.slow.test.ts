import { expect } from "bun:test";
import { until } from "../support/poll.ts";
import { startService } from "../support/service.ts";
import { browserTest, dashboard, WIDE } from "../support/dashboard.ts";

const ui = dashboard({
  start: () => startService({ DELIVERY: "capture" }),
  async prepare() {
    const to = "help@inbox.mail.test";
    await ui.service.call("POST", "/v1/inboxes", { address: to });
    const arrive = (subject: string, text: string) =>
      ui.service.call("POST", "/v1/inbound/simulate", { to, subject, text });
    for (const subject of ["Where is it", "Lamp"])
      await arrive(subject, "The <b>parcel</b> with the lamp has not come.");
    await arrive("Other", "Hi");
    await until(async () => (await ui.service.call("GET", "/v1/emails?text=parcel")).body.data.length === 2);
  },
  path: "/messages",
  as: "projectKey",
  viewport: WIDE,
});

const { see } = ui;

browserTest("words that no message has leave a list of threads that says so", async () => {
  await ui.go("/inboxes?text=umbrella");
  await see("No thread fits this view.");
});

for (const [path, label] of [
  ["/messages", "Search messages"],
  ["/inboxes", "Search threads"],
] as const)
  browserTest(`${path} finds words in messages and marks them as plain text`, async () => {
    await ui.go(`${path}`);
    await see("Other");
    await ui.page.getByLabel("Search in").selectOption("words");
    await ui.page.keyboard.press("/");
    await ui.page.getByLabel(label).fill("parcel LAMP");
    await ui.page.locator("mark").nth(3).waitFor();
    expect(await ui.page.locator("mark").allTextContents()).toEqual(["parcel", "lamp", "parcel", "lamp"]);
    expect(await ui.page.locator(".marked").first().textContent()).toContain(
      "The <b>parcel</b> with the lamp",
    );
    expect(new URL(ui.page.url()).searchParams.get("text")).toBe("parcel LAMP");
    expect(await ui.page.getByText("Other", { exact: true }).count()).toBe(0);
    await ui.page.getByLabel("Search in").selectOption("names");
    await ui.page.getByLabel(label).fill("other");
    await see("Other");
  });
