import { describe, expect, setDefaultTimeout } from "bun:test";
import type { Page } from "playwright-core";
import { newSignInLink } from "../../src/flows/account/sign-in.ts";
import { systemClock } from "../../src/clock.ts";
import { UI_HEADER } from "../../src/http/access/own-page.ts";
import { until } from "../support/poll.ts";
import { receivingInboxes } from "../support/service.ts";
import { BROWSER_MS, type SessionCookie } from "../support/browser.ts";
import { browserTest, dashboard } from "../support/dashboard.ts";

// Every page of the dashboard for every role: no page asks for what its reader may not see, and no button sends what is refused. A
// button is pressed, and so is the button of the window that it opens. What would change something is sent for an id that does not
// exist, and with a broken body: the service decides about rights first.

const PHASE_MS = 10_000;
const ID = /\b(?!err_)[a-z]{2,4}_[0-9A-Za-z]{6,}/g;

let paths: string[] = [];
let senderId = "";

const ui = dashboard({
  async prepare() {
    senderId = (await ui.service.call("GET", "/v1/me")).body.project.id;
    const make = async (path: string, body: object, key = ui.service.projectKey) => {
      const made = await ui.service.call("POST", path, body, { key });
      expect([path, made.status < 300]).toEqual([path, true]);
      return made.body;
    };
    const [inboxId] = await receivingInboxes(ui.service, "in.test", ["agent@in.test"]);
    const arrived = await make("/v1/inbound/simulate", {
      to: "agent@in.test",
      from: "ann@example.net",
      subject: "Hi",
      text: "x",
    });
    const message = await make("/v1/emails", {
      from: "hello@in.test",
      to: "bounced@simulator.mail.test",
      subject: "Out",
      text: "x",
    });
    await ui.service.message(message.id, "bounced");
    const domain = await make("/v1/domains", { domain: "new.example.com" });
    const template = await make("/v1/templates", { name: "T", slug: "t", subject: "s", text: "t" });
    const contact = await make("/v1/contacts", { email: "c@example.com" });
    await make("/v1/suppressions", { email: "s@example.com" });
    const webhook = await make("/v1/webhooks", { url: "https://hooks.example.com/x", eventTypes: ["*"] });
    const key = await make("/v1/api-keys", { name: "made", senderId }, ui.service.accountKey);
    const route = await make(
      "/v1/routes",
      { name: "r", kind: "relay", relayUrl: "smtp://relay.example.com" },
      ui.service.accountKey,
    );
    const member = await make(
      "/v1/members",
      { email: "m@example.com", role: "viewer" },
      ui.service.accountKey,
    );
    const waits = await make(
      "/v1/api-keys",
      { name: "waits", senderId, approval: true },
      ui.service.accountKey,
    );
    const waiting = await make(
      "/v1/emails",
      { from: "hello@in.test", to: "w@example.com", subject: "Waits", text: "x" },
      waits.secret,
    );
    const noticed = async () =>
      (await ui.service.call("GET", "/v1/notices")).body.data.find(
        ({ kind }: { kind: string }) => kind === "approval_waiting",
      );
    await until(async () => (await noticed()) !== undefined);
    paths = [
      "/",
      "/messages",
      "/messages?compose=1",
      `/messages/${message.id}`,
      `/messages/${arrived.messageId}`,
      `/messages/${waiting.id}`,
      "/live",
      "/inboxes",
      `/inboxes/${inboxId}`,
      `/threads/${arrived.threadId}`,
      "/notices",
      `/notices/${(await noticed()).id}`,
      "/domains",
      `/domains/${domain.id}`,
      "/templates",
      `/templates/${template.id}`,
      "/contacts",
      `/contacts/${contact.id}`,
      "/suppressions",
      "/suppressions/s@example.com",
      "/webhooks",
      `/webhooks/${webhook.id}`,
      "/keys",
      `/keys/${key.id}`,
      "/projects",
      `/projects/${senderId}`,
      "/routes",
      `/routes/${route.id}`,
      "/people",
      `/people/${member.id}`,
      "/audit",
      "/settings",
      "/settings?view=notices",
      "/suppressions?add=1",
      "/inboxes?create=1",
      "/inboxes?simulate=1",
      ...["domains", "templates", "contacts", "webhooks", "keys", "projects", "routes", "people"].map(
        (name) => `/${name}?create=1`,
      ),
    ];
  },
});
setDefaultTimeout(4 * BROWSER_MS);

let people = 0;
/** Signs a new member in. */
async function sessionOf(role: string, senderIds: readonly string[]): Promise<SessionCookie> {
  const wanted = { email: `person${++people}@example.com`, role, senderIds };
  const { body } = await ui.service.call("POST", "/v1/members", wanted, { key: ui.service.accountKey });
  const token = await newSignInLink({ db: ui.service.app.db, clock: systemClock }, body.id);
  const answer = await fetch(`${ui.service.url}/ui/session`, {
    method: "POST",
    headers: { origin: ui.service.url, [UI_HEADER]: "1", "content-type": "application/json" },
    body: JSON.stringify({ token }),
  });
  const [name = "", value = ""] = (answer.headers.get("set-cookie") ?? "").split(";", 1)[0]?.split("=") ?? [];
  return { name, value, url: ui.service.url, httpOnly: true, sameSite: "Strict" };
}

