import { describe, expect } from "bun:test";
import { SERVICE_DOMAIN } from "../support/service.ts";
import { NO_FAULTS } from "../support/browser.ts";
import { browserTest, dashboard } from "../support/dashboard.ts";

const MAX_FILES = 20;

const ui = dashboard({ path: "/messages" });

const { go, see, press, follow, fill } = ui;
const typedIn = (label: string) => ui.page.getByLabel(label, { exact: true }).inputValue();
const gone = () => ui.page.getByRole("dialog").waitFor({ state: "detached" });

describe("the compose window", () => {
  browserTest("shows errors of fields that it does not show", async () => {
    await go("/messages?compose=1");
    await fill("To", `delivered@simulator.${SERVICE_DOMAIN}`);
    await fill("Subject", "Without a body");
    await press("Send message");
    await ui.page.locator(".problem", { hasText: "html" }).waitFor();
    await fill("To", "no address");
    await ui.page.getByRole("tab", { name: "curl" }).click();
    await press("Send message");
    await ui.page.locator(".problem", { hasNotText: "html" }).waitFor();
    await ui.page.getByRole("tab", { name: "Message" }).click();
    await ui.page.locator(".field.invalid").waitFor();
    await fill("To", "ana@example.com");
    await ui.page.locator(".field.invalid").waitFor({ state: "detached" });
    await fill("To", "no address");
    await press("Send message");
    await ui.page.locator("input[aria-invalid=true]:focus").waitFor();
  });

  browserTest("keeps what was typed when it is closed, until it is discarded", async () => {
    await go("/messages");
    await follow("Send a message");
    await fill("Subject", "Half written");
    await ui.page.mouse.click(2, 2);
    expect(await typedIn("Subject")).toBe("Half written");
    await ui.page.keyboard.press("Escape");
    await gone();
    await ui.page.keyboard.press("c");
    expect(await typedIn("Subject")).toBe("Half written");
    await press("Discard");
    await gone();
    await ui.page.keyboard.press("c");
    expect(await typedIn("Subject")).toBe("");
  });

  browserTest("says how many files are too many", async () => {
    const files = Array.from({ length: MAX_FILES + 2 }, (_, at) => ({
      name: `${at}.txt`,
      mimeType: "text/plain",
      buffer: Buffer.from("x"),
    }));
    await ui.page.locator("input[type=file]").setInputFiles(files);
    await see("A message takes 20 files, so 2 files were left out.");
    await press("Remove 19.txt");
    await ui.page.getByText("were left out").waitFor({ state: "detached" });
    await press("Discard");
  });
});

let inbox = "";
/** Makes a thread with a message. Returns its id. */
async function arrivedThread(): Promise<string> {
  inbox ||= (await ui.service.call("POST", "/v1/inboxes", { address: `desk@inbox.${SERVICE_DOMAIN}` })).body
    .address;
  const mail = { to: inbox, from: "ana@example.com", subject: "Where?", text: "Hello" };
  const { body } = await ui.service.call("POST", "/v1/inbound/simulate", mail);
  expect(body.threadId).toStartWith("thr_");
  return body.threadId;
}

browserTest("a reply that was not sent is there when the thread is opened again", async () => {
  const threadId = await arrivedThread();
  await go(`/threads/${threadId}`);
  await ui.page.getByPlaceholder("Write a reply").fill("It is on its");
  await ui.page.keyboard.press("Escape");
  await ui.page.locator(".sections a", { hasText: "Messages" }).first().click();
  await ui.page.waitForURL(/\/messages$/);
  await ui.page.goBack();
  await ui.page.waitForURL(/\/threads\//);
  expect(await ui.page.getByPlaceholder("Write a reply").inputValue()).toBe("It is on its");
});

browserTest("a reply whose files are too large for a draft leaves no draft behind", async () => {
  const threadId = await arrivedThread();
  const drafts = async () => (await ui.service.call("GET", `/v1/drafts?threadId=${threadId}`)).body.data;
  await go(`/threads/${threadId}`);
  await ui.page.getByPlaceholder("Write a reply").fill("Here it is");
  await see("Draft saved");
  expect(await drafts()).toHaveLength(1);
  const file = { name: "scan.bin", mimeType: "application/octet-stream", buffer: Buffer.alloc(600_000) };
  await ui.page.locator("input[type=file]").setInputFiles([file]);
  await see("Too large to be saved as a draft");
  await press("Send reply");
  await see("Leaves in 10 seconds");
  expect(await drafts()).toEqual([]);
});

browserTest("a reply by a key that saves no drafts is not called too large", async () => {
  const threadId = await arrivedThread();
  const { body } = await ui.service.call("GET", "/v1/me");
  const scopes = ["inboxes:read", "threads:read", "threads:reply", "emails:read"];
  const wanted = { name: "replies", senderId: body.project.id, scopes };
  const made = await ui.service.call("POST", "/v1/api-keys", wanted, { key: ui.service.accountKey });
  const key = made.body.secret;
  const { page, context } = await ui.browser.visit(ui.service.url, `/threads/${threadId}`, { key });
  await page.getByPlaceholder("Write a reply").fill("Short");
  await page.getByText("Your key saves no drafts, so it stays in this tab").waitFor();
  await context.close();
});

browserTest(
  "a template's changes that were not saved are there when its editor is opened again",
  async () => {
    const { body } = await ui.service.call("POST", "/v1/templates", {
      name: "Welcome",
      subject: "Hi",
      text: "x",
    });
    await go(`/templates/${body.id}`);
    await fill("Subject", "Hi {{ name }}");
    await see("Not saved yet.");
    await follow("All templates");
    await ui.page.waitForURL(/\/templates$/);
    await follow("Welcome");
    await see("Not saved yet.");
    expect(await typedIn("Subject")).toBe("Hi {{ name }}");
    // So the browser asks before it leaves the app.
    const isHeld = "!dispatchEvent(new Event('beforeunload', { cancelable: true }))";
    expect(await ui.page.evaluate(isHeld)).toBe(true);
    await press("Save template");
    await see("Saved.");
    expect((await ui.service.call("GET", `/v1/templates/${body.id}`)).body.subject).toBe("Hi {{ name }}");
  },
);

browserTest("the zone file of a domain that receives has its MX record", async () => {
  await ui.service.call("POST", "/v1/domains", { domain: "zone.test" });
  await go("/domains");
  await ui.page.evaluate("navigator.clipboard.writeText = async (text) => void (window.copied = text)");
  const copied = async () => {
    await press("Copy zone file");
    return ui.page.evaluate("window.copied");
  };
  await ui.page.locator(".row", { hasText: "zone.test" }).click();
  await ui.page.getByRole("switch", { name: "Receive mail for this domain" }).click();
  await ui.page.getByText("Mail to inboxes of this domain is received.").waitFor();
  await ui.page.getByText("MX", { exact: true }).first().waitFor();
  expect(await copied()).toMatch(/^zone\.test\. IN MX 10 \S+\.$/m);
});

browserTest("makes no faults", async () => {
  expect(ui.visit.faults).toEqual(NO_FAULTS);
});
