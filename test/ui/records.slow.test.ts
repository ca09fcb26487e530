import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import type { Page } from "playwright-core";
import { brokenPages } from "../support/axe.ts";
import {
  BROWSER_MS,
  CHROMIUM,
  NO_FAULTS,
  startBrowser,
  type TestBrowser,
  type Visit,
} from "../support/browser.ts";
import { startMx } from "../support/mx.ts";
import { SERVICE_DOMAIN, startService, type TestService } from "../support/service.ts";

setDefaultTimeout(BROWSER_MS);
const browserTest = test.skipIf(CHROMIUM === null);

/** A secret, so that a test can look for it. */
const MASTER_KEY = "master-key-that-no-page-may-show-0001";

let service: TestService;
let browser: TestBrowser;
let visit: Visit;
let page: Page;
beforeAll(async () => {
  if (CHROMIUM === null) return;
  [service, browser] = await Promise.all([startService({ MASTER_KEY }), startBrowser()]);
  visit = await browser.visit(service.url, "/", {
    key: service.accountKey,
    viewport: { width: 1440, height: 900 },
  });
  ({ page } = visit);
});
afterAll(async () => {
  await browser?.close();
  await service?.stop();
});

const go = (path: string) => page.goto(service.url + path);
const see = (text: string | RegExp) => page.getByText(text).first().waitFor();
const gone = (text: string) => page.getByText(text).first().waitFor({ state: "detached" });
const press = (name: string) => page.getByRole("button", { name, exact: true }).click();
const follow = (name: string) => page.getByRole("link", { name, exact: true }).first().click();
const fill = (name: string, text: string) => page.getByRole("textbox", { name, exact: true }).fill(text);
const inDialog = (name: string) =>
  page.getByRole("dialog").getByRole("button", { name, exact: true }).click();
const read = async (path: string) => (await service.call("GET", path)).body;