/**
 * Runs in the page: sends each change for an id that does not exist and with a broken body, and counts the requests that wait for
 * their answer. An interception by the browser would switch its cache off, and each page loads many times.
 */
const SPOILED = `
  globalThis.requestsInHand = 0;
  const { fetch } = globalThis;
  globalThis.fetch = async (path, init) => {
    requestsInHand++;
    try {
      if (!path.includes("/v1/") || init.method === "GET") return await fetch(path, init);
      const other = path.replace(${ID}, (id) => id.split("_", 1)[0] + "_00000000000000000000000000");
      return await fetch(other, init.body === undefined ? init : { ...init, body: "{" });
    } finally {
      requestsInHand--;
    }
  };`;

/** Resolves once the page has drawn twice in a row without a request. */
const SETTLED = `(async () => {
  const drawn = () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
  do {
    while (requestsInHand > 0) await drawn();
    await drawn();
  } while (requestsInHand > 0);
})()`;

/**
 * Opens a path within the app, which asks the service for what it shows. Loading the whole page would take five times as long. The page
 * between, which does not exist, closes what is open on the one before.
 */
const OPEN = `async (path) => {
  for (const next of ["/nowhere", path]) {
    history.pushState(null, "", next);
    dispatchEvent(new PopStateEvent("popstate"));
    await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
  }
}`;

/** Watches the requests of a page to the API. */
async function watched(page: Page) {
  const refused: string[] = [];
  let asked = 0;
  page.on("request", (request) => {
    if (request.method() !== "GET" && request.url().includes("/v1/")) asked++;
  });
  page.on("response", (answer) => {
    if (answer.status() === 403)
      refused.push(`${answer.request().method()} ${new URL(answer.url()).pathname}`);
  });
  await page.addInitScript(SPOILED);
  await page.reload();
  const settled = async () => {
    // A press may lead to another page, which ends what runs in this one.
    await page.evaluate(SETTLED).catch(() => page.waitForFunction(SETTLED));
  };
  const open = async (path: string) => {
    await page.evaluate(`(${OPEN})(${JSON.stringify(path)})`);
    await settled();
  };
  return { refused, asked: () => asked, settled, open };
}

/** Buttons that ask the service for nothing, and rows that open. */
const QUIET = /^(?:Copy|Close|Show|Hide|Retrying|HTML|Text|Data|Headers|Source|SMTP|curl|TypeScript|\d|$)/;
const BUTTONS = "main button:visible:not(:disabled), main a.button:visible";

/** Presses the button of an open window, after what it asks to type. */
async function confirm(page: Page): Promise<void> {
  const dialog = page.locator("dialog[open]");
  if ((await dialog.count()) === 0) return;
  // Read at once: a locator would wait for a label that the window does not have.
  const [label = ""] = await dialog.locator("label").allTextContents();
  const typed = /^Type (.+) to confirm$/.exec(label);
  if (typed !== null)
    await dialog
      .locator("input")
      .first()
      .fill(typed[1] ?? "");
  const submit = dialog.locator("[type=submit]:not(:disabled), .dialog-foot .danger:not(:disabled)").first();
  if ((await submit.count()) > 0) await submit.click();
}

describe("the dashboard", () => {
  browserTest.each([
    // Role, whether it is limited to a project, and the least number of changes that its buttons ask for.
    ["developer", true, 40],
    ["support", false, 10],
    ["viewer", false, 2],
  ] as const)(
    "offers a %s, limited to a project: %p, no page or button that the service refuses",
    async (role, limited, atLeast) => {
      const session = await sessionOf(role, limited ? [senderId] : []);
      const { page, context } = await ui.browser.visit(ui.service.url, "/", { session });
      context.setDefaultTimeout(PHASE_MS);
      const { refused, settled, asked, open } = await watched(page);
      const faults: string[] = [];
      const known = new Set<string>();
      const blame = (what: string) => {
        faults.push(...refused.splice(0).map((request) => `${what}: ${request}`));
      };
      for (const path of paths) {
        await open(path);
        blame(path);
        const labels = await page
          .locator(BUTTONS)
          .evaluateAll((all) =>
            all.map((one) => (one.getAttribute("aria-label") ?? one.textContent ?? "").trim()),
          );
        // A window hides the buttons of its page.
        const opensWindow = /[?](?:create|add|simulate)=/.test(path);
        for (const [at, label] of opensWindow ? [] : labels.entries()) {
          const kind = `${path.split(/[/?]/)[1]} ${label}`;
          if (QUIET.test(label) || known.has(kind)) continue;
          known.add(kind);
          if (page.url() !== ui.service.url + path || (await page.locator("dialog[open]").count()) > 0) {
            await open(path);
          }
          const button = page.locator(BUTTONS).nth(at);
          if ((await button.count()) === 0) continue;
          await button.click({ noWaitAfter: true });
          await settled();
          await confirm(page);
          await settled();
          blame(`${path} "${label}"`);
        }
        if (opensWindow) await confirm(page);
        await settled();
        blame(`the window of ${path}`);
      }
      await context.close();
      blame("the end");
      expect(faults).toEqual([]);
      expect(asked()).toBeGreaterThanOrEqual(atLeast);
    },
  );
});
