import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { UI_HEADER } from "../../src/http/access/own-page.ts";
import { MINUTE_MS } from "../../src/core/time/units.ts";
import { freePort } from "../support/redis.ts";
import { startOpenIdProvider, TestBrowser, type TestProvider } from "../support/peers/openid-provider.ts";
import { startService, type TestService } from "../support/service.ts";
import { shiftedClock } from "../support/shifted-clock.ts";

const clock = shiftedClock();
let provider: TestProvider;
let service: TestService;
let back: string;

beforeAll(async () => {
  const port = freePort();
  const publicUrl = `http://127.0.0.1:${port}`;
  back = `${publicUrl}/ui/provider/back`;
  provider = await startOpenIdProvider(back, "postrider", "secret-of-a-test");
  const settings = {
    ROLES: "api",
    DELIVERY: "mx",
    HTTP_PROXIES: "127.0.0.1",
    PORT: String(port),
    PUBLIC_URL: publicUrl,
    OIDC_ISSUER: provider.issuer,
    OIDC_CLIENT_ID: "postrider",
    OIDC_CLIENT_SECRET: "secret-of-a-test",
    OIDC_ROLE_CLAIM: "groups",
    OIDC_ALLOW: "@acme.test, one@other.test",
  };
  service = await startService(settings, clock);
});
afterAll(async () => {
  await service.stop();
  provider.stop();
});

const wide = (method: string, path: string, body?: unknown) =>
  service.call(method, path, body, { key: service.accountKey });

/** Begins a sign-in, and comes back to the service's URL with the provider's answer. */
async function throughProvider(name: string, claims: Record<string, unknown>) {
  provider.people.set(name, claims);
  const browser = new TestBrowser();
  const begun = await browser.load(`${service.url}/ui/provider`);
  expect(begun.status).toBe(302);
  const answer = await browser.atProvider(begun.headers.get("location") ?? "", name, back);
  return { browser, answer };
}

async function signIn(name: string, claims: Record<string, unknown>) {
  const { browser, answer } = await throughProvider(name, claims);
  const page = await browser.load(answer);
  return { page: await page.text(), cookie: browser.cookies(service.url).get("postrider") ?? null };
}

/** Who the API says has signed in. */
async function member(cookie: string | null) {
  const headers = { cookie: `postrider=${cookie}`, origin: service.url, [UI_HEADER]: "1" };
  const answer = await fetch(`${service.url}/v1/me`, { headers });
  const body = (await answer.json()) as { member?: { email: string; role: string } };
  return [answer.status, body.member?.email, body.member?.role];
}

async function members(): Promise<{ id: string; email: string; role: string }[]> {
  return (await wide("GET", "/v1/members?limit=100")).body.data;
}

const verified = (email: string, groups?: unknown) => ({ email, email_verified: true, groups });

