import { afterAll, describe, expect } from "bun:test";
import { gzipSync } from "node:zlib";
import { brokenPages } from "../support/axe.ts";
import { dmarcXml, fileLetter } from "../support/domain-reports.ts";
import { type HttpsSink, startSink } from "../support/https-sink.ts";
import { deliver } from "../support/mail-in.ts";
import { NO_FAULTS } from "../support/browser.ts";
import { browserTest, dashboard, WIDE } from "../support/dashboard.ts";

let sink: HttpsSink;
const ui = dashboard({
  async prepare() {
    sink = startSink();
  },
  path: "/",
  viewport: WIDE,
});
afterAll(() => sink?.stop());

const { go, see, press, follow, fill } = ui;
const inWindow = (name: string) => ui.page.getByRole("dialog").getByRole("button", { name });

describe("the page Domains", () => {
  browserTest("adds a domain, shows its records, and turns on receiving", async () => {
    await go("/domains");
    await follow("Add a domain");
    await fill("Domain", "shop.test");
    await inWindow("Add domain").click();
    await ui.page.waitForURL(/\/domains\/dom_\w+$/);
    await see("_dmarc.shop.test");
    await see("It works for tests");
    await ui.page.getByRole("switch").click();
    await see("Mail to inboxes of this domain is received.");
    const [domain] = (await ui.service.call("GET", "/v1/domains")).body.data;
    expect([domain.status, domain.receiving]).toEqual(["verified", true]);
  });

  browserTest("verifies a domain, and says of each record what is wrong", async () => {
    const { id } = (await ui.service.call("POST", "/v1/domains", { domain: "unpublished.invalid" })).body;
    await go(`/domains/${id}`);
    await press("Verify domain");
    await see(/There is no SPF \(TXT\) record/);
    await see(/Receivers find SPF none for our addresses, with 0 of at most 10 lookups/);
    await see(/has neither an MX record nor an address/);
    await see("bounce.unpublished.invalid");
    await see("Not published");
    await press("Copy name");
    await ui.page.getByRole("button", { name: "Copied" }).waitFor();
  });

  browserTest("opens the window that rotates a key from the warning of an old one", async () => {
    const { id } = (await ui.service.call("POST", "/v1/domains", { domain: "old-key.invalid" })).body;
    const sql = "UPDATE dkim_keys SET created_at = 1 WHERE domain_id = ?";
    await ui.service.app.db.write([{ sql, args: [id] }]);
    await go(`/domains/${id}`);
    await press("Verify domain");
    await follow("Domains › Rotate DKIM");
    await inWindow("Rotate key").click();
    await ui.page.waitForURL(new RegExp(`/domains/${id}$`));
    await see("pr2._domainkey.old-key.invalid");
  });

  browserTest("rotates a DKIM key, and deletes a domain only if its name is typed", async () => {
    await follow("shop.test");
    await press("Rotate DKIM");
    await inWindow("Rotate key").click();
    await see("pr2._domainkey.shop.test");
    await press("Delete");
    expect(await inWindow("Delete domain").isDisabled()).toBe(true);
    await fill("Type shop.test to confirm", "shop.test");
    await inWindow("Delete domain").click();
    await ui.page.waitForURL(/\/domains$/);
    await ui.page.getByText("shop.test").waitFor({ state: "detached" });
  });

  browserTest(
    "shows what receivers report, and lets reports move the policy of a delegated domain",
    async () => {
      const { id } = (await ui.service.call("POST", "/v1/domains", { domain: "post.test", delegated: true }))
        .body;
      ui.service.dns.add({ name: "google.com", type: "TXT", data: "v=spf1 ip4:127.0.0.1 -all" });
      const from = "noreply-dmarc-support@google.com";
      for (let daysAgo = 1; daysAgo < 20; daysAgo++) {
        const records = [
          { ip: "192.0.2.10", count: 100 },
          { ip: "203.0.113.9", count: 4, dkim: "fail", spf: "fail" } as const,
        ];
        const xml = dmarcXml({ domain: "post.test", id: `r${daysAgo}`, daysAgo, records });
        await deliver(ui.service, fileLetter(gzipSync(xml), { from }));
      }
      await go(`/domains/${id}`);
      await see("Safe to move to quarantine");
      await see("Of 1900 messages from known sources, 100 % passed DMARC.");
      await see("203.0.113.9");
      await ui.page.getByRole("switch", { name: "Let reports move the DMARC policy" }).click();
      await see("Policy moves by itself");
      await see("The published DMARC policy is quarantine.");
      await see("v=DMARC1; p=quarantine;");
      await ui.service.call("DELETE", `/v1/domains/${id}`);
    },
  );

  browserTest("lets every name below a delegated domain receive", async () => {
    const wanted = { domain: "below.test", delegated: true };
    const { id } = (await ui.service.call("POST", "/v1/domains", wanted)).body;
    await go(`/domains/${id}`);
    await ui.page.getByRole("switch", { name: "Receive mail for every name below this domain" }).click();
    await see("Inboxes may be at any name below below.test.");
    expect((await ui.service.call("GET", `/v1/domains/${id}`)).body.wildcard).toBe(true);
    await ui.service.call("DELETE", `/v1/domains/${id}`);
  });
});

