import { beforeAll, describe, expect } from "bun:test";
import type { Page } from "playwright-core";
import { SESSION_MS } from "../../src/http/access/session.ts";
import { startService } from "../support/service.ts";
import { shiftedClock } from "../support/shifted-clock.ts";
import { askedFields, CHROMIUM, focusedField, NO_FAULTS, sessionCookie } from "../support/browser.ts";
import { browserTest, dashboard } from "../support/dashboard.ts";

const clock = shiftedClock();
const ui = dashboard({ start: () => startService({}, clock) });

/** Asks from a page as the dashboard does. Returns the status and the text. */
function ask(page: Page, path: string, init: { method?: string; body?: string; headers?: object } = {}) {
  return page.evaluate(
    async ({ path, init }) => {
      const headers = { "x-postrider-ui": "1", "content-type": "application/json", ...init.headers };
      const answer = await fetch(path, { ...init, headers });
      return { status: answer.status, text: await answer.text() };
    },
    { path, init },
  );
}

const signInFrom = (page: Page, key: string) =>
  ask(page, "/ui/session", { method: "POST", body: JSON.stringify({ key }) });

const domains = async () => (await ui.service.call("GET", "/v1/domains")).body.data;

describe("a browser", () => {
  browserTest("signs in, acts as the key, and signs out", async () => {
    const { page, faults } = await ui.browser.visit(ui.service.url, "/sign-in");
    // An installation without members mails no link.
    expect([await askedFields(page), await focusedField(page)]).toEqual([["API key"], "API key"]);
    expect((await ask(page, "/ui/session")).status).toBe(401);
    expect((await signInFrom(page, "pr_wrong")).status).toBe(401);
    expect((await signInFrom(page, ui.service.projectKey)).status).toBe(204);
    expect(await page.evaluate("document.cookie")).toBe("");
    const me = await ui.service.call("GET", "/v1/me");
    expect(JSON.parse((await ask(page, "/ui/session")).text)).toEqual(me.body);
    const made = await ask(page, "/v1/domains", { method: "POST", body: '{"domain":"browser.example"}' });
    expect(made.status).toBe(201);
    expect((await ask(page, "/ui/session", { method: "DELETE" })).status).toBe(204);
    expect((await ask(page, "/v1/me")).status).toBe(401);
    expect(faults).toEqual(NO_FAULTS);
    await page.close();
  });

  browserTest("is signed out at once when its key is revoked", async () => {
    const wide = { key: ui.service.accountKey };
    const made = await ui.service.call("POST", "/v1/api-keys", { name: "browser" }, wide);
    const { page } = await ui.browser.visit(ui.service.url, "/", { key: made.body.secret });
    expect((await ask(page, "/v1/me")).status).toBe(200);
    expect((await ui.service.call("DELETE", `/v1/api-keys/${made.body.id}`, undefined, wide)).status).toBe(
      204,
    );
    expect((await ask(page, "/v1/me")).status).toBe(401);
    await page.close();
  });

  browserTest("sees no data of a project that its key has no part in", async () => {
    const wide = { key: ui.service.accountKey };
    const other = await ui.service.call("POST", "/v1/senders", { externalId: "other", name: "Other" }, wide);
    const headers = { "X-Service-Product": other.body.id };
    const made = await ui.service.call(
      "POST",
      "/v1/domains",
      { domain: "other.example" },
      { ...wide, headers },
    );
    expect(made.status).toBe(201);
    const { page } = await ui.browser.visit(ui.service.url, "/", { key: ui.service.projectKey });
    expect((await ask(page, `/v1/domains/${made.body.id}`)).status).toBe(404);
    expect((await ask(page, "/v1/domains")).text).not.toContain("other.example");
    expect((await ask(page, "/v1/domains", { headers })).status).toBe(403);
    expect((await ask(page, "/v1/senders")).status).toBe(403);
    await page.close();
  });
});

browserTest(
  "a start link that was used leads a browser that is signed in to Home, and others to sign in",
  async () => {
    const used = "/start#a-link-that-was-used";
    const inside = await ui.browser.visit(ui.service.url, used, { key: ui.service.projectKey });
    await inside.page.waitForURL(`${ui.service.url}/`);
    await inside.page.close();
    const outside = await ui.browser.visit(ui.service.url, used);
    await outside.page.getByText("This link has been used").waitFor();
    expect(new URL(outside.page.url()).pathname).toBe("/sign-in");
    await outside.page.getByText("npm run postrider -- open").waitFor();
    expect(await askedFields(outside.page)).toEqual(["API key"]);
    await outside.page.close();
  },
);

