import { afterAll, expect } from "bun:test";
import type { Page } from "playwright-core";
import { startOpenIdProvider, type TestProvider } from "../support/peers/openid-provider.ts";
import { freePort } from "../support/redis.ts";
import { startService } from "../support/service.ts";
import { askedFields, focusedField } from "../support/browser.ts";
import { browserTest, dashboard } from "../support/dashboard.ts";

// The provider is another site for the browser: `localhost`, while the service is at 127.0.0.1. So the browser keeps strict cookies
// back, as it does between two companies.

let provider: TestProvider;
const ui = dashboard({
  async start() {
    const port = freePort();
    const publicUrl = `http://127.0.0.1:${port}`;
    provider = await startOpenIdProvider(`${publicUrl}/ui/provider/back`, "postrider", "secret", "localhost");
    provider.people.set("ana", { email: "ana@acme.test", email_verified: true });
    provider.people.set("eve", { email: "eve@elsewhere.test", email_verified: true });
    return startService({
      PORT: String(port),
      PUBLIC_URL: publicUrl,
      OIDC_ISSUER: provider.issuer,
      OIDC_CLIENT_ID: "postrider",
      OIDC_CLIENT_SECRET: "secret",
      OIDC_ALLOW: "@acme.test",
    });
  },
});
afterAll(() => provider?.stop());

/** Notes the navigations of a page: method, place and status. */
function transcript(page: Page): string[] {
  const lines: string[] = [];
  page.on("response", (answer) => {
    const request = answer.request();
    if (!request.isNavigationRequest()) return;
    const { host, pathname } = new URL(answer.url());
    const where = host.startsWith("localhost") ? "provider" : "service";
    const path = pathname.replace(/(interaction|auth)\/[\w-]+/, "$1/…");
    lines.push(`${request.method()} ${where} ${path} ${answer.status()}`);
  });
  return lines;
}

/** Signs in at the provider's own pages, and consents. */
async function atProvider(page: Page, name: string): Promise<void> {
  await page.getByRole("link", { name: /^Sign in with/ }).click();
  await page.locator("input[name=login]").fill(name);
  await page.locator("input[name=password]").fill("x");
  await page.getByRole("button", { name: "Sign-in" }).click();
  await page.getByRole("button", { name: "Continue" }).click();
}

browserTest("a browser comes back from the provider of another site signed in, and stays so", async () => {
  const { page, context } = await ui.browser.visit(ui.service.url, "/sign-in");
  const lines = transcript(page);
  await atProvider(page, "ana");
  await page.waitForURL(`${ui.service.url}/`);
  await page.getByText("ana@acme.test, viewer").first().waitFor();
  expect(lines).toEqual([
    "GET service /ui/provider 302",
    "GET provider /auth 303",
    "GET provider /interaction/… 200",
    "POST provider /interaction/… 303",
    "GET provider /auth/… 303",
    "GET provider /interaction/… 200",
    "POST provider /interaction/… 303",
    "GET provider /auth/… 303",
    "GET service /ui/provider/back 200",
    "GET service / 200",
  ]);
  const cookies = (await context.cookies()).filter(({ name }) => name.includes("postrider"));
  expect(cookies.map(({ name, httpOnly, sameSite }) => [name, httpOnly, sameSite])).toContainEqual([
    "postrider",
    true,
    "Strict",
  ]);
  await page.reload();
  await page.getByText("ana@acme.test, viewer").first().waitFor();
  await page.getByRole("button", { name: "Sign out" }).click();
  await page.waitForURL(/\/sign-in/);
  // An installation with people asks for their address first, and for a key last.
  expect([await askedFields(page), await focusedField(page)]).toEqual([
    ["Email address", "API key"],
    "Email address",
  ]);
  // The provider still knows the browser, and asks for nothing.
  await page.getByRole("link", { name: /^Sign in with/ }).click();
  await page.getByText("ana@acme.test, viewer").first().waitFor();
  await context.close();
});

browserTest("a person who is no member, or declines, is told why and gets no session", async () => {
  const { page, context } = await ui.browser.visit(ui.service.url, "/sign-in");
  await atProvider(page, "eve");
  await page.getByText("eve@elsewhere.test is no member here.").waitFor();
  await page.goto(`${ui.service.url}/sign-in`);
  expect((await context.cookies()).some(({ name }) => name === "postrider")).toBe(false);
  await context.close();
  const other = await ui.browser.visit(ui.service.url, "/sign-in");
  await other.page.getByRole("link", { name: /^Sign in with/ }).click();
  await other.page.getByRole("link", { name: /Cancel|Abort/ }).click();
  await other.page.getByText("The provider refused the sign-in").waitFor();
  await other.page.getByRole("link", { name: "Go on" }).click();
  await other.page.waitForURL(/\/sign-in$/);
  await other.context.close();
});