describe("the page Webhooks", () => {
  browserTest("adds a webhook, shows its secret once, tests it, and replays what failed", async () => {
    await go("/webhooks");
    await follow("Add a webhook");
    await fill("URL", sink.url);
    await ui.page.getByLabel("All events").uncheck();
    await ui.page.getByLabel("open", { exact: true }).check();
    await inWindow("Add webhook").click();
    await see(/^whsec_/);
    await inWindow("I have stored it").click();
    expect(await ui.page.getByText(/^whsec_/).count()).toBe(0);
    sink.answer(() => new Response("out of order", { status: 503 }), 200);
    await press("Send test");
    await press(/Retrying delivery HTTP 503/);
    await see("out of order");
    await see('"type": "delivery"');
    await press("Replay");
    await ui.page.getByRole("button", { name: /Succeeded delivery HTTP 200/ }).waitFor();
    const { eventTypes } = (await ui.service.call("GET", "/v1/webhooks")).body.data[0];
    expect(eventTypes).toEqual(["delivery", "bounce", "complaint", "inbound_received", "open"]);
  });

  browserTest("disables, enables and changes a webhook, rotates its secret and deletes it", async () => {
    await press("Disable");
    await see("Events create no deliveries until it is enabled.");
    await press("Enable");
    await press("Change");
    await ui.page.getByLabel("All events").check();
    await inWindow("Save webhook").click();
    await ui.page.getByRole("definition").getByText("All events").waitFor();
    await press("Rotate secret");
    await inWindow("Rotate secret").click();
    await see(/^whsec_/);
    await inWindow("I have stored it").click();
    await press("Delete");
    await inWindow("Delete webhook").click();
    await see("A webhook tells your program");
    expect((await ui.service.call("GET", "/v1/webhooks")).body.data).toEqual([]);
  });
});

describe("the page Keys", () => {
  browserTest("creates a key with scopes for a project, and shows it once", async () => {
    await go("/keys");
    await follow("Create key");
    await fill("Name", "Robot");
    await ui.page.getByLabel("May do everything").uncheck();
    await ui.page.getByLabel("emails:read", { exact: true }).uncheck();
    await ui.page.getByLabel("domains:read", { exact: true }).check();
    await fill("Recipients", "@example.org");
    await ui.page.getByLabel("Each send waits").check();
    await inWindow("Create key").click();
    const secret = await ui.page.getByRole("dialog").getByText(/^pr_/).textContent();
    await inWindow("I have stored it").click();
    const { body } = await ui.service.call("GET", "/v1/me", undefined, { key: secret ?? "" });
    expect(body.key.scopes).toEqual(["emails:send", "domains:read"]);
    expect(body.project.name).toBe("Default");
    await see("Each send waits until another key approves it");
    expect(await ui.page.getByText(secret ?? "").count()).toBe(0);
  });

  browserTest("renames a key, and revokes it only if its name is typed", async () => {
    await press("Rename");
    await fill("Name", "Old robot");
    await inWindow("Rename key").click();
    await press("Revoke");
    expect(await inWindow("Revoke key").isDisabled()).toBe(true);
    await fill("Type Old robot to confirm", "Old robot");
    await inWindow("Revoke key").click();
    await ui.page.getByRole("article").getByText("Revoked").first().waitFor();
  });
});

