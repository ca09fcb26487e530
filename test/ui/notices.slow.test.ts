import { afterAll, describe, expect } from "bun:test";
import { FAILING_AFTER_MS } from "../../src/flows/notices/facts.ts";
import { LOOK_PAUSE_MS } from "../../src/flows/notices/watch.ts";
import { brokenPages } from "../support/axe.ts";
import { type HttpsSink, startSink } from "../support/https-sink.ts";
import { until } from "../support/poll.ts";
import { OWNER, startService } from "../support/service.ts";
import { turnUntil, shiftedClock } from "../support/shifted-clock.ts";
import { NO_FAULTS } from "../support/browser.ts";
import { browserTest, dashboard, WIDE } from "../support/dashboard.ts";

const clock = shiftedClock();
const space = { free: 50e9, total: 100e9 };
let sink: HttpsSink;
let webhookId = "";
let otherId = "";

const wide = async (method: string, path: string, body?: unknown, headers?: Record<string, string>) => {
  const answer = await ui.service.call(method, path, body, {
    key: ui.service.accountKey,
    ...(headers === undefined ? {} : { headers }),
  });
  expect(answer.status).toBeLessThan(300);
  return answer.body;
};
const open = async (kind: string) =>
  (await wide("GET", "/v1/notices?ended=false&limit=100")).data.filter(
    (notice: { kind: string }) => notice.kind === kind,
  );
const raised = async (kind: string) => {
  clock.shift(LOOK_PAUSE_MS);
  await turnUntil(clock, async () => (await open(kind)).length > 0);
};

const ui = dashboard({
  async start() {
    sink = startSink();
    sink.answer(() => new Response("no", { status: 500 }));
    return startService({}, clock, { disk: () => space });
  },
  async prepare() {
    otherId = (await wide("POST", "/v1/senders", { name: "Other", externalId: "other" })).id;
    const hook = { url: `${sink.url}/hooks`, eventTypes: ["*"] };
    webhookId = (await wide("POST", "/v1/webhooks", hook, { "X-Service-Product": "other" })).id;
    await wide(
      "POST",
      "/v1/emails",
      { from: "hello@onboarding.mail.test", to: "delivered@simulator.mail.test", subject: "s", text: "t" },
      { "X-Service-Product": "other" },
    );
    const failing = async () =>
      (await wide("GET", `/v1/webhooks/${webhookId}`, undefined, { "X-Service-Product": "other" }))
        .failingSince !== null;
    await until(failing);
  },
  path: "/",
  viewport: WIDE,
});
afterAll(() => sink?.stop());

const { go, see, press, follow, fill } = ui;
const bell = () => ui.page.locator(".sidebar .sections > li:not(.more) a[title=Notices]");

describe("a webhook that fails every push", () => {
  browserTest("is named on Home and amber in the list, before it is a notice", async () => {
    await go("/?project=other");
    await ui.page
      .getByRole("region", { name: "Failing webhooks" })
      .getByText("Failing", { exact: true })
      .waitFor();
    await go("/webhooks?project=other");
    await ui.page.locator(".row .status.tone-late", { hasText: "Failing" }).waitFor();
    await go(`/webhooks/${webhookId}?project=other`);
    await see(/Every push has failed since/);
  });

  browserTest("becomes a notice, whose link opens it in its project", async () => {
    clock.shift(FAILING_AFTER_MS);
    await raised("webhook_failing");
    const [{ id }] = await open("webhook_failing");
    await go(`/notices/${id}?project=default`);
    await see(/Every push to the webhook at/);
    await follow("Open the webhook");
    await ui.page.waitForURL(`${ui.service.url}/webhooks/${webhookId}?project=${otherId}`);
    await see(/Every push has failed since/);
  });
});

