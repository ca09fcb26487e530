import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { readdirSync } from "node:fs";
import type { Page } from "playwright-core";
import {
  actionsOn,
  BROWSER_MS,
  CHROMIUM,
  NO_FAULTS,
  startBrowser,
  type TestBrowser,
  type Visit,
} from "../support/browser.ts";
import { BUILD_LIMIT_MS } from "../support/built-program.ts";
import { newFolder } from "../support/folder.ts";
import { type HttpsSink, startSink } from "../support/https-sink.ts";
import { type RoleProcess, startRole } from "../support/role-process.ts";

setDefaultTimeout(BROWSER_MS);
const browserTest = test.skipIf(CHROMIUM === null);

const DOMAIN = "postrider.localhost";
/** The folder in which the program starts: empty. */
const folder = newFolder("program");

const POLL_MS = 20;

let program: RoleProcess;
let browser: TestBrowser;
let sink: HttpsSink;
let visit: Visit;
let page: Page;
beforeAll(async () => {
  if (CHROMIUM === null) return;
  const env = { DATA_DIR: folder, SERVICE_DOMAIN: DOMAIN, DELIVERY: "capture" };
  [program, browser] = await Promise.all([startRole(env), startBrowser()]);
  sink = startSink();
  visit = await browser.visit(program.url, "/", { viewport: { width: 1440, height: 900 } });
  ({ page } = visit);
}, BUILD_LIMIT_MS + BROWSER_MS);
afterAll(async () => {
  await browser?.close();
  await program?.kill();
  await sink?.stop();
});

const { see, press, follow, fill } = actionsOn(() => page);
const inWindow = (name: string) => page.getByRole("dialog").getByRole("button", { name }).click();
/** Opens a section as a person does, by its entry in the sidebar. */
const section = (name: string) =>
  page.getByRole("navigation", { name: "Sections" }).getByRole("link", { name }).first().click();

describe("the program, started in an empty folder, lets a person", () => {
  browserTest("sign in with the link that it printed, and see the first steps", async () => {
    const link = /Open http:\/\/localhost:\d+(\/start#\w+)/.exec(program.output().stdout)?.[1] ?? "";
    await page.goto(program.url + link);
    await see("0 of 5");
  });

  browserTest("send a message, and watch it arrive", async () => {
    await page.getByRole("link", { name: "Send a message" }).click();
    await fill("To", `delivered@simulator.${DOMAIN}`);
    await fill("Subject", "From the program");
    await fill("Text", "It works.");
    await press("Send message");
    await page.waitForURL(/\/messages\/msg_\w+$/);
    await see("Delivered by the simulator");
  });

  browserTest("follow events live", async () => {
    await section("Live");
    await page
      .locator(".row", { hasText: `delivered@simulator.${DOMAIN}` })
      .first()
      .waitFor();
  });

  browserTest("receive a message, and answer it", async () => {
    await section("Inboxes");
    await follow("Create an inbox");
    // The form proposes an address as soon as it knows the domains.
    const address = page.getByRole("textbox", { name: "Address" });
    while ((await address.inputValue()) === "") await Bun.sleep(POLL_MS);
    await inWindow("Create inbox");
    await page.getByRole("dialog").waitFor({ state: "detached" });
    await follow("Simulate");
    await fill("Text", "I have waited for a week.");
    await press("Simulate message");
    await page.waitForURL(/\/threads\/thr_/);
    await page.getByPlaceholder("Write a reply").fill("It is on its way.");
    await press("Send reply");
    await see("It is on its way.");
    // A thread that is shown is read.
    await page.locator(".sidebar .unread").waitFor({ state: "detached" });
  });

  browserTest("add a domain, and copy the records to publish", async () => {
    await section("Domains");
    await follow("Add domain");
    await fill("Domain", "shop.invalid");
    await inWindow("Add domain");
    await see("_dmarc.shop.invalid");
    await press("Copy value");
    await page.getByRole("button", { name: "Copied" }).waitFor();
  });

  browserTest("write a template with a preview", async () => {
    await section("Templates");
    await follow("Create a template");
    await fill("Name", "Welcome");
    await inWindow("Create template");
    await page.frameLocator("iframe").getByText("Hello name,").waitFor();
    await fill("Subject", "Hi {{ name }}");
    await press("Save template");
    await see("Saved.");
  });

  browserTest("create a contact", async () => {
    await section("Contacts");
    await follow("Create a contact");
    await fill("Address", "ana@example.com");
    await press("Create contact");
    await page.waitForURL(/\/contacts\/con_\w+$/);
    await see("Gets all messages.");
  });

  browserTest("suppress an address", async () => {
    await section("Suppressions");
    await follow("Suppress an address");
    await fill("Address", "ben@example.com");
    await press("Suppress address");
    await see("It was added by hand, so it gets no mail.");
  });

  browserTest("add a webhook, and test it", async () => {
    await section("Webhooks");
    await follow("Add a webhook");
    await fill("URL", sink.url);
    await inWindow("Add webhook");
    await see(/^whsec_/);
    await inWindow("I have stored it");
    await press("Send test");
    await page.getByRole("button", { name: /Succeeded delivery HTTP 200/ }).waitFor();
  });

  browserTest("create a key", async () => {
    await section("Keys");
    await follow("Create key");
    await fill("Name", "Robot");
    await inWindow("Create key");
    await see(/^pr_/);
    await inWindow("I have stored it");
    await page.getByRole("article", { name: "Key" }).waitFor();
  });

  browserTest("create a project, and switch to it", async () => {
    await section("Projects");
    await page.locator(".page-actions").getByRole("link", { name: "Project" }).click();
    await fill("Name", "Second shop");
    await press("Create project");
    await page.waitForURL(/\/projects\/snd_\w+$/);
    await press("Switch to it");
    await see("0 of 5");
    await page.getByLabel("Project").first().selectOption({ label: "Default" });
  });

  browserTest("find a setting, and see the first steps that are done", async () => {
    await section("Settings");
    await page.getByLabel("Search settings").fill("service_domain");
    await page.locator(".settings > li", { hasText: DOMAIN }).getByText("from the environment").waitFor();
    await section("Home");
    await see("3 of 5");
  });

  browserTest(
    "do all that without a request to another origin, and within the Content-Security-Policy",
    () => {
      expect(visit.faults).toEqual(NO_FAULTS);
      expect(readdirSync(folder).filter((name) => !name.startsWith("postrider.db"))).toEqual(["master.key"]);
    },
  );
});