describe("a sign-in by an OpenID provider", () => {
  test("an invited member gets a session, which lasts as one by a link does", async () => {
    await wide("POST", "/v1/members", { email: "ana@example.com", role: "support" });
    const { page, cookie } = await signIn("ana", verified("Ana@Example.com"));
    expect(page).toContain("You are signed in.");
    expect(await member(cookie)).toEqual([200, "ana@example.com", "support"]);
  });

  test.each([
    ["dora", "dora@acme.test", "developer", "developer"],
    ["vera", "vera@acme.test", undefined, "viewer"],
    ["olga", "one@other.test", ["x", "viewer", "owner"], "owner"],
    ["nora", "nora@acme.test", ["Owner", 7, null], "viewer"],
  ])(
    "%s, whose address is allowed, becomes a member with the role that the claim names",
    async (name, email, groups, role) => {
      expect(await member((await signIn(name, verified(email, groups))).cookie)).toEqual([200, email, role]);
    },
  );

  test("the claim changes the role of a member at the next sign-in", async () => {
    await signIn("mia", verified("mia@acme.test", "viewer"));
    expect(await member((await signIn("mia", verified("mia@acme.test", "support"))).cookie)).toEqual([
      200,
      "mia@acme.test",
      "support",
    ]);
  });

  test.each([
    ["no member", verified("eve@elsewhere.test"), "eve@elsewhere.test is no member here."],
    ["a domain that ends like an allowed one", verified("eve@notacme.test"), "is no member here."],
    [
      "an address that only begins like an allowed one",
      verified("eve@acme.test.evil.test"),
      "is no member here.",
    ],
    ["an address that is not verified", { email: "x@acme.test", email_verified: false }, "has not verified"],
    ["a verification in words", { email: "x@acme.test", email_verified: "true" }, "has not verified"],
    ["no address", { email_verified: true }, "sent no email address"],
    ["two addresses in one", verified("a@evil.test,b@acme.test"), "sent no email address"],
  ])("a person with %s gets no session", async (what, claims, words) => {
    const before = (await members()).length;
    const { page, cookie } = await signIn(`person with ${what}`, claims);
    expect([page.includes(words), cookie]).toEqual([true, null]);
    expect((await members()).length).toBe(before);
  });

  test("a disabled member gets no session", async () => {
    await signIn("dan", verified("dan@acme.test"));
    const { id } = (await members()).find(({ email }) => email === "dan@acme.test") ?? { id: "" };
    await wide("PATCH", `/v1/members/${id}`, { status: "disabled" });
    const { page, cookie } = await signIn("dan", verified("dan@acme.test", "owner"));
    expect([page.includes("has been disabled"), cookie]).toEqual([true, null]);
  });
});

describe("an answer that the provider did not give to this browser", () => {
  test("an answer that another browser has fetched opens no session (login CSRF)", async () => {
    const { answer } = await throughProvider("mallory", verified("mallory@acme.test"));
    const victim = new TestBrowser();
    expect(await (await victim.load(answer)).text()).toContain("not begun in this browser");
    await victim.load(`${service.url}/ui/provider`);
    expect(await (await victim.load(answer)).text()).toContain("The provider refused the sign-in");
    expect(victim.cookies(service.url).has("postrider")).toBe(false);
  });

  test("an answer works once", async () => {
    const { browser, answer } = await throughProvider("rosa", verified("rosa@acme.test"));
    const kept = browser.cookies(service.url).get("postrider-provider");
    await browser.load(answer);
    const again = await fetch(answer, { headers: { cookie: `postrider-provider=${kept}` } });
    expect(await again.text()).toContain("The provider refused the sign-in");
    expect(again.headers.get("set-cookie")).toMatch(/^postrider-provider=;/);
  });

  test("an answer after more than ten minutes opens no session", async () => {
    const { browser, answer } = await throughProvider("late", verified("late@acme.test"));
    clock.shift(10 * MINUTE_MS + 1);
    expect(await (await browser.load(answer)).text()).toContain("took too long");
  });

  test.each(["code=x", "error=access_denied&error_description=<script>", ""])(
    "an answer with %p opens no session, and the page shows nothing of it",
    async (query) => {
      const browser = new TestBrowser();
      const begun = await browser.load(`${service.url}/ui/provider`);
      const state = new URL(begun.headers.get("location") ?? "").searchParams.get("state");
      const page = await (await browser.load(`${back}?${query}&state=${state}`)).text();
      expect([page.includes("The provider refused"), page.includes("<script>")]).toEqual([true, false]);
    },
  );

  test("the cookie of a sign-in is no session, and a session is no cookie of a sign-in", async () => {
    const { browser } = await throughProvider("swap", verified("swap@acme.test"));
    const value = browser.cookies(service.url).get("postrider-provider") ?? "";
    expect((await member(value))[0]).toBe(401);
    const { cookie } = await signIn("swap", verified("swap@acme.test"));
    const page = await fetch(`${back}?code=x`, { headers: { cookie: `postrider-provider=${cookie}` } });
    expect(await page.text()).toContain("not begun in this browser");
  });
});