describe("the page itself", () => {
  /** Opens a page of the dashboard as a browser does. Returns the page, and the data that it brings. */
  const brought = async (headers: Record<string, string>, path = "/messages") => {
    const answer = await fetch(ui.service.url + path, { headers: { accept: "text/html", ...headers } });
    const html = await answer.text();
    const [, json = ""] = /<script type="application\/json" id="start">(.*?)<\/script>/s.exec(html) ?? [];
    return { html, data: JSON.parse(json) };
  };

  let cookie: string;
  beforeAll(async () => {
    if (CHROMIUM !== null)
      cookie = `postrider=${(await sessionCookie(ui.service.url, ui.service.accountKey)).value}`;
  });

  browserTest("brings the first answers to a session, whatever its messages contain", async () => {
    const from = "hello@onboarding.mail.test";
    const subject = "</script><script>alert(1)</script><!--";
    await ui.service.call("POST", "/v1/emails", {
      from,
      to: "delivered@simulator.mail.test",
      subject,
      text: "x",
    });
    const { html, data } = await brought({ cookie });
    expect(data.me.key.senderId).toBeNull();
    expect(data.values["pages /v1/emails"].rows).toMatchObject([{ subject }]);
    expect(html).toContain("&lt;/script>&lt;script>alert(1)&lt;/script>&lt;!--</span>");
    const nothing = {
      html: expect.stringContaining('<div id="app"></div>'),
      data: { program: "npm run postrider --", provider: null, mailsLinks: false },
    };
    for (const site of ["same-site", "cross-site"])
      expect(await brought({ cookie, "sec-fetch-site": site })).toEqual(nothing);
    expect(await brought({})).toEqual(nothing);
  });

  browserTest("shows the content of each section, and of the item that its path names", async () => {
    const make = async (path: string, body: object) => {
      const made = await ui.service.call("POST", path, body);
      expect([201, 202]).toContain(made.status);
      return made.body as Record<string, string>;
    };
    const domain = await make("/v1/domains", { domain: "drawn.example" });
    const template = await make("/v1/templates", { name: "Drawn template", subject: "Hi", text: "x" });
    const contact = await make("/v1/contacts", { email: "drawn-contact@example.com" });
    await make("/v1/suppressions", { email: "drawn-suppression@example.com" });
    const webhook = await make("/v1/webhooks", {
      url: "https://drawn.example/hook",
      eventTypes: ["delivery"],
    });
    const message = await make("/v1/emails", {
      from: "hello@onboarding.mail.test",
      to: "delivered@simulator.mail.test",
      subject: "Drawn message",
      text: "x",
    });
    const styled = await make("/v1/emails", {
      from: "hello@onboarding.mail.test",
      to: "delivered@simulator.mail.test",
      subject: "Styled message",
      html: "<p>x</p>",
    });
    for (const [path, text, key] of [
      // First, in the browser's own colours: a fault in one page must not reach the others.
      [`/messages/${styled.id}`, ">Styled message</h2>", `message ${styled.id}`],
      ["/", "<h2>Recent trouble</h2>", "trouble"],
      [`/messages/${message.id}?tab=source`, ">Drawn message</h2>", `message ${message.id}`],
      [`/messages/${message.id}?tab=smtp`, ">Drawn message</h2>", `message ${message.id}`],
      ["/live", "<h1>Live</h1>", null],
      ["/inboxes", "<h1>Inboxes</h1>", "inboxes"],
      ["/messages?compose=1", "<h1>Messages</h1>", null],
      ["/messages", "Drawn message", "pages /v1/emails"],
      [`/messages/${message.id}`, ">Drawn message</h2>", `message ${message.id}`],
      ["/domains", "drawn.example", "pages /v1/domains"],
      [`/domains/${domain.id}`, "<h2>drawn.example</h2>", `receiving ${domain.id}`],
      ["/templates", "Drawn template", "pages /v1/templates"],
      [`/templates/${template.id}`, "Drawn template", `template ${template.id}`],
      ["/contacts", "drawn-contact@example.com", "pages /v1/contacts"],
      [`/contacts/${contact.id}`, ">drawn-contact@example.com</h2>", `contact ${contact.id}`],
      ["/suppressions", "drawn-suppression@example.com", "pages /v1/suppressions"],
      ["/webhooks", "drawn.example/hook", "pages /v1/webhooks"],
      [`/webhooks/${webhook.id}`, ">https://drawn.example/hook</h2>", `webhook ${webhook.id}`],
      ["/keys", "Account-wide", "pages /v1/api-keys"],
      ["/projects", "default", "pages /v1/senders"],
      ["/settings", "PUBLIC_URL", "settings"],
      ["/settings?view=notices", "<h1>Settings</h1>", "account"],
      ["/notices", "Nothing needs you.", "pages /v1/notices"],
    ] as const) {
      const { html, data } = await brought({ cookie }, path);
      const drawn = html.slice(0, html.indexOf('<script type="application/json"'));
      const isThere = key === null || key in data.values;
      expect([path, drawn.includes(text), isThere]).toEqual([path, true, true]);
    }
  });

  browserTest("comes in the colours that the browser has chosen", async () => {
    const dark = await brought({ cookie: "postrider.theme=dark" });
    expect(dark.html).toContain('<html lang="en" data-theme="dark">');
    const other = await brought({ cookie: 'postrider.theme="><b>' });
    expect(other.html).toContain('<html lang="en">');
  });

  browserTest("is drawn from them, without a request for its list", async () => {
    const { page, faults } = await ui.browser.visit(ui.service.url, "/livez", { key: ui.service.accountKey });
    const asked: string[] = [];
    page.on("request", (request) => void asked.push(new URL(request.url()).pathname));
    await page.goto(`${ui.service.url}/messages`);
    await page.getByText("</script>").first().waitFor();
    expect(asked.filter((path) => path.startsWith("/v1/") && path !== "/v1/events/stream")).toEqual([]);
    expect(faults).toEqual(NO_FAULTS);
    await page.close();
  });
});