describe("the dashboard", () => {
  browserTest("creates a contact, changes it, and turns its subscription off and on", async () => {
    await go("/contacts");
    await follow("Create a contact");
    await fill("Address", "ana@example.com");
    await fill("First name", "Ana");
    await press("Create contact");
    await page.waitForURL(/\/contacts\/con_\w+$/);
    await press("Unsubscribe");
    await see("Gets no messages that have an unsubscribe link.");
    await go("/contacts?subscribed=false");
    await page.locator(".row", { hasText: "ana@example.com" }).click();
    await press("Resubscribe");
    await see("Gets all messages.");
    await press("Edit");
    await fill("Last name", "Lind");
    await fill("Metadata", "[1]");
    await press("Save contact");
    await see("Metadata must be a JSON object");
    await fill("Metadata", '{"customerId": "42"}');
    await press("Save contact");
    await page.getByRole("heading", { name: "Ana Lind" }).waitFor();
    const [contact] = (await read("/v1/contacts")).data;
    expect(contact).toMatchObject({ subscribed: true, lastName: "Lind", metadata: { customerId: "42" } });
  });

  browserTest("finds a contact by its name, and deletes it", async () => {
    for (const firstName of ["Ben", "Eve"])
      await service.call("POST", "/v1/contacts", { email: `${firstName}@example.com`, firstName });
    await go("/contacts");
    await see("Eve@example.com");
    await page.keyboard.press("/");
    await page.keyboard.type("ben");
    await page.waitForURL(/q=ben/);
    await gone("Eve@example.com");
    await page.locator(".row").click();
    await press("Delete");
    await inDialog("Delete contact");
    await see("No contact fits this search and filter.");
    expect((await read("/v1/contacts?q=ben")).data).toEqual([]);
  });

  browserTest(
    "sends a captured message for real, and says what is missing until there is a way out",
    async () => {
      await service.call("POST", "/v1/domains", { domain: "mysaas.test" });
      const id = await service.send({ from: "hello@mysaas.test", to: "ana@example.com", subject: "Keep me" });
      await service.message(id, "delivered");
      await go(`/messages/${id}`);
      await see("Kept on this machine");
      await press("Send for real");
      await fill("To", "me@real.test");
      await inDialog("Send for real");
      await see("no way out for released mail is configured");
      const mx = startMx();
      const relay = { name: "out", kind: "relay", relayUrl: `smtp://127.0.0.1:${mx.port}?insecure=1` };
      const route = await service.call("POST", "/v1/routes", relay, { key: service.accountKey });
      const { data } = (await service.call("GET", "/v1/senders", undefined, { key: service.accountKey }))
        .body;
      const routeIds = [route.body.id];
      await service.call("PATCH", `/v1/senders/${data[0].id}`, { routeIds }, { key: service.accountKey });
      await inDialog("Send for real");
      await page.waitForURL((url) => url.pathname.startsWith("/messages/msg_") && !url.pathname.endsWith(id));
      expect((await mx.messages.reached(1)).rcptTo).toEqual(["me@real.test"]);
      await service.call("PATCH", `/v1/senders/${data[0].id}`, { routeIds: [] }, { key: service.accountKey });
      mx.stop();
    },
  );

  browserTest("suppresses an address, says why it gets no mail, and lifts the suppression", async () => {
    await go("/suppressions");
    await follow("Suppress an address");
    await fill("Address", "no address");
    await press("Suppress address");
    await page.locator(".field.invalid").waitFor();
    await fill("Address", "Ben@example.com");
    await fill("Note", "asked by phone");
    await press("Suppress address");
    await see("It was added by hand, so it gets no mail.");
    expect((await read("/v1/suppressions")).data).toMatchObject([{ email: "ben@example.com" }]);
    await follow("Complaints");
    await see("No suppressed address fits this search and filter.");
    await follow("Added by hand");
    await page.locator(".row", { hasText: "asked by phone" }).click();
    await press("Lift the suppression");
    await inDialog("Lift suppression");
    await see("No suppressed address fits this search and filter.");
    expect((await read("/v1/suppressions")).data).toEqual([]);
  });

  browserTest("creates a project, suspends it and lifts the suspension, and shows what it uses", async () => {
    await go("/projects");
    await page.locator(".row", { hasText: "Default" }).waitFor();
    await page.locator(".page-actions").getByRole("link", { name: "Create project" }).click();
    await fill("Name", "Second shop");
    await page.getByLabel("Plan", { exact: true }).selectOption("free");
    await page.getByLabel("Daily quota", { exact: true }).fill("-1");
    await press("Create project");
    await page.locator(".field.invalid", { hasText: "Daily quota" }).waitFor();
    await page.getByLabel("Daily quota", { exact: true }).fill("500");
    await press("Create project");
    await page.waitForURL(/\/projects\/snd_\w+$/);
    await page.getByRole("row", { name: /Recipients today 0 / }).waitFor();
    await press("Suspend");
    await inDialog("Suspend project");
    await press("Lift the suspension");
    await see("It may send.");
    await press("Edit");
    await page.getByLabel("Track opens").selectOption("false");
    await press("Save project");
    await see("clicks");
    await press("Switch to it");
    await page.locator(".project-choice:visible").waitFor();
    const wide = { key: service.accountKey };
    const [project] = (await service.call("GET", "/v1/senders", undefined, wide)).body.data;
    expect(project).toMatchObject({
      name: "Second shop",
      externalId: "second-shop",
      plan: "free",
      dailyQuota: 500,
      suspendedAt: null,
      tracking: { opens: false, clicks: true },
    });
    expect(await page.getByLabel("Project").first().inputValue()).toBe(project.id);
    await page.getByLabel("Project").first().selectOption({ label: "Default" });
  });

  browserTest("finds a setting, says where its value comes from, and shows no secret", async () => {
    await go("/settings?q=MASTER");
    await see("secret, set");
    expect(await page.content()).not.toContain(MASTER_KEY);
    await go("/settings");
    await page.getByText("MASTER_KEY", { exact: true }).waitFor();
    await page.getByLabel("Search settings").fill("service_domain");
    await gone("MASTER_KEY");
    const row = page.locator(".settings > li", { hasText: "mail.test" });
    await row.getByText("from the environment").waitFor();
  });

  browserTest("checks a message before it is sent", async () => {
    await go("/messages?compose=1");
    await fill("To", `delivered@simulator.${SERVICE_DOMAIN}`);
    await fill("Subject", "Checked");
    await page.getByRole("textbox", { name: "From" }).fill("ana@elsewhere.example");
    await fill("Text", "Hello");
    await page.getByRole("tab", { name: "Check" }).click();
    await see("Would be refused");
    await page.getByRole("tab", { name: "Message" }).click();
    await fill("From", `hello@onboarding.${SERVICE_DOMAIN}`);
    await page.getByRole("tab", { name: "Check" }).click();
    await see("Would be accepted");
    expect((await read("/v1/emails?q=Checked")).data).toEqual([]);
  });

  browserTest("approves one message that waits for it, and rejects another with a reason", async () => {
    const wide = { key: service.accountKey };
    const { project } = await read("/v1/me");
    const bounds = { name: "agent", senderId: project.id, approval: true };
    const { secret: key } = (await service.call("POST", "/v1/api-keys", bounds, wide)).body;
    const from = `hello@onboarding.${SERVICE_DOMAIN}`;
    const send = async (subject: string) => {
      const item = { from, to: `delivered@simulator.${SERVICE_DOMAIN}`, subject, text: "Hello" };
      return (await service.call("POST", "/v1/emails", item, { key })).body.id;
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
    await page.getByRole("button", { name: "Reject", exact: true }).waitFor({ state: "detached" });
    const { recipients } = await service.message(bad, "failed");
    expect(recipients).toMatchObject([{ status: "failed", reason: "wrong recipient" }]);
  });

  browserTest("has kept its Content-Security-Policy and asked no other origin", () => {
    expect(visit.faults).toEqual(NO_FAULTS);
  });
});

describe("WCAG AA holds", () => {
  browserTest("on every page of records, light and dark, wide and narrow", async () => {
    await service.call("POST", "/v1/suppressions", { email: "eve@example.com" });
    const [contact] = (await read("/v1/contacts")).data;
    const { project } = await read("/v1/me");
    const { page, context } = await browser.visit(service.url, "/", { key: service.accountKey });
    const broken = await brokenPages(page, service.url, [
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
