import { afterAll, describe, expect } from "bun:test";
import { saveLane } from "../../src/store/installation/lanes.ts";
import { brokenPages } from "../support/axe.ts";
import { startMx, type TestMx } from "../support/mx.ts";
import { startService, verifiedDomain } from "../support/service.ts";
import { NO_FAULTS } from "../support/browser.ts";
import { browserTest, dashboard, WIDE } from "../support/dashboard.ts";

/** A password with characters that have a meaning in a URL, so that a test can look for it. */
const PASSWORD = "s3/cret+of@the:relay%";
const PUBLIC_IP = "203.0.113.5";
const TOPIC = "arn:aws:sns:eu-west-1:123456789012:mail";

let mx: TestMx;
const ui = dashboard({
  async start() {
    mx = startMx({ answers: { MAIL: "421 4.7.0 Too many messages, try again in 100 seconds" } });
    return startService({ DELIVERY: "mx", PUBLIC_IPS: PUBLIC_IP, SMTP_OUT_PORT: String(mx.port) });
  },
  async prepare() {
    // Before the first look at the health of the service, which it keeps for a while.
    const state = JSON.stringify({ refusals: 3, opensAt: Date.now() + 3_600_000 });
    const row = { version: 1, changedBy: "test", changedAt: Date.now(), rank: 2 };
    await ui.service.app.db.write([
      saveLane({ name: "google", state, ...row }),
      saveLane({ name: "yahoo", state, ...row }),
    ]);
    await ui.service.call(
      "PATCH",
      "/v1/account",
      { ownerEmail: "other@example.com" },
      { key: ui.service.accountKey },
    );
  },
  path: "/",
  viewport: WIDE,
});
afterAll(() => mx?.stop());

const { go, see, press, follow, fill, inDialog } = ui;
const fact = (text: RegExp) => ui.page.locator(".facts").getByText(text).first().waitFor();
const gone = (text: string) => ui.page.getByText(text).first().waitFor({ state: "detached" });
const choose = (label: string, option: string) =>
  ui.page.getByLabel(label, { exact: true }).selectOption({ label: option });
const wide = async (method: string, path: string, body?: unknown) =>
  (await ui.service.call(method, path, body, { key: ui.service.accountKey })).body;
/** Calls the API with the account-wide key for the first project. */
const ofProject = async (method: string, path: string, body?: unknown) => {
  const headers = { "X-Service-Product": "default" };
  return (await ui.service.call(method, path, body, { key: ui.service.accountKey, headers })).body;
};
const routeNamed = async (name: string) =>
  (await wide("GET", "/v1/routes")).data.find((route: { name: string }) => route.name === name);

describe("the page of routes", () => {
  browserTest("shows the route of the settings, which it offers no change of", async () => {
    await go("/routes");
    await ui.page.locator(".row", { hasText: "default" }).click();
    await see("Mail goes straight to the recipients' mail servers.");
    await see("make this route");
    expect(await ui.page.getByRole("button", { name: "Edit" }).count()).toBe(0);
  });

  browserTest("creates a relay with a login that it never shows, and changes its rate alone", async () => {
    await go("/routes");
    await follow("Create route");
    await fill("Name", "ses");
    await fill("Server", "smtp://relay.example.com");
    await inDialog("Create route");
    await ui.page.locator(".field.invalid", { hasText: "Server" }).waitFor();
    await fill("Server", "relay.example.com:587");
    await fill("User", "AKIA/1");
    await fill("Password", PASSWORD);
    await fill("Messages a second", "14");
    await ui.page.getByText("Warm up: send more each day").click();
    await fill("Grows to, messages a day", "20000");
    await choose("Above the day's cap", "Leave by default");
    await inDialog("Create route");
    await ui.page.waitForURL(/\/routes\/rte_\w+$/);
    await fact(/relay\.example\.com:587/);
    await fact(/up to 20,000 a day/);
    await press("Edit");
    expect(await ui.page.content()).not.toContain(PASSWORD);
    await fill("Messages a second", "28");
    await inDialog("Save route");
    await fact(/28 a second/);
    const { id: _, createdAt: __, warmUp, ...route } = await routeNamed("ses");
    expect({ ...route, warmUp: { ...warmUp, startedAt: null } }).toEqual({
      name: "ses",
      kind: "relay",
      relayHost: "relay.example.com:587",
      pool: null,
      ratePerSecond: 28,
      warmUp: { targetPerDay: 20_000, overflowRouteId: "default", startedAt: null },
      events: null,
    });
  });

  browserTest("shows the URL of a relay's events with what to enter at its provider", async () => {
    const { id } = await wide("POST", "/v1/routes", {
      name: "events",
      kind: "relay",
      relayUrl: "smtp://relay.example.com",
    });
    await go(`/routes/${id}`);
    await press("Take events");
    await fill("ARN of the SNS topic", "mail");
    await inDialog("Take events");
    await ui.page.locator(".field.invalid", { hasText: "ARN of the SNS topic" }).waitFor();
    await fill("ARN of the SNS topic", TOPIC);
    await inDialog("Take events");
    await see(`/v1/routes/${id}/events/ses`);
    await see("Postrider confirms the subscription");
    await press("Change");
    await choose("Provider", "Postmark");
    await inDialog("Take events");
    await ui.page
      .getByRole("dialog")
      .getByText(/events\/postmark\?secret=[\w-]{24,}/)
      .waitFor();
    await press("I have stored it");
    await see("Its secret was shown once.");
    expect(await ui.page.content()).not.toContain("?secret=");
    await press("Stop taking events");
    await inDialog("Stop taking events");
    await see("A relay only accepts mail.");
    expect((await routeNamed("events")).events).toBeNull();
  });

  browserTest(
    "lets a project and a domain choose routes in order, and deletes no route that is chosen",
    async () => {
      const relayUrl = "smtp://relay.example.com";
      const { id } = await wide("POST", "/v1/routes", { name: "chosen", kind: "relay", relayUrl });
      const domain = await verifiedDomain(ui.service, "routed.test");
      const { project } = (await ui.service.call("GET", "/v1/me")).body;
      for (const [path, read] of [
        [`/projects/${project.id}`, `/v1/senders/${project.id}`],
        [`/domains/${domain}`, `/v1/domains/${domain}`],
      ] as const) {
        await go(path);
        await press("Choose routes");
        await choose("First", "chosen");
        await choose("Second", "default");
        await inDialog("Save routes");
        await ui.page.getByRole("link", { name: "chosen", exact: true }).waitFor();
        const { body } = await ui.service.call("GET", read, undefined, {
          key: path.startsWith("/p") ? ui.service.accountKey : ui.service.projectKey,
        });
        expect(body.routeIds).toEqual([id, "default"]);
      }
      await ui.page.getByRole("link", { name: "chosen", exact: true }).click();
      await press("Delete");
      await fill("Type chosen to confirm", "chosen");
      await inDialog("Delete route");
      await see("A project, domain, unsent broadcast or warm-up names this route.");
      await wide("PATCH", `/v1/senders/${project.id}`, { routeIds: [] });
      await ofProject("PATCH", `/v1/domains/${domain}`, { routeIds: [] });
      await inDialog("Delete route");
      await ui.page.waitForURL(/\/routes$/);
      await gone("chosen");
    },
  );

  browserTest("has kept its Content-Security-Policy and asked no other origin", () => {
    expect(ui.visit.faults).toEqual(NO_FAULTS);
  });
});

