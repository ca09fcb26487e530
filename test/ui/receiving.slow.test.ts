import { describe, expect } from "bun:test";
import { brokenPages } from "../support/axe.ts";
import { NO_FAULTS } from "../support/browser.ts";
import { browserTest, dashboard, WIDE } from "../support/dashboard.ts";
import { receivingInboxes } from "../support/service.ts";

let support = "";
const ui = dashboard({
  async prepare() {
    [support = ""] = await receivingInboxes(ui.service, "in.test", ["support@in.test", "sales@in.test"]);
  },
  path: "/",
  viewport: WIDE,
});

const { go, see, press, fill } = ui;
const ask: typeof ui.service.call = (...asked) => ui.service.call(...asked);
const part = (name: string) => ui.page.getByRole("region", { name });
const inDialog = (name: string) =>
  ui.page.getByRole("dialog").getByRole("button", { name, exact: true }).click();

describe("the window of an inbox's senders", () => {
  browserTest("changes whose mail the inbox takes, and says what happens to other mail", async () => {
    await go(`/inboxes/${support}`);
    await ui.page.getByRole("link", { name: "Senders" }).click();
    await see("except of those on a block list");
    await ui.page.getByLabel("Mail from").selectOption({ label: "Senders on the allow list" });
    await see(/gets 550 5\.7\.1 before it is accepted, unless an allow list has its author/);
    await press("Save choice");
    await ui.page.getByRole("button", { name: "Save choice" }).waitFor({ state: "detached" });
    expect((await ask("GET", `/v1/inboxes/${support}`)).body.accept).toBe("allowed");
  });

  browserTest("adds and removes listed senders of the inbox and of the project", async () => {
    const inbox = part("For this inbox");
    await inbox.getByLabel("Address or @domain").fill("nobody");
    await inbox.getByRole("button", { name: "Block sender" }).click();
    await inbox.locator(".field.invalid").waitFor();
    await inbox.getByLabel("Address or @domain").fill("@Example.com");
    await inbox.getByLabel("List").selectOption({ label: "Allow" });
    await inbox.getByRole("button", { name: "Allow sender" }).click();
    await inbox.getByText("@example.com", { exact: true }).waitFor();
    const project = part("For all inboxes of the project");
    await project.getByLabel("Address or @domain").fill("mallory@evil.example");
    await project.getByLabel("Address or @domain").press("Enter");
    await project.getByText("mallory@evil.example").waitFor();
    const listed = async (path: string) =>
      (await ask("GET", path)).body.data.map(({ pattern, list }: Record<string, string>) => [pattern, list]);
    expect(await listed(`/v1/inboxes/${support}/senders`)).toEqual([["@example.com", "allow"]]);
    expect(await listed("/v1/inbound/senders")).toEqual([["mallory@evil.example", "block"]]);
    await project.getByRole("button", { name: "Remove mallory@evil.example" }).click();
    await project.getByText("No sender is listed.").waitFor();
    expect(await listed("/v1/inbound/senders")).toEqual([]);
  });
});

browserTest("the form of a key lets it see some inboxes alone, which its page names", async () => {
  await go("/keys?create=1");
  await fill("Name", "Support agent");
  await ui.page.getByText("Sees only some inboxes").click();
  expect(await ui.page.getByRole("button", { name: "Create key" }).isDisabled()).toBe(true);
  await ui.page.getByLabel("support@in.test").check();
  await inDialog("Create key");
  await press("I have stored it");
  await ui.page.locator(".facts").getByText("support@in.test").waitFor();
  const { body } = await ui.service.call("GET", "/v1/api-keys", undefined, { key: ui.service.accountKey });
  const made = body.data.find(({ name }: { name: string }) => name === "Support agent");
  expect(made.inboxIds).toEqual([support]);
});

describe("on the pages of receiving", () => {
  browserTest("WCAG AA holds, light and dark, wide and narrow", async () => {
    const { page, context } = await ui.browser.visit(ui.service.url, "/", { key: ui.service.accountKey });
    const broken = await brokenPages(page, ui.service.url, [
      [`/inboxes/${support}?senders=1`, "@example.com"],
    ]);
    expect(broken).toEqual([]);
    await context.close();
  });

  browserTest("no other origin is asked, and the Content-Security-Policy holds", () => {
    expect(ui.visit.faults).toEqual(NO_FAULTS);
  });
});
