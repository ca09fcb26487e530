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
import { startService, type TestService } from "../support/service.ts";

setDefaultTimeout(BROWSER_MS);
const browserTest = test.skipIf(CHROMIUM === null);

let service: TestService;
let browser: TestBrowser;
let visit: Visit;
let page: Page;
beforeAll(async () => {
  if (CHROMIUM === null) return;
  [service, browser] = await Promise.all([startService(), startBrowser()]);
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
    await see("No contact fits these filters.");
    expect((await read("/v1/contacts?q=ben")).data).toEqual([]);
  });

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
    await see("No suppressed address fits these filters.");
    await follow("Added by hand");
    await page.locator(".row", { hasText: "asked by phone" }).click();
    await press("Lift");
    await inDialog("Lift suppression");
    await see("No suppressed address fits these filters.");
    expect((await read("/v1/suppressions")).data).toEqual([]);
  });

  browserTest("has kept its Content-Security-Policy and asked no other origin", () => {
    expect(visit.faults).toEqual(NO_FAULTS);
  });
});

describe("WCAG AA holds", () => {
  browserTest("on every page of records, light and dark, wide and narrow", async () => {
    await service.call("POST", "/v1/suppressions", { email: "eve@example.com" });
    const [contact] = (await read("/v1/contacts")).data;
    const { page, context } = await browser.visit(service.url, "/", { key: service.accountKey });
    const broken = await brokenPages(page, service.url, [
      ["/contacts", "Eve@example.com"],
      ["/contacts?create=1", "Create contact"],
      [`/contacts/${contact.id}`, "Metadata"],
      ["/suppressions?add=1", "Suppress address"],
      ["/suppressions/eve%40example.com", "It was added by hand"],
    ]);
    expect(broken).toEqual([]);
    await context.close();
  });
});
