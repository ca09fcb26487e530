import { describe, expect } from "bun:test";
import { newId } from "../../src/core/ids.ts";
import { raiseNotice } from "../../src/store/notices/notices.ts";
import { brokenPages } from "../support/axe.ts";
import { NO_FAULTS } from "../support/browser.ts";
import { browserTest, dashboard, WIDE } from "../support/dashboard.ts";
import { deliver } from "../support/mail-in.ts";
import { receivingInboxes } from "../support/service.ts";

let support = "";
const ui = dashboard({
  async prepare() {
    [support = ""] = await receivingInboxes(ui.service, "in.test", ["support@in.test", "sales@in.test"]);
  },
  path: "/",
  viewport: WIDE,
});

const { go, see, press, fill, inDialog } = ui;
const ask: typeof ui.service.call = (...asked) => ui.service.call(...asked);
const part = (name: string) => ui.page.getByRole("region", { name });

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

/** The names of the rules in their order, with whether each is enabled. */
const ruleList = async () =>
  (await ask("GET", "/v1/rules")).body.data.map(({ name, enabled }: Record<string, unknown>) => [
    name,
    enabled,
  ]);
const rule = (name: string, then: object, when: object = {}) =>
  ask("POST", "/v1/rules", { name, when, then });

describe("the page of rules", () => {
  browserTest(
    "creates a rule in its form, shows the API's words there, and says what the rule does",
    async () => {
      await go("/rules");
      await ui.page.getByRole("link", { name: "Create a rule" }).click();
      await fill("Name", "Adverts");
      await fill("Subject", "[advert]");
      await inDialog("Create rule");
      await see("A rule needs at least one action.");
      await ui.page.getByLabel("In the end").selectOption({ label: "Refuse the message" });
      await fill("Words of the refusal", "Grüße");
      await inDialog("Create rule");
      await ui.page.locator(".field.invalid", { hasText: "Words of the refusal" }).waitFor();
      await fill("Words of the refusal", "No adverts");
      await inDialog("Create rule");
      await see("If the subject contains “[advert]”, then refuse it with 550 5.7.1 “No adverts”.");
    },
  );

  browserTest("changes a rule, and turns it off and on", async () => {
    await rule("News", { archive: true }, { header: { name: "List-Id" } });
    await go("/rules");
    await ui.page.getByRole("link", { name: "Edit News" }).click();
    await fill("Add labels", "news");
    await ui.page.getByLabel("Mail to").selectOption({ label: "sales@in.test" });
    await inDialog("Save rule");
    await see("If there is a header field List-Id, then add the label “news” and archive it.");
    await see("Only mail to sales@in.test.");
    const on = ui.page.getByRole("switch", { name: "Rule News" });
    await on.click();
    await ui.page.getByRole("switch", { name: "Rule News", checked: false }).waitFor();
    expect(await ruleList()).toEqual([
      ["Adverts", true],
      ["News", false],
    ]);
    await on.click();
    await ui.page.getByRole("switch", { name: "Rule News", checked: true }).waitFor();
  });

  browserTest("moves a rule by the keyboard, which keeps its place on the button", async () => {
    await rule("Last", { markRead: true });
    await go("/rules");
    await ui.page.getByRole("button", { name: "Move Last up" }).focus();
    await ui.page.keyboard.press("Enter");
    await ui.page.getByText("Last is now rule 2 of 3.").waitFor({ state: "attached" });
    await ui.page.locator("[aria-label='Move Last up']:focus").waitFor();
    await ui.page.keyboard.press("Enter");
    await ui.page.getByText("Last is now rule 1 of 3.").waitFor({ state: "attached" });
    await ui.page.locator("[aria-label='Move Last down']:focus").waitFor();
    expect((await ruleList()).map(([name]: [string]) => name)).toEqual(["Last", "Adverts", "News"]);
    await press("Delete Last");
    await inDialog("Delete rule");
    await ui.page.getByRole("heading", { name: "Last", exact: true }).waitFor({ state: "detached" });
  });

  browserTest("tries the rules on a received message, with the reason of each", async () => {
    await deliver(ui.service, {
      mailFrom: "ben@client.test",
      to: "sales@in.test",
      headers: ["From: ben@client.test", "Subject: Weekly", "List-Id: <weekly.client.test>"],
      body: "Hello",
    });
    const [{ id }] = (await ask("GET", "/v1/emails?direction=inbound")).body.data;
    await go(`/messages/${id}`);
    await ui.page.locator(".facts").getByText("News").waitFor();
    await ui.page.getByRole("link", { name: "Try the rules" }).click();
    await inDialog("Try the rules");
    await see("The rules would add the label “news” and archive it.");
    await see("Not true: the subject contains “[advert]”.");
    await see("Because there is a header field List-Id.");
  });

  browserTest("asks the owner of an address whether rules may forward there", async () => {
    await go("/rules?forward=1");
    await see("No address was asked yet.");
    await fill("Address", "boss@elsewhere.test");
    await inDialog("Ask the owner");
    await see("Waits");
    const { data } = (await ask("GET", "/v1/forward-addresses")).body;
    expect(data).toMatchObject([{ email: "boss@elsewhere.test", status: "pending" }]);
    await press("Remove boss@elsewhere.test");
    await see("No address was asked yet.");
  });

  browserTest("says why a rule turned itself off", async () => {
    const { body } = await rule("Away", { markRead: true });
    const { db } = ui.service.app;
    const { project } = (await ask("GET", "/v1/me")).body;
    const about = { senderId: project.id, kind: "rule_disabled", subjectId: body.id, at: 1 } as const;
    await db.write([
      { sql: "UPDATE rules SET enabled = 0 WHERE id = ?", args: [body.id] },
      raiseNotice({ ...about, id: newId("ntc", 1), subject: "Away", detail: "The template is gone." }),
    ]);
    await go("/rules");
    await see("It was turned off because what it does kept failing.");
    await see("The template is gone.");
    await ui.page.getByRole("switch", { name: "Rule Away" }).click();
    await ui.page.getByText("The template is gone.").waitFor({ state: "detached" });
  });
});

describe("on the pages of receiving", () => {
  browserTest("WCAG AA holds, light and dark, wide and narrow", async () => {
    const { page, context } = await ui.browser.visit(ui.service.url, "/", { key: ui.service.accountKey });
    const broken = await brokenPages(page, ui.service.url, [
      [`/inboxes/${support}?senders=1`, "@example.com"],
      ["/rules", "[advert]"],
      ["/rules?create=1", "If all of this holds"],
      ["/rules?try=1", "Weekly"],
    ]);
    expect(broken).toEqual([]);
    await context.close();
  });

  browserTest("no other origin is asked, and the Content-Security-Policy holds", () => {
    expect(ui.visit.faults).toEqual(NO_FAULTS);
  });
});
