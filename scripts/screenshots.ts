/**
 * Makes a picture of each page of the dashboard, light and dark, in docs/images. Needs Chromium.
 * Usage: bun run screenshots [page …]
 */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { sessionCookie, startBrowser } from "../test/support/browser.ts";
import { startService, type TestService } from "../test/support/service.ts";

const FOLDER = join(import.meta.dir, "../docs/images");
const VIEWPORT = { width: 1280, height: 800 };
const DOMAIN = "postrider.localhost";
const SIMULATOR = `simulator.${DOMAIN}`;

/** A page, and words that it shows as soon as it is complete. */
interface Picture {
  name: string;
  path: string;
  ready: string;
}

/** Calls the API. @throws if it refuses */
async function call(service: TestService, method: string, path: string, body?: unknown) {
  const answer = await service.call(method, path, body);
  if (answer.status >= 400) throw new Error(`${method} ${path}: ${JSON.stringify(answer.body)}`);
  return answer.body;
}

const HTML = `<body style="margin:0;background:#f4f4f7;font-family:Helvetica,Arial,sans-serif">
<div style="max-width:520px;margin:24px auto;padding:32px;background:#fff;border-radius:8px;color:#1f2937">
<h1 style="font-size:22px;margin:0 0 12px">Welcome to Acme, Ana</h1>
<p style="line-height:1.6;color:#4b5563">Your account is ready. Confirm your address so that we can reach you.</p>
<p><a href="https://acme.example/confirm" style="display:inline-block;padding:12px 20px;border-radius:6px;background:#4f46e5;color:#fff;text-decoration:none">Confirm address</a></p>
</div></body>`;

/** Messages as a small shop sends them: recipient and subject. */
const SENT: readonly [to: string, subject: string][] = [
  ["delivered+ben", "Your order has shipped"],
  ["delivered+eve", "Your order has shipped"],
  ["bounced+kim", "Invoice for November"],
  ["delivered+joe", "Invoice for November"],
  ["delayed+mia", "Reset your password"],
  ["delivered+tom", "Reset your password"],
  ["complained+sam", "What is new in December"],
  ["delivered+lea", "What is new in December"],
];

/** Fills a new installation with mail. Returns the pages to take pictures of. */
async function fill(service: TestService): Promise<Picture[]> {
  const { id: domainId } = await call(service, "POST", "/v1/domains", { domain: "mail.acme.example" });
  await call(service, "POST", `/v1/domains/${domainId}/verify`);
  await call(service, "PATCH", `/v1/domains/${domainId}/receiving`, { enabled: true });
  const webhook = await call(service, "POST", "/v1/webhooks", {
    url: `${service.url}/hooks`,
    eventTypes: ["delivery", "bounce", "complaint", "inbound_received"],
  });
  await call(service, "POST", `/v1/webhooks/${webhook.id}/test`);
  const template = await call(service, "POST", "/v1/templates", {
    name: "Welcome",
    subject: "Welcome to Acme, {{ name }}",
    html: HTML.replace("Ana", "{{ name }}"),
  });
  const from = "Acme <hello@mail.acme.example>";
  for (const [to, subject] of SENT)
    await call(service, "POST", "/v1/emails", { from, to: `${to}@${SIMULATOR}`, subject, text: "Hello" });
  const inbox = await call(service, "POST", "/v1/inboxes", {
    address: "support@mail.acme.example",
    displayName: "Acme support",
  });
  const arrive = (name: string, subject: string, text: string, inReplyTo?: string) =>
    call(service, "POST", "/v1/inbound/simulate", {
      inboxId: inbox.id,
      from: { name, email: `${name.split(" ")[0]?.toLowerCase()}@example.net` },
      subject,
      text,
      inReplyTo,
    });
  await arrive("Eve Lind", "Feature request: dark mode", "Hi team, could you add one?");
  await arrive("Tom Berg", "Password reset does not arrive", "Hi, I asked three times.");
  const { threadId } = await arrive(
    "Ben Okafor",
    "Where is my order?",
    "Hello,\n\nI ordered on Monday. Can you tell me when it ships?\n\nBen\n",
  );
  await call(service, "POST", `/v1/threads/${threadId}/reply`, {
    text: "Hello Ben,\n\nit ships tomorrow.\n",
  });
  await arrive("Ben Okafor", "Re: Where is my order?", "Wonderful, thank you!\n", threadId);
  const welcome = { from, to: `Ana <delivered+ana@${SIMULATOR}>`, subject: "Welcome to Acme", html: HTML };
  const { id } = await call(service, "POST", "/v1/emails", { ...welcome, text: "Welcome to Acme, Ana." });
  await service.message(id, "delivered");
  const contact = { email: "ana@example.net", firstName: "Ana", metadata: { customerId: "42" } };
  const { id: contactId } = await call(service, "POST", "/v1/contacts", contact);
  await call(service, "POST", "/v1/suppressions", { email: "ben@example.net", note: "asked by phone" });
  const { project } = await call(service, "GET", "/v1/me");
  return [
    { name: "home", path: "/", ready: "Median time" },
    { name: "messages", path: `/messages/${id}`, ready: "simulated delivery" },
    { name: "compose", path: "/messages?compose=1", ready: "Send message" },
    { name: "live", path: "/live", ready: "Live" },
    { name: "inboxes", path: `/threads/${threadId}`, ready: "Wonderful, thank you!" },
    { name: "contacts", path: `/contacts/${contactId}`, ready: "customerId" },
    { name: "suppressions", path: "/suppressions/ben%40example.net", ready: "It was added by hand" },
    { name: "projects", path: `/projects/${project.id}`, ready: "Recipients today" },
    { name: "settings", path: "/settings", ready: "SERVICE_DOMAIN" },
    { name: "domains", path: `/domains/${domainId}`, ready: "DNS records" },
    { name: "templates", path: `/templates/${template.id}`, ready: "Welcome to Acme, name" },
    { name: "webhooks", path: `/webhooks/${webhook.id}`, ready: "Retrying" },
    { name: "keys", path: "/keys?create=1", ready: "Create an API key" },
  ];
}

/** Sends some messages, and waits until the live tail shows them. */
async function happen(service: TestService, page: Page): Promise<void> {
  for (const [to, subject] of SENT.slice(0, 5)) {
    const item = { from: "hello@mail.acme.example", to: `${to}@${SIMULATOR}`, subject, text: "Hello" };
    await call(service, "POST", "/v1/emails", item);
  }
  await page.getByText("try again later").first().waitFor();
}

const wanted = new Set(process.argv.slice(2));
const service = await startService({ SERVICE_DOMAIN: DOMAIN });
const browser = await startBrowser();
mkdirSync(FOLDER, { recursive: true });
// One for all windows, because sign-ins are limited.
const session = await sessionCookie(service.url, service.accountKey);
for (const { name, path, ready } of await fill(service)) {
  if (wanted.size > 0 && !wanted.has(name)) continue;
  for (const colorScheme of ["light", "dark"] as const) {
    const { page, context } = await browser.visit(service.url, path, {
      session,
      viewport: VIEWPORT,
      colorScheme,
    });
    await page.getByText(ready).first().waitFor();
    if (name === "live") await happen(service, page);
    if (name === "messages") await page.frameLocator("iframe").getByText("Confirm address").waitFor();
    await page.screenshot({ path: join(FOLDER, `${name}-${colorScheme}.png`) });
    console.log(`docs/images/${name}-${colorScheme}.png`);
    await context.close();
  }
}
await browser.close();
await service.stop();