describe("the bell", () => {
  browserTest("counts what is unseen, and counts again after an event and after a mark", async () => {
    await go("/notices?project=default");
    await bell().getByText("1 unseen").waitFor();
    space.free = 1e9;
    await raised("disk_low");
    space.free = 50e9;
    await ui.service.call("POST", "/v1/emails", {
      from: "hello@onboarding.mail.test",
      to: "delivered@simulator.mail.test",
      subject: "An event",
      text: "t",
    });
    await bell().getByText("2 unseen").waitFor();
    await ui.page.locator(".row", { hasText: "The disk is nearly full" }).click();
    await press("Mark as seen");
    await bell().getByText("1 unseen").waitFor();
    await press("Mark as unseen");
    await bell().getByText("2 unseen").waitFor();
  });

  browserTest("is at 0 once all are marked as seen, and does not count what is over", async () => {
    await go("/notices?seen=false");
    await press("Mark all as seen");
    await bell().locator(".unread").waitFor({ state: "detached" });
    await see("Nothing needs you.");
    await follow("Open");
    await ui.page
      .getByText(/Every push to the webhook/)
      .first()
      .waitFor();
    clock.shift(LOOK_PAUSE_MS);
    await turnUntil(clock, async () => (await open("disk_low")).length === 0);
    await go("/notices");
    await ui.page.locator(".row", { hasText: "The disk is nearly full" }).getByText("Over").waitFor();
  });

  browserTest("shows its count on a phone, where the sections are under More", async () => {
    const [{ id }] = await open("webhook_failing");
    await wide("PATCH", `/v1/notices/${id}`, { seen: false });
    const phone = await ui.browser.visit(ui.service.url, "/", {
      key: ui.service.accountKey,
      viewport: { width: 390, height: 844 },
    });
    await phone.page.getByRole("button", { name: /^More/ }).getByText("1 unseen").waitFor();
    await phone.context.close();
  });
});

describe("who reads a notice", () => {
  browserTest("with the rights of one project is led to no page that is refused", async () => {
    await wide("PATCH", `/v1/senders/${otherId}`, { suspendedAt: new Date(clock.now()).toISOString() });
    await raised("project_suspended");
    const [{ id }] = await open("project_suspended");
    const { secret } = await wide("POST", "/v1/api-keys", { name: "own", senderId: otherId });
    const own = await ui.browser.visit(ui.service.url, `/notices/${id}`, { key: secret });
    await own.page.getByText("Someone with more rights in this account can fix it.").waitFor();
    expect(await own.page.getByRole("link", { name: "Open the project" }).count()).toBe(0);
    await own.context.close();
    await go(`/notices/${id}`);
    await ui.page.getByRole("link", { name: "Open the project" }).waitFor();
  });
});

describe("the settings of notices", () => {
  browserTest("choose addresses, the webhook with its secret, and kinds", async () => {
    await go("/settings?view=notices");
    expect(await ui.page.getByLabel("Addresses", { exact: true }).inputValue()).toBe(OWNER);
    await fill("Addresses", "ops@one.test\nno address");
    await press("Save");
    await ui.page.locator(".field.invalid", { hasText: "Addresses" }).waitFor();
    await fill("Addresses", "ops@one.test\ndev@one.test");
    await fill("Webhook URL", `${sink.url}/notices`);
    await ui.page.getByLabel("Volume near", { exact: true }).uncheck();
    await press("Save");
    await press("I have stored it");
    await see("Saved.");
    expect((await wide("GET", "/v1/account")).notices).toEqual({
      to: ["ops@one.test", "dev@one.test"],
      webhook: `${sink.url}/notices`,
      off: ["volume_near"],
    });
  });

  browserTest("are shown, not changed, to who may not change them", async () => {
    const { secret } = await wide("POST", "/v1/api-keys", {
      name: "reader",
      scopes: ["senders:read", "metrics:read"],
    });
    const reader = await ui.browser.visit(ui.service.url, "/settings?view=notices", { key: secret });
    await reader.page.getByText("ops@one.test, dev@one.test").waitFor();
    expect(await reader.page.getByRole("button", { name: "Save" }).count()).toBe(0);
    await reader.context.close();
  });
});

browserTest("the pages of notices keep their Content-Security-Policy and ask no other origin", () => {
  expect(ui.visit.faults).toEqual(NO_FAULTS);
});

browserTest("WCAG AA holds on the pages of notices, light and dark, wide and narrow", async () => {
  const { page: other, context } = await ui.browser.visit(ui.service.url, "/", {
    key: ui.service.accountKey,
  });
  const [{ id }] = await open("webhook_failing");
  const broken = await brokenPages(other, ui.service.url, [
    ["/notices", "The disk is nearly full"],
    [`/notices/${id}`, "Open the webhook"],
    ["/settings?view=notices", "Kinds that are sent"],
    ["/?project=other", "Failing"],
  ]);
  expect(broken).toEqual([]);
  await context.close();
});