describe("a page of another origin on the same host, to which the browser sends the cookie", () => {
  browserTest("can neither write, nor read, nor frame the dashboard", async () => {
    const before = await domains();
    const target = ui.service.url;
    const html = `<!doctype html><iframe name="into"></iframe><iframe src="${target}/"></iframe>
      <form method="post" enctype="text/plain" target="into" action="${target}/v1/domains">
      <input name='{"domain":"evil.example","x":"' value='"}'></form><img src="${target}/v1/emails/em_1/raw">`;
    const attacker = Bun.serve({
      hostname: "127.0.0.1",
      port: 0,
      fetch: () => new Response(html, { headers: { "content-type": "text/html" } }),
    });
    // A page that asks for nothing else, so that every request below is the attacker's.
    const { page } = await ui.browser.visit(ui.service.url, "/livez", { key: ui.service.projectKey });
    const answers: [string, number, boolean][] = [];
    const noted: Promise<void>[] = [];
    page.on("response", (answer) => {
      const note = async (): Promise<void> => {
        const sent = await answer.request().allHeaders();
        const path = answer.url().slice(target.length);
        if (answer.url().startsWith(target)) answers.push([path, answer.status(), "cookie" in sent]);
      };
      noted.push(note());
    });
    await page.goto(`http://127.0.0.1:${attacker.port}/`);
    await page.evaluate("document.forms[0].submit()");
    const outcomes = await page.evaluate(async (url) => {
      const cookie = { credentials: "include" } as const;
      const body = '{"domain":"evil.example"}';
      const headers = { "x-postrider-ui": "1", "content-type": "application/json" };
      return Promise.all([
        fetch(`${url}/v1/domains`, { ...cookie, mode: "no-cors", method: "POST", body }).then(
          ({ type }) => type,
        ),
        fetch(`${url}/v1/domains`, { ...cookie, method: "POST", body, headers }).catch(() => "refused"),
        fetch(`${url}/v1/domains`, { ...cookie, headers }).catch(() => "refused"),
        fetch(`${url}/v1/me`, { ...cookie }).catch(() => "refused"),
      ]);
    }, target);
    expect(outcomes).toEqual(["opaque", "refused", "refused", "refused"]);
    await page.waitForLoadState("networkidle");
    const framed = page.frames().map((frame) => frame.url());
    expect(framed.filter((url) => url.startsWith(`${target}/`) && !url.includes("/v1/"))).toEqual([]);
    expect(await domains()).toEqual(before);
    await Promise.all(noted);
    // The browser sent the cookie, so it was the service that refused.
    expect(
      answers.filter(([path, , cookie]) => path.startsWith("/v1/domains") && cookie).length,
    ).toBeGreaterThan(0);
    expect(answers.filter(([path, status]) => path.startsWith("/v1/") && status < 400)).toEqual([]);
    await page.close();
    await attacker.stop(true);
  });
});

// The last, because it sets the clock of the service forward.
browserTest("a session that is not used for twelve hours has ended", async () => {
  // The tests above may have used up the sign-ins of this minute.
  clock.shift(60_000);
  const { page } = await ui.browser.visit(ui.service.url, "/", { key: ui.service.projectKey });
  clock.shift(SESSION_MS - 60_000);
  expect((await ask(page, "/v1/me")).status).toBe(200);
  // The answer has prolonged it.
  clock.shift(SESSION_MS - 60_000);
  expect((await ask(page, "/v1/me")).status).toBe(200);
  clock.shift(SESSION_MS);
  expect((await ask(page, "/v1/me")).status).toBe(401);
  await page.close();
});