describe("the page Templates", () => {
  browserTest("creates a template, previews each change, and names what the data lacks", async () => {
    await go("/templates");
    await follow("Create a template");
    await fill("Name", "Welcome");
    await inWindow("Create template").click();
    await ui.page.waitForURL(/\/templates\/tpl_\w+$/);
    await ui.page.frameLocator("iframe").getByText("Hello name,").waitFor();
    await ui.page.getByRole("textbox", { name: "HTML" }).fill("<p>Dear {{ user.first }},</p>");
    await see("The data lacks");
    await press("Add to the data");
    await ui.page.frameLocator("iframe").getByText("Dear first,").waitFor();
    await fill("Subject", "Hi {{ user.first }}");
    await ui.page.getByRole("heading", { name: "Hi first" }).waitFor();
    await press("Save template");
    await see("Saved.");
    const [template] = (await ui.service.call("GET", "/v1/templates")).body.data;
    expect([template.subject, template.html]).toEqual([
      "Hi {{ user.first }}",
      "<p>Dear {{ user.first }},</p>",
    ]);
  });

  browserTest("shows a syntax error in the words of the API, and deletes a template", async () => {
    await ui.page.getByRole("tab", { name: "HTML" }).click();
    await ui.page.getByRole("textbox", { name: "HTML" }).fill("{% if %}");
    await ui.page.getByRole("region", { name: "Preview" }).getByRole("alert").waitFor();
    await press("Delete");
    await inWindow("Delete template").click();
    await see("A template is a message with placeholders");
  });
});

browserTest("a key of one project is led to no page that needs an account-wide key", async () => {
  const links = async (key: string) => {
    const { page } = await ui.browser.visit(ui.service.url, "/", { key });
    await page.getByText("Deliver to a real mailbox").waitFor();
    const settings = await page.getByText("See the settings").count();
    await page.keyboard.press("?");
    const help = page.getByRole("dialog");
    await help.getByText("Messages", { exact: true }).waitFor();
    const goes = await help.getByText(/^(?:Projects|Routes|Audit log|Settings)$/).allTextContents();
    await page.close();
    return { settings, goes };
  };
  expect(await links(ui.service.accountKey)).toEqual({
    settings: 1,
    goes: ["Projects", "Routes", "Audit log", "Settings"],
  });
  expect(await links(ui.service.projectKey)).toEqual({ settings: 0, goes: [] });
});

describe("on the pages that set a project up", () => {
  browserTest("WCAG AA holds, light and dark, wide and narrow", async () => {
    const body = { url: sink.url, eventTypes: ["*"] };
    const { id: webhookId } = (await ui.service.call("POST", "/v1/webhooks", body)).body;
    const wide = { key: ui.service.accountKey };
    const [key] = (await ui.service.call("GET", "/v1/api-keys", undefined, wide)).body.data;
    const source = { name: "Hello", subject: "Hi {{ name }}", html: "<p>Hello</p>", text: "Hello" };
    const template = await ui.service.call("POST", "/v1/templates", source);
    const test = await ui.service.call("POST", `/v1/webhooks/${webhookId}/test`, { type: "bounce" });
    const [domain] = (await ui.service.call("GET", "/v1/domains")).body.data;
    const { page, context } = await ui.browser.visit(ui.service.url, "/", { key: ui.service.accountKey });
    const broken = await brokenPages(page, ui.service.url, [
      ["/domains?create=1", "Add a domain"],
      [`/domains/${domain.id}`, "DNS records"],
      [`/keys/${key.id}?create=1`, "Create an API key"],
      [`/keys/${key.id}`, "Last used"],
      ["/templates?create=1", "Create a template"],
      [`/templates/${template.body.id}`, "Hi name"],
      ["/webhooks?create=1", "Add a webhook"],
      [`/webhooks/${webhookId}?delivery=${test.body.id}`, "Payload"],
    ]);
    expect(broken).toEqual([]);
    await context.close();
  });

  browserTest("no other origin is asked, and the Content-Security-Policy holds", () => {
    expect(ui.visit.faults).toEqual(NO_FAULTS);
  });
});
