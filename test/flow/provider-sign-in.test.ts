import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { UI_HEADER } from "../../src/http/access/own-page.ts";
import { HOUR_MS, MINUTE_MS } from "../../src/core/time/units.ts";
import { MAX_REFUSED_AN_HOUR } from "../../src/flows/account/refused-sign-ins.ts";
import { MAX_MEMBERS } from "../../src/store/projects/members.ts";
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
    OIDC_ALLOW: "@acme.test, one@other.test, @Bücher.example, zoë@MÜNCHEN.example",
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
    ["lea", "lea@xn--bcher-kva.example", "viewer", "viewer"],
    ["zoë", "zoë@xn--mnchen-3ya.example", "viewer", "viewer"],
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

  test("the claim demotes the last active owner only after another one has signed in", async () => {
    const role = async (name: string, claim?: string) =>
      (await member((await signIn(name, verified(`${name}@acme.test`, claim))).cookie))[2];
    expect(await role("ida", "owner")).toBe("owner");
    const wanted = { email: "next@acme.test", role: "owner" };
    expect((await wide("POST", "/v1/members", wanted)).status).toBe(201);
    for (const { id, email, role: has } of await members())
      if (has === "owner" && !["ida@acme.test", "next@acme.test"].includes(email))
        await wide("PATCH", `/v1/members/${id}`, { role: "viewer" });
    // The other owner has not signed in yet.
    expect(await role("ida", "viewer")).toBe("owner");
    expect(await role("next")).toBe("owner");
    expect(await role("ida", "viewer")).toBe("viewer");
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

/** The newest entries of the audit trail about refused sign-ins. */
const refused = async (): Promise<Record<string, unknown>[]> =>
  (await wide("GET", "/v1/audit-log?action=sign_in.refuse&limit=100")).body.data;

describe("a refused sign-in", () => {
  test("is an entry of the audit trail with the address that the provider named, and why", async () => {
    await signIn("eva", verified("eva@elsewhere.test"));
    const [entry] = await refused();
    expect(entry).toMatchObject({
      actor: { type: "service" },
      action: "sign_in.refuse",
      target: { type: "sign_in", name: "eva@elsewhere.test" },
      changes: {
        how: [null, "provider"],
        reason: [null, expect.stringContaining("eva@elsewhere.test is no member here.")],
      },
      ip: expect.stringMatching(/^192\.0\.2\./),
      requestId: expect.any(String),
    });
  });

  test("of a member names the member, so that the entries about a person are found by id", async () => {
    await signIn("ina", verified("ina@acme.test"));
    const { id } = (await members()).find(({ email }) => email === "ina@acme.test") ?? { id: "" };
    await signIn("ina", { email: "ina@acme.test", email_verified: false });
    const { body } = await wide("GET", `/v1/audit-log?target=${id}&action=sign_in.refuse`);
    expect(body.data).toHaveLength(1);
  });

  test("by a link or key that is not valid is one, too", async () => {
    for (const [given, how] of [
      [{ token: "x".repeat(32) }, "link"],
      [{ key: "pr_wrong" }, "key"],
    ] as const) {
      const headers = {
        "x-forwarded-for": `198.51.100.${how.length}`,
        origin: service.url,
        [UI_HEADER]: "1",
        "content-type": "application/json",
      };
      const answer = await fetch(`${service.url}/ui/session`, {
        method: "POST",
        headers,
        body: JSON.stringify(given),
      });
      expect(answer.status).toBe(401);
      const [entry] = await refused();
      expect(entry).toMatchObject({ changes: { how: [null, how] }, target: { name: null } });
      expect(JSON.stringify(entry)).not.toContain(Object.values(given)[0]);
    }
  });

  test("is not written beyond sixty an hour, and the next one says how many were left out", async () => {
    clock.shift(HOUR_MS);
    const before = (await refused()).length;
    for (let nth = 0; nth < MAX_REFUSED_AN_HOUR + 3; nth++) await fetch(`${back}?code=x`);
    expect((await refused()).length - before).toBe(MAX_REFUSED_AN_HOUR);
    clock.shift(HOUR_MS);
    await fetch(`${back}?code=x`);
    expect((await refused())[0]).toMatchObject({ changes: { leftOut: [null, 3] } });
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

// The last, because it fills the account.
test("a provider makes no member beyond those that an account may have, and neither does an invitation", async () => {
  const { db } = service.app;
  const [own] = await db.all<{ id: string }>("SELECT id FROM accounts");
  const has = async () => (await db.first<{ n: number }>("SELECT COUNT(*) AS n FROM members"))?.n ?? 0;
  await db.write([
    {
      sql: `WITH RECURSIVE nth(n) AS (VALUES (1) UNION ALL SELECT n + 1 FROM nth WHERE n < ?)
        INSERT INTO members (id, account_id, email, role, sender_ids, status, created_at)
        SELECT 'mem_' || n, ?, n || '@full.test', 'viewer', '[]', 'invited', 1 FROM nth`,
      args: [MAX_MEMBERS - 1 - (await has()), own?.id ?? ""],
    },
  ]);
  expect((await signIn("last", verified("last@acme.test"))).cookie).not.toBeNull();
  expect(await has()).toBe(MAX_MEMBERS);
  const { page, cookie } = await signIn("more", verified("more@acme.test"));
  expect([page.includes("no room for more@acme.test"), cookie]).toEqual([true, null]);
  const invited = await wide("POST", "/v1/members", { email: "more@acme.test", role: "viewer" });
  expect([invited.status, invited.body.error?.message]).toEqual([
    409,
    "An account has at most 1000 members.",
  ]);
  expect(await has()).toBe(MAX_MEMBERS);
});
