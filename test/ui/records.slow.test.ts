import { describe, expect } from "bun:test";
import { brokenPages } from "../support/axe.ts";
import { startMx } from "../support/mx.ts";
import { SERVICE_DOMAIN, startService } from "../support/service.ts";
import { NO_FAULTS } from "../support/browser.ts";
import { browserTest, dashboard, WIDE } from "../support/dashboard.ts";

/** A secret, so that a test can look for it. */
const MASTER_KEY = "master-key-that-no-page-may-show-0001";

const ui = dashboard({ start: () => startService({ MASTER_KEY }), path: "/", viewport: WIDE });

const { go, inDialog } = ui;
const see = (text: string | RegExp) => ui.page.getByText(text).first().waitFor();
const gone = (text: string) => ui.page.getByText(text).first().waitFor({ state: "detached" });
const press = (name: string) => ui.page.getByRole("button", { name, exact: true }).click();
const follow = (name: string) => ui.page.getByRole("link", { name, exact: true }).first().click();
const fill = (name: string, text: string) => ui.page.getByRole("textbox", { name, exact: true }).fill(text);
const read = async (path: string) => (await ui.service.call("GET", path)).body;

describe("the dashboard", () => {
  browserTest("creates a contact, changes it, and turns its subscription off and on", async () => {
    await go("/contacts");
    await follow("Create a contact");
    await fill("Address", "ana@example.com");
    await fill("First name", "Ana");
    await press("Create contact");
    await ui.page.waitForURL(/\/contacts\/con_\w+$/);
    await press("Unsubscribe");
    await see("Gets no messages that have an unsubscribe link.");
    await go("/contacts?subscribed=false");
    await ui.page.locator(".row", { hasText: "ana@example.com" }).click();
    await press("Resubscribe");
    await see("Gets all messages.");
    await press("Edit");
    await fill("Last name", "Lind");
    await fill("Metadata", "[1]");
    await press("Save contact");
    await see("Metadata must be a JSON object");
    await fill("Metadata", '{"customerId": "42"}');
    await press("Save contact");
    await ui.page.getByRole("heading", { name: "Ana Lind" }).waitFor();
    const [contact] = (await read("/v1/contacts")).data;
    expect(contact).toMatchObject({ subscribed: true, lastName: "Lind", metadata: { customerId: "42" } });
  });

  browserTest("finds a contact by its name, and deletes it", async () => {
    for (const firstName of ["Ben", "Eve"])
      await ui.service.call("POST", "/v1/contacts", { email: `${firstName}@example.com`, firstName });
    await go("/contacts");
    await see("Eve@example.com");
    await ui.page.keyboard.press("/");
    await ui.page.keyboard.type("ben");
    await ui.page.waitForURL(/q=ben/);
    await gone("Eve@example.com");
    await ui.page.locator(".row").click();
    await press("Delete");
    await inDialog("Delete contact");
    await see("No contact fits this search and filter.");
    expect((await read("/v1/contacts?q=ben")).data).toEqual([]);
  });

  browserTest(
    "sends a captured message for real, and says what is missing until there is a way out",
    async () => {
      await ui.service.call("POST", "/v1/domains", { domain: "mysaas.test" });
      const id = await ui.service.send({
        from: "hello@mysaas.test",
        to: "ana@example.com",
        subject: "Keep me",
      });
      await ui.service.message(id, "delivered");
      await go(`/messages/${id}`);
      await see("Kept on this machine");
      await press("Send for real");
      await fill("To", "me@real.test");
      await inDialog("Send for real");
      await see("no way out for released mail is configured");
      const mx = startMx();
      const relay = { name: "out", kind: "relay", relayUrl: `smtp://127.0.0.1:${mx.port}?insecure=1` };
      const route = await ui.service.call("POST", "/v1/routes", relay, { key: ui.service.accountKey });
      const { data } = (
        await ui.service.call("GET", "/v1/senders", undefined, { key: ui.service.accountKey })
      ).body;
      const routeIds = [route.body.id];
      await ui.service.call(
        "PATCH",
        `/v1/senders/${data[0].id}`,
        { routeIds },
        { key: ui.service.accountKey },
      );
      await inDialog("Send for real");
      await ui.page.waitForURL(
        (url) => url.pathname.startsWith("/messages/msg_") && !url.pathname.endsWith(id),
      );
      expect((await mx.messages.reached(1)).rcptTo).toEqual(["me@real.test"]);
      await ui.service.call(
        "PATCH",
        `/v1/senders/${data[0].id}`,
        { routeIds: [] },
        { key: ui.service.accountKey },
      );
      mx.stop();
    },
  );

  browserTest("suppresses an address, says why it gets no mail, and lifts the suppression", async () => {
    await go("/suppressions");
    await follow("Suppress an address");
    await fill("Address", "no address");
    await press("Suppress address");
    await ui.page.locator(".field.invalid").waitFor();
    await fill("Address", "Ben@example.com");
    await fill("Note", "asked by phone");
    await press("Suppress address");
    await see("It was added by hand, so it gets no mail.");
    expect((await read("/v1/suppressions")).data).toMatchObject([{ email: "ben@example.com" }]);
    await follow("Complaints");
    await see("No suppressed address fits this search and filter.");
    await follow("Added by hand");
    await ui.page.locator(".row", { hasText: "asked by phone" }).click();
    await press("Lift the suppression");
    await inDialog("Lift suppression");
    await see("No suppressed address fits this search and filter.");
    expect((await read("/v1/suppressions")).data).toEqual([]);
  });

  browserTest("creates a project, suspends it and lifts the suspension, and shows what it uses", async () => {
    await go("/projects");
    await ui.page.locator(".row", { hasText: "Default" }).waitFor();
    await ui.page.locator(".page-actions").getByRole("link", { name: "Create project" }).click();
    await fill("Name", "Second shop");
    await ui.page.getByLabel("Plan", { exact: true }).selectOption("free");
    await ui.page.getByLabel("Daily quota", { exact: true }).fill("-1");
    await press("Create project");
    await ui.page.locator(".field.invalid", { hasText: "Daily quota" }).waitFor();
    await ui.page.getByLabel("Daily quota", { exact: true }).fill("500");
    await press("Create project");
    await ui.page.waitForURL(/\/projects\/snd_\w+$/);
    await ui.page.getByRole("row", { name: /Recipients today 0 / }).waitFor();
    await press("Suspend");
    await inDialog("Suspend project");
    await press("Lift the suspension");
    await see("It may send.");
    await press("Edit");
    await ui.page.getByLabel("Track opens").selectOption("false");
    await press("Save project");
    await see("clicks");
    await press("Switch to it");
    await ui.page.locator(".project-choice:visible").waitFor();
    const wide = { key: ui.service.accountKey };
    const [project] = (await ui.service.call("GET", "/v1/senders", undefined, wide)).body.data;
    expect(project).toMatchObject({
      name: "Second shop",
      externalId: "second-shop",
      plan: "free",
      dailyQuota: 500,
      suspendedAt: null,
      tracking: { opens: false, clicks: true },
    });
    expect(await ui.page.getByLabel("Project").first().inputValue()).toBe(project.id);
    await ui.page.getByLabel("Project").first().selectOption({ label: "Default" });
  });

  browserTest("finds a setting, says where its value comes from, and shows no secret", async () => {
    await go("/settings?q=MASTER");
    await see("secret, set");
    expect(await ui.page.content()).not.toContain(MASTER_KEY);
    await go("/settings");
    await ui.page.getByText("MASTER_KEY", { exact: true }).waitFor();
    await ui.page.getByLabel("Search settings").fill("service_domain");
    await gone("MASTER_KEY");
    const row = ui.page.locator(".settings > li", { hasText: "mail.test" });
    await row.getByText("from the environment").waitFor();
  });

  browserTest("checks a message before it is sent", async () => {
    await go("/messages?compose=1");
    await fill("To", `delivered@simulator.${SERVICE_DOMAIN}`);
    await fill("Subject", "Checked");
    await ui.page.getByRole("textbox", { name: "From" }).fill("ana@elsewhere.example");
    await fill("Text", "Hello");
    await ui.page.getByRole("tab", { name: "Check" }).click();
    await see("Would be refused");
    await ui.page.getByRole("tab", { name: "Message" }).click();
    await fill("From", `hello@onboarding.${SERVICE_DOMAIN}`);
    await ui.page.getByRole("tab", { name: "Check" }).click();
    await see("Would be accepted");
    expect((await read("/v1/emails?q=Checked")).data).toEqual([]);
  });

  browserTest("approves one message that waits for it, and rejects another with a reason", async () => {
    const wide = { key: ui.service.accountKey };
    const { project } = await read("/v1/me");
    const bounds = { name: "agent", senderId: project.id, approval: true };
    const { secret: key } = (await ui.service.call("POST", "/v1/api-keys", bounds, wide)).body;
    const from = `hello@onboarding.${SERVICE_DOMAIN}`;
    const send = async (subject: string) => {
      const item = { from, to: `delivered@simulator.${SERVICE_DOMAIN}`, subject, text: "Hello" };
      return (await ui.service.call("POST", "/v1/emails", item, { key })).body.id;
    };
    const good = await send("Good");
    await go(`/messages/${good}`);
    await see("Awaiting approval");
    await press("Approve");
    await see("Delivered by the simulator");
    const bad = await send("Bad");
    await go(`/messages/${bad}`);
    await press("Reject");
    await fill("Reason", "wrong recipient");
    await inDialog("Reject message");
    await ui.page.getByRole("button", { name: "Reject", exact: true }).waitFor({ state: "detached" });
    const { recipients } = await ui.service.message(bad, "failed");
    expect(recipients).toMatchObject([{ status: "failed", reason: "wrong recipient" }]);
  });

  browserTest("has kept its Content-Security-Policy and asked no other origin", () => {
    expect(ui.visit.faults).toEqual(NO_FAULTS);
  });
});

describe("WCAG AA holds", () => {
  browserTest("on every page of records, light and dark, wide and narrow", async () => {
    await ui.service.call("POST", "/v1/suppressions", { email: "eve@example.com" });
    const [contact] = (await read("/v1/contacts")).data;
    const { project } = await read("/v1/me");
    const { page, context } = await ui.browser.visit(ui.service.url, "/", { key: ui.service.accountKey });
    const broken = await brokenPages(page, ui.service.url, [
      ["/contacts", "Eve@example.com"],
      ["/contacts?create=1", "Create contact"],
      [`/contacts/${contact.id}`, "Metadata"],
      ["/suppressions?add=1", "Suppress address"],
      ["/projects?create=1", "Create project"],
      [`/projects/${project.id}`, "Recipients today"],
      ["/settings?q=domain", "SERVICE_DOMAIN"],
      ["/suppressions/eve%40example.com", "It was added by hand"],
    ]);
    expect(broken).toEqual([]);
    await context.close();
  });
});
