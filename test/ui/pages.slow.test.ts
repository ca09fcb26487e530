import { describe, expect } from "bun:test";
import { brokenPages, brokenRules } from "../support/axe.ts";
import { receivingInboxes, SERVICE_DOMAIN } from "../support/service.ts";
import { NO_FAULTS } from "../support/browser.ts";
import { browserTest, dashboard, WIDE } from "../support/dashboard.ts";

const FROM = { email: `hello@onboarding.${SERVICE_DOMAIN}`, name: "Acme" };
const SIMULATOR = `simulator.${SERVICE_DOMAIN}`;

const ui = dashboard({ path: "/", viewport: WIDE });

const { go, see, press, follow, fill } = ui;

/** Sends a message over the API. Returns its id. */
const send = (to: string, subject: string, more: object = {}) =>
  ui.service.send({ from: FROM, to, subject, text: "Hello", ...more });

describe("the dashboard", () => {
  browserTest("ticks a first step on Home as soon as it is done", async () => {
    // A domain below the service's own name is verified from the start, which is no step of the user.
    await ui.service.call("POST", "/v1/domains", { domain: `inbox.${SERVICE_DOMAIN}` });
    await go("/");
    await see("0 of 5");
    await send(`delivered@${SIMULATOR}`, "First");
    await see("1 of 5");
    await see("Every message so far has arrived.");
  });

  browserTest("sends a message from the compose window, and shows the send as code", async () => {
    await go("/messages");
    await see("First");
    await ui.page.keyboard.press("c");
    await fill("To", `Ana <delivered@${SIMULATOR}>`);
    await fill("Subject", "From the window");
    await fill("Text", "It's written here.");
    await ui.page.getByRole("tab", { name: "curl" }).click();
    await see(/curl http.*\/v1\/emails/);
    await ui.page.getByRole("tab", { name: "TypeScript" }).click();
    await see(/client\.emails\.send/);
    await press("Send message");
    await ui.page.waitForURL(/\/messages\/msg_\w+$/);
    await see("Delivered by the simulator");
    expect((await ui.service.call("GET", "/v1/emails?q=window")).body.data).toHaveLength(1);
  });

  browserTest("shows its content before its script runs, and takes up what is typed meanwhile", async () => {
    const script = "**/ui/assets/main-*.js";
    const held = Promise.withResolvers<void>();
    await ui.page.route(script, async (route) => {
      await held.promise;
      await route.continue();
    });
    const opened = go("/messages");
    await see("From the window");
    await ui.page.getByRole("searchbox").fill("window");
    held.resolve();
    await opened;
    await ui.page.waitForURL(/q=window/);
    await ui.page.unroute(script);
  });

  browserTest("shows the API's words at the field that it refuses", async () => {
    await go("/messages?compose=1");
    await fill("From", "ana@elsewhere.example");
    await fill("To", `delivered@${SIMULATOR}`);
    await fill("Subject", "Refused");
    await fill("Text", "x");
    await press("Send message");
    const error = ui.page
      .locator(".field.invalid")
      .filter({ has: ui.page.getByLabel("From", { exact: true }) });
    expect(await error.locator(".field-error").textContent()).toContain("elsewhere.example");
  });

  browserTest(
    "puts a new message on top of the list, and holds it back while the list is scrolled",
    async () => {
      for (let n = 0; n < 60; n++) await send(`delivered+${n}@${SIMULATOR}`, `Filler ${n}`);
      await go("/messages");
      await see("Filler 59");
      await send(`delivered@${SIMULATOR}`, "Newest of all");
      await see("Newest of all");
      await ui.page.locator(".list-scroll").evaluate((list: { scrollTop: number }) => {
        list.scrollTop = 600;
      });
      await send(`delivered@${SIMULATOR}`, "Even newer");
      await press("1 new");
      await see("Even newer");
    },
  );

  browserTest("answers why a message bounced, and what to do", async () => {
    const id = await send(`bounced@${SIMULATOR}`, "To nobody");
    await ui.service.message(id, "bounced");
    await go("/messages?status=bounced");
    await see("To nobody");
    await ui.page.keyboard.press("j");
    await ui.page.locator(".row:focus").press("Enter");
    await ui.page.waitForURL(new RegExp(id));
    await ui.page.getByRole("region", { name: "Why" }).waitFor();
    await see(/550 5\.1\.1/);
    await ui.page.getByRole("tab", { name: "SMTP" }).click();
    await see(/Try 1 to/);
    await ui.page.keyboard.press("Escape");
    await ui.page.waitForURL(/\/messages\?status=bounced$/);
  });

  browserTest("does not offer to read again what does not exist", async () => {
    await go("/messages/msg_01hzy8");
    await see("No such message.");
    expect(await ui.page.getByRole("button", { name: "Try again" }).count()).toBe(0);
  });

  browserTest(
    "shows html in a frame, as on a phone, and loads remote images only when asked to",
    async () => {
      const html = `<h1>Shown in a frame</h1><img src="https://pixel.example/o.png">`;
      const id = await send(`delivered@${SIMULATOR}`, "With html", { html });
      await go(`/messages/${id}`);
      await ui.page.frameLocator("iframe").getByText("Shown in a frame").waitFor();
      await press("Phone");
      expect((await ui.page.locator("iframe").boundingBox())?.width).toBeLessThan(400);
      expect(await ui.page.locator("iframe").getAttribute("src")).toContain("images=0");
      await ui.page.getByLabel("Load remote images").check();
      expect(await ui.page.locator("iframe").getAttribute("src")).toContain("images=1");
      await ui.page.frameLocator("iframe").getByText("Shown in a frame").waitFor();
    },
  );

  browserTest("reschedules and cancels a send, and sends it again", async () => {
    const tomorrow = new Date(Date.now() + 86_400_000).toISOString();
    const id = await send(`delivered@${SIMULATOR}`, "Later", { scheduledAt: tomorrow });
    await go(`/messages/${id}`);
    await press("Reschedule");
    await ui.page.getByRole("dialog").getByRole("button", { name: "Reschedule" }).click();
    await ui.page.getByRole("dialog").waitFor({ state: "detached" });
    await press("Cancel the send");
    await ui.page.getByRole("dialog").getByRole("button", { name: "Cancel the send" }).click();
    await see("It was canceled before its time.");
    await press("Send again");
    await press("Send message");
    await ui.page.waitForURL(
      (url) => /^\/messages\/msg_\w+$/.test(url.pathname) && !url.pathname.endsWith(id),
    );
    await see("Delivered by the simulator");
  });

  browserTest("finds a message, and keeps the search in the URL", async () => {
    await send(`delivered@${SIMULATOR}`, "A needle");
    await go("/messages");
    await see("A needle");
    await ui.page.keyboard.press("/");
    await ui.page.keyboard.type("needle");
    await ui.page.waitForURL(/q=needle/);
    await ui.page.getByText("Newest of all").waitFor({ state: "detached" });
    await ui.page.reload();
    await see("A needle");
    expect(await ui.page.locator(".list .row").count()).toBe(1);
  });

  browserTest(
    "shows events in the moment they happen, filtered, and holds them back while paused",
    async () => {
      await go("/live?show=trouble");
      await see("Live", true);
      const id = await send(`bounced@${SIMULATOR}`, "Bad news");
      await see(/550 5\.1\.1/);
      expect(await ui.page.getByText("Captured", { exact: true }).locator("visible=true").count()).toBe(1);
      await ui.page.keyboard.press("p");
      await see("Paused. New events are kept.");
      const later = await send(`bounced@${SIMULATOR}`, "More bad news");
      const rowOf = (message: string) => ui.page.locator(`.row[href="/messages/${message}"]`);
      const more = ui.page.getByRole("button", { name: /Continue \(\d+\)/ });
      await more.waitFor();
      expect(await rowOf(later).count()).toBe(0);
      await more.click();
      await rowOf(later).waitFor();
      await rowOf(id).waitFor();
    },
  );

  browserTest("creates an inbox, simulates a message and answers it with a quotation", async () => {
    await receivingInboxes(ui.service, "in.test", []);
    await go("/inboxes");
    await follow("Create an inbox");
    await fill("Address", "help@in.test");
    await press("Create inbox");
    await follow("Simulate");
    await fill("Subject", "Where is it?");
    await fill("Text", "I have waited for a week.");
    await press("Simulate message");
    await ui.page.waitForURL(/\/threads\/thr_/);
    await ui.page.getByPlaceholder("Write a reply").waitFor();
    await ui.page.keyboard.press("r");
    await ui.page.keyboard.type("It is on its way.");
    await press("Send reply");
    await see("It is on its way.");
    const { data } = (await ui.service.call("GET", "/v1/emails?direction=outbound&q=Where")).body;
    // A reply leaves ten seconds later, until when it can be taken back.
    await ui.service.call("PATCH", `/v1/emails/${data[0].id}`, { scheduledAt: new Date().toISOString() });
    const reply = await ui.service.message(data[0].id, "delivered");
    expect(reply.text).toMatch(/^It is on its way\.\n\nOn .+, Ana wrote:\n> I have waited for a week\./);
    await press("Archive");
    await ui.page.waitForURL(/\/inboxes$/);
    await ui.page.getByText("Where is it?").waitFor({ state: "detached" });
  });

  browserTest("offers to register the domain of a new inbox", async () => {
    await go("/inboxes?create=1");
    await fill("Address", "help@new.example");
    await press("Create inbox");
    await press("Add the domain new.example and create the inbox");
    await ui.page.getByRole("dialog").waitFor({ state: "detached" });
    await ui.page.getByRole("option", { name: "help@new.example" }).waitFor({ state: "attached" });
  });

  browserTest("shows nothing of another project after a switch", async () => {
    const wide = { key: ui.service.accountKey };
    await ui.service.call("POST", "/v1/senders", { name: "Other shop" }, wide);
    await go("/messages");
    await see("A needle");
    await ui.page.getByLabel("Project").first().selectOption({ label: "Other shop" });
    await follow("Messages");
    await see("Messages that you send and receive appear here");
    expect(await ui.page.getByText("A needle").count()).toBe(0);
    await ui.page.getByLabel("Project").first().selectOption({ label: "Default" });
  });

  browserTest("signs in with a key, returns to the page that was asked for, and signs out", async () => {
    const guest = await ui.browser.visit(ui.service.url, "/messages?status=bounced");
    await guest.page.waitForURL(/\/sign-in\?next=/);
    await guest.page.getByLabel("API key").fill("pr_wrong");
    await guest.page.getByRole("button", { name: "Sign in" }).click();
    await guest.page.getByRole("button", { name: "Copy request id" }).waitFor();
    await guest.page.getByLabel("API key").fill(ui.service.projectKey);
    await guest.page.getByRole("button", { name: "Sign in" }).click();
    await guest.page.waitForURL(/\/messages\?status=bounced$/);
    await guest.page.getByRole("button", { name: "Sign out" }).click();
    await guest.page.waitForURL(/\/sign-in$/);
    expect(guest.faults).toEqual(NO_FAULTS);
    await guest.context.close();
  });

  browserTest("invites a person, who signs in with the mailed link and ends as the owner wants", async () => {
    await go("/people?create=1");
    await ui.page.getByLabel("Email address").fill("ben@example.com");
    await ui.page.getByRole("button", { name: "Send invitation" }).click();
    await ui.page.getByRole("heading", { name: "ben@example.com" }).waitFor();
    const wide = { key: ui.service.accountKey };
    const { body: sent } = await ui.service.call("GET", "/v1/emails?to=ben@example.com");
    const { body: message } = await ui.service.call("GET", `/v1/emails/${sent.data[0].id}`);
    const link = new URL(/http\S+#\S+/.exec(message.text)?.[0] ?? "");
    const guest = await ui.browser.visit(ui.service.url, `/start${link.hash}`);
    await guest.page.getByText("ben@example.com, viewer").first().waitFor();
    expect(await guest.page.getByRole("link", { name: "People" }).count()).toBe(0);
    await ui.page.reload();
    await ui.page.getByRole("button", { name: "End session" }).click();
    await see("Not signed in.");
    const [{ id }] = (await ui.service.call("GET", "/v1/members", undefined, wide)).body.data;
    expect((await ui.service.call("GET", `/v1/members/${id}/sessions`, undefined, wide)).body.data).toEqual(
      [],
    );
    await guest.context.close();
  });

  browserTest("hides what the scopes of the key do not allow", async () => {
    const wide = { key: ui.service.accountKey };
    const [{ id: senderId }] = (await ui.service.call("GET", "/v1/senders?limit=1", undefined, wide)).body
      .data;
    const body = { name: "reader", senderId, scopes: ["emails:read"] };
    const key = (await ui.service.call("POST", "/v1/api-keys", body, wide)).body.secret;
    const reader = await ui.browser.visit(ui.service.url, "/", { key });
    const refused: string[] = [];
    reader.page.on("response", (answer) => {
      if (answer.status() >= 400) refused.push(answer.url());
    });
    await reader.page.reload();
    await reader.page.getByRole("heading", { name: "Recent trouble" }).waitFor();
    const sections = reader.page.locator(".section:visible .section-name");
    expect(await sections.allTextContents()).toEqual(["Home", "Messages", "Live"]);
    expect(await reader.page.getByText("Send a message").count()).toBe(0);
    await reader.page.goto(`${ui.service.url}/inboxes`);
    await reader.page.getByText("lacks the scope threads:read").waitFor();
    expect(refused).toEqual([]);
    await reader.context.close();
  });

  browserTest("has asked no other origin but for the image, and kept its Content-Security-Policy", () => {
    const foreign = ui.visit.faults.foreign.filter((url) => url !== "https://pixel.example/o.png");
    expect({ ...ui.visit.faults, foreign }).toEqual(NO_FAULTS);
  });
});

describe("WCAG AA holds", () => {
  const pages = async (): Promise<[path: string, ready: string][]> => {
    const [message] = (await ui.service.call("GET", "/v1/emails?status=bounced")).body.data;
    const [thread] = (await ui.service.call("GET", "/v1/threads?archived=true")).body.data;
    return [
      ["/", "Figures"],
      ["/messages", "A needle"],
      ["/messages?compose=1", "Send a message"],
      [`/messages/${message.id}`, "Why?"],
      [`/messages/${message.id}?tab=smtp`, "Try 1 to"],
      [`/messages/${message.id}?tab=headers`, "Message-ID"],
      ["/live", "Live"],
      ["/inboxes", "Open"],
      ["/inboxes?simulate=1", "Simulate a message"],
      [`/threads/${thread.id}`, "I have waited for a week."],
      ["/nowhere", "There is no page at this address."],
    ];
  };

  browserTest("on every page, light and dark, wide and narrow", async () => {
    const { page, context } = await ui.browser.visit(ui.service.url, "/sign-in", {
      key: ui.service.accountKey,
    });
    await page.getByRole("heading", { name: "Sign in" }).waitFor();
    expect(await brokenRules(page)).toEqual([]);
    expect(await brokenPages(page, ui.service.url, await pages())).toEqual([]);
    await context.close();
  });
});
