import { afterAll, beforeAll, expect, test } from "bun:test";
import type { Browser, Page } from "playwright-core";
import { BROWSER_MS, CHROMIUM, launchChromium } from "../support/browser.ts";
import { startService, type TestService } from "../support/service.ts";

/** Milliseconds: the start of Chromium, and each step on a busy machine. */
const START_MS = BROWSER_MS;
const STEP_MS = 60_000;

const withBrowser = test.skipIf(CHROMIUM === null);

let service: TestService;
let browser: Browser;
beforeAll(async () => {
  if (CHROMIUM === null) return;
  service = await startService();
  browser = await launchChromium();
}, START_MS);
afterAll(async () => {
  await browser?.close();
  await service?.stop();
});

/** The effects of a page: the addresses that it requested, and the browser's complaints. */
interface Watched {
  page: Page;
  requested: string[];
  complaints: string[];
}

async function watchedPage(): Promise<Watched> {
  const page = await browser.newPage();
  page.setDefaultTimeout(STEP_MS);
  const watched: Watched = { page, requested: [], complaints: [] };
  page.on("request", (request) => void watched.requested.push(request.url()));
  page.on("pageerror", (error) => void watched.complaints.push(error.message));
  page.on("console", (message) => {
    // Browsers ask for this icon by themselves.
    if (message.location().url.endsWith("/favicon.ico")) return;
    if (["warning", "error"].includes(message.type())) watched.complaints.push(message.text());
  });
  await page.addInitScript(
    `addEventListener("securitypolicyviolation", (event) => console.error("CSP", event.violatedDirective, event.blockedURI))`,
  );
  return watched;
}

withBrowser(
  "the reference page shows every operation without a foreign request, a breach of its policy or a warning",
  async () => {
    const { page, requested, complaints } = await watchedPage();
    await page.goto(`${service.url}/docs#tag/emails/POST/v1/emails`);
    await page.getByText("Send a message").first().waitFor();
    const { paths } = (await service.call("GET", "/docs/json")).body;
    const headings = Object.keys(paths).filter((path) => path.startsWith("/v1/emails"));
    for (const path of headings)
      await page.getByText(path, { exact: true }).first().waitFor({ state: "attached" });
    await page.goto(`${service.url}/docs#model/SendItem`);
    await page.getByText("SendItem").first().waitFor({ state: "attached" });
    const foreign = requested.filter((url) => !url.startsWith(service.url) && !url.startsWith("data:"));
    expect(foreign).toEqual([]);
    expect(requested).toContain(`${service.url}/docs/json`);
    expect(complaints).toEqual([]);
    await page.close();
  },
  START_MS,
);

withBrowser(
  "the reference page sends a message to the origin from which it was loaded",
  async () => {
    const { page } = await watchedPage();
    // Another origin of the service than the one of PUBLIC_URL.
    const origin = service.url.replace("127.0.0.1", "localhost");
    await page.goto(`${origin}/docs#tag/emails/POST/v1/emails`);
    await page
      .getByRole("button", { name: /Test Request\W*\(post \/v1\/emails\)/i })
      .first()
      .click();
    const dialog = page.getByRole("dialog").first();
    await dialog.getByPlaceholder("Token").first().fill(service.projectKey);
    const [answer] = await Promise.all([
      page.waitForResponse((response) => response.request().method() === "POST"),
      dialog.getByRole("button", { name: /Send post request/i }).click(),
    ]);
    expect(answer.url()).toBe(`${origin}/v1/emails`);
    expect(answer.status()).toBe(202);
    await page.close();
  },
  START_MS,
);