describe("the health of the home page", () => {
  browserTest("opens each blocked lane", async () => {
    await go("/");
    await press("Open Yahoo");
    await ui.page.getByRole("row", { name: /Yahoo/ }).waitFor({ state: "detached" });
    await ui.page.getByRole("row", { name: /Google.*Blocked/ }).waitFor();
    await press("Open the lane");
    await see("Done. The next check shows it.");
    await ui.page.getByRole("row", { name: /Google/ }).waitFor({ state: "detached" });
    expect((await wide("GET", "/v1/lanes")).data).toEqual([]);
    await gone("Refused by Google");
  });

  browserTest("links a finding to the page that fixes it", async () => {
    await go("/");
    await ui.page.getByRole("link", { name: "People › Change owner" }).click();
    await fill("Address of the owner", "boss@example.com");
    await inDialog("Change owner");
    await gone("Address of the owner");
    expect((await wide("GET", "/v1/account")).ownerEmail).toBe("boss@example.com");
  });

  browserTest("also checks what DNS says of our addresses if it is asked to", async () => {
    await go("/");
    await press(/^Show \d+ checks? that/);
    await see("Disk:");
    expect(await ui.page.getByText(`Ptr ${PUBLIC_IP}`).count()).toBe(0);
    await press("Check from outside, too");
    await see(`Ptr ${PUBLIC_IP}`);
    expect(await ui.page.getByRole("button", { name: "Check from outside, too" }).count()).toBe(0);
  });
});

browserTest("the page of a message that waits for its lane says until when", async () => {
  const exchange = "mta5.am0.yahoodns.net";
  ui.service.dns.add({ name: exchange, type: "A", data: "127.0.0.1" });
  ui.service.dns.add({ name: "yahoo.test", type: "MX", data: { preference: 10, exchange } });
  await verifiedDomain(ui.service, "waits.test");
  const send = (to: string) => ui.service.send({ from: "hello@waits.test", to });
  await ui.service.message(await send("a@yahoo.test"), "delivery_delayed");
  const id = await send("b@yahoo.test");
  await go(`/messages/${id}`);
  await see(/^Yahoo asked us to wait until \d\d:\d\d UTC/);
  await see("Queued");
});

describe("WCAG AA holds", () => {
  browserTest("on the pages of routes, light and dark, wide and narrow", async () => {
    const { id } = await wide("POST", "/v1/routes", {
      name: "looked at",
      kind: "relay",
      relayUrl: "smtp://relay.example.com",
      events: { provider: "ses", topicArn: TOPIC },
    });
    const { page, context } = await ui.browser.visit(ui.service.url, "/", { key: ui.service.accountKey });
    const broken = await brokenPages(page, ui.service.url, [
      ["/routes", "looked at"],
      ["/routes?create=1", "Create route"],
      [`/routes/${id}`, "Postrider confirms"],
    ]);
    expect(broken).toEqual([]);
    await context.close();
  });
});
