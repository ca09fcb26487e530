import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { loadConfig } from "../../src/config.ts";
import { UI_HEADER } from "../../src/http/access/own-page.ts";
import { SESSION_MS } from "../../src/http/access/session.ts";
import { raw } from "../../src/http/routing/answer.ts";
import { noteRefused } from "../../src/flows/account/refused-sign-ins.ts";
import { sessionRoutes } from "../../src/http/dashboard/session.ts";
import { projectRoute } from "../../src/http/routing/route.ts";
import { meRoute } from "../../src/http/routes/projects/account.ts";
import { openRateLimiter } from "../../src/queue/rate-limiter.ts";
import { type Called, SESSION_KEY, type TestApi, testApi } from "../support/api.ts";
import { manualClock } from "../support/manual-clock.ts";

const ORIGIN = "http://localhost";
const OWN = { origin: ORIGIN, [UI_HEADER]: "1" };
const PUBLIC = "https://post.example";
const MINUTE = 60_000;

/** A route that browsers load by themselves, which answers with the project it acts for. */
const frame = projectRoute({
  method: "GET",
  path: "/v1/frame",
  operationId: "getFrame",
  summary: "Get a frame",
  scope: "emails:read",
  browserLoads: true,
  answers: { 200: "text/plain" },
  handle: ({ project }) => raw(project.externalId, "text/plain"),
});

const mailLinkTo = async () => undefined;
let api: TestApi;
beforeEach(async () => {
  const config = { ...loadConfig({}), publicUrl: PUBLIC };
  const clock = manualClock();
  const rates = openRateLimiter({ clock, log: { warn() {}, info() {} } }, { redisUrl: null }, config);
  api = await testApi({
    http: { config: { ...config, host: "127.0.0.1", port: 0 } },
    routes: ({ db }) => [
      ...sessionRoutes({
        db,
        config,
        sessionKey: SESSION_KEY,
        noteRefused: noteRefused(db),
        signIns: rates.takeSignIn,
        mailLinkTo,
      }),
      meRoute({ db, config }),
      frame,
    ],
  });
});
afterEach(() => api.close());

const signIn = (key: string, headers: Record<string, string> = OWN): Promise<Called> =>
  api.call("POST", "/ui/session", { key: null, body: { key }, headers });

/** Returns the `Cookie` header that a browser sends after that answer. */
function cookieOf({ headers }: Called): string {
  const cookie = headers.get("set-cookie");
  if (cookie === null) throw new Error("the answer sets no cookie");
  return cookie.split(";")[0] ?? "";
}

async function session(key = api.acme.wide): Promise<string> {
  return cookieOf(await signIn(key));
}

/** Asks with a session's cookie and no key. */
const ask = (
  cookie: string,
  method: string,
  path: string,
  headers: Record<string, string> = OWN,
  body?: unknown,
): Promise<Called> => api.call(method, path, { key: null, headers: { cookie, ...headers }, body });

describe("a sign-in", () => {
  test("sets a cookie that no script reads and no other site sends", async () => {
    const { status, text, headers } = await signIn(api.acme.wide);
    expect([status, text]).toEqual([204, ""]);
    expect(headers.get("set-cookie")).toMatch(
      /^postrider=[\w-]+; Path=\/; Max-Age=43200; HttpOnly; SameSite=Strict$/,
    );
    expect(headers.get("set-cookie")).not.toContain(api.acme.wide);
  });

  test("a sign-in over https sets a cookie that is sent over https only, and that no subdomain can set", async () => {
    const { headers } = await signIn(api.acme.wide, { ...OWN, origin: PUBLIC });
    expect(headers.get("set-cookie")).toMatch(
      /^__Host-postrider=[\w-]+; Path=\/; Max-Age=43200; HttpOnly; SameSite=Strict; Secure$/,
    );
  });

  test("a sign-in with an unknown, revoked or missing key is refused and sets no cookie", async () => {
    const revoked = await api.key({ name: "revoked" });
    const { id } = (await api.call("GET", "/v1/me", { key: revoked })).json.key;
    await api.call("DELETE", `/v1/api-keys/${id}`, { key: api.acme.wide });
    for (const [key, status] of [
      [revoked, 401],
      ["pr_none", 401],
      ["", 401],
    ] as const) {
      const refused = await signIn(key);
      expect([refused.status, refused.headers.get("set-cookie")]).toEqual([status, null]);
    }
    expect((await api.call("POST", "/ui/session", { key: null, headers: OWN, body: {} })).status).toBe(422);
  });

  test("a sign-in by another page is refused, so no page can sign a browser in with its own key", async () => {
    const foreign: Record<string, string>[] = [
      { ...OWN, origin: "https://evil.example" },
      { ...OWN, origin: "null" },
      { origin: ORIGIN },
      { [UI_HEADER]: "1" },
      {},
    ];
    for (const headers of foreign) {
      const refused = await signIn(api.acme.wide, headers);
      expect([refused.status, refused.headers.get("set-cookie")]).toEqual([403, null]);
    }
  });

  test("a sign-in has a body of at most 4 KiB", async () => {
    expect((await signIn("x".repeat(4096))).status).toBe(413);
  });
});

describe("sign-in attempts", () => {
  const verdict = { limit: 1, remaining: 0, resetSeconds: 6, retryAfterSeconds: 6 };

  test("sign-in attempts are limited for each address, whether or not the key is right", async () => {
    const clock = manualClock();
    const config = { ...loadConfig({}), publicUrl: PUBLIC };
    const { takeSignIn } = openRateLimiter(
      { clock, log: { warn() {}, info() {} } },
      { redisUrl: null },
      config,
    );
    for (let attempt = 0; attempt < 10; attempt++) expect((await takeSignIn("192.0.2.1")).allowed).toBe(true);
    expect(await takeSignIn("192.0.2.1")).toMatchObject({ allowed: false, retryAfterSeconds: 6 });
    expect((await takeSignIn("192.0.2.2")).allowed).toBe(true);
    clock.advance(6000);
    expect((await takeSignIn("192.0.2.1")).allowed).toBe(true);
  });

  test("sign-in attempts are counted by client over a socket, and refused with 429", async () => {
    const asked: string[] = [];
    const config = { ...loadConfig({}), publicUrl: PUBLIC };
    const signIns = async (address: string) => ({ ...verdict, allowed: asked.push(address) < 2 });
    const limited = await testApi({
      http: { config: { ...config, host: "127.0.0.1", port: 0, httpProxies: ["127.0.0.1"] } },
      routes: ({ db }) =>
        sessionRoutes({
          db,
          config,
          sessionKey: SESSION_KEY,
          noteRefused: noteRefused(db),
          signIns,
          mailLinkTo,
        }),
    });
    const { port } = await limited.http.start();
    const origin = `http://127.0.0.1:${port}`;
    const attempt = (key: string, forwarded: string) =>
      fetch(`${origin}/ui/session`, {
        method: "POST",
        headers: { ...OWN, origin, "content-type": "application/json", "x-forwarded-for": forwarded },
        body: JSON.stringify({ key }),
      });
    expect((await attempt(limited.acme.wide, "2001:db8::1")).status).toBe(204);
    const refused = await attempt(limited.acme.wide, "2001:db8::2");
    expect([refused.status, refused.headers.get("retry-after")]).toEqual([429, "6"]);
    expect(asked[0]).toBe(asked[1] ?? "");
    await limited.close();
  });
});

describe("a session", () => {
  test("a session has exactly the rights of its key", async () => {
    const narrow = await api.key({ senderId: api.acme.a.id, scopes: ["domains:read"] });
    for (const key of [api.acme.wide, api.acme.a.key, narrow]) {
      const cookie = await session(key);
      const byKey = await api.call("GET", "/v1/me", { key });
      expect((await ask(cookie, "GET", "/v1/me")).json).toEqual(byKey.json);
      expect((await ask(cookie, "GET", "/ui/session", {})).json).toEqual(byKey.json);
    }
    const cookie = await session(narrow);
    expect((await ask(cookie, "GET", "/v1/domains")).status).toBe(200);
    const refused = await ask(cookie, "POST", "/v1/domains", OWN, { domain: "a.example" });
    expect([refused.status, refused.json.error.code]).toEqual([403, "missing_scope"]);
  });

  test("a session of an account-wide key names its project, and no other account's", async () => {
    const cookie = await session();
    const naming = (id: string) => ({ ...OWN, "X-Service-Product": id });
    expect((await ask(cookie, "GET", "/v1/domains")).status).toBe(400);
    expect((await ask(cookie, "GET", "/v1/domains", naming(api.acme.b.id))).status).toBe(200);
    expect((await ask(cookie, "GET", "/v1/domains", naming(api.other.a.id))).status).toBe(404);
  });

  test("a session does not count if the request has a key of its own", async () => {
    const cookie = await session(api.acme.a.key);
    const shown = await api.call("GET", "/v1/me", {
      key: api.acme.b.key,
      headers: { cookie, origin: "https://evil.example" },
    });
    expect([shown.status, shown.json.project.id]).toEqual([200, api.acme.b.id]);
    expect((await api.call("GET", "/v1/me", { key: "pr_none", headers: { cookie, ...OWN } })).status).toBe(
      401,
    );
  });

  test("a session ends with its key, at the next request", async () => {
    const key = await api.key({ name: "lost" });
    const cookie = await session(key);
    const { id } = (await ask(cookie, "GET", "/v1/me")).json.key;
    await api.call("DELETE", `/v1/api-keys/${id}`, { key: api.acme.wide });
    const refused = await ask(cookie, "GET", "/v1/me");
    expect([refused.status, refused.json.error.type]).toEqual([401, "authentication_error"]);
    expect((await ask(cookie, "GET", "/ui/session", {})).status).toBe(401);
  });

  test("a session ends twelve hours after its last use", async () => {
    const cookie = await session();
    api.clock.advance(SESSION_MS - 1);
    const used = await ask(cookie, "GET", "/v1/me");
    expect(used.status).toBe(200);
    api.clock.advance(1);
    expect((await ask(cookie, "GET", "/v1/me")).status).toBe(401);
    api.clock.advance(SESSION_MS - 2);
    expect((await ask(cookieOf(used), "GET", "/v1/me")).status).toBe(200);
    api.clock.advance(1);
    expect((await ask(cookieOf(used), "GET", "/v1/me")).status).toBe(401);
  });

  test("a session gets a new cookie only after ten minutes of use, and never one for a refused request", async () => {
    const cookie = await session();
    const renewed = async (headers: Record<string, string> = OWN) =>
      (await ask(cookie, "GET", "/v1/me", headers)).headers.has("set-cookie");
    api.clock.advance(10 * MINUTE - 1);
    expect(await renewed()).toBe(false);
    api.clock.advance(1);
    expect(await renewed()).toBe(true);
    expect(await renewed({ ...OWN, origin: "https://evil.example" })).toBe(false);
  });

  test("a session over https stays over https when it is renewed", async () => {
    const cookie = cookieOf(await signIn(api.acme.wide, { ...OWN, origin: PUBLIC }));
    api.clock.advance(10 * MINUTE);
    const used = await ask(cookie, "GET", "/v1/me", { [UI_HEADER]: "1" });
    expect(used.headers.get("set-cookie")).toMatch(/^__Host-postrider=.*; Secure$/);
  });

  test.each([
    ["changed", (cookie: string) => `${cookie.slice(0, -2)}${cookie.endsWith("A") ? "BB" : "AA"}`],
    ["cut short", (cookie: string) => cookie.slice(0, 30)],
    ["empty", () => "postrider="],
    ["very long", () => `postrider=${"A".repeat(4000)}`],
    ["a key", () => `postrider=${api.acme.wide}`],
  ])("a session whose cookie is %s is refused", async (_name, spoil) => {
    const refused = await ask(spoil(await session()), "GET", "/v1/me");
    expect([refused.status, refused.json.error.type]).toEqual([401, "authentication_error"]);
  });

  test("a session is found among other cookies of the host", async () => {
    const cookie = `theme=dark; ${await session()}; x=postrider=1`;
    expect((await ask(cookie, "GET", "/v1/me")).status).toBe(200);
  });

  test("a session is ended by signing out, which no other page can do", async () => {
    const cookie = await session();
    expect(
      (await ask(cookie, "DELETE", "/ui/session", { ...OWN, origin: "https://evil.example" })).status,
    ).toBe(403);
    const { status, headers } = await ask(cookie, "DELETE", "/ui/session");
    expect([status, headers.get("set-cookie")]).toEqual([
      204,
      "postrider=; Path=/; Max-Age=0; HttpOnly; SameSite=Strict",
    ]);
  });
});

describe("a request with a session", () => {
  const FOREIGN = [
    "https://evil.example",
    "null",
    "http://localhost:8080",
    "https://localhost.evil.example",
    "",
  ];

  test.each(FOREIGN)("from the origin %p is refused, even a read", async (origin) => {
    const cookie = await session(api.acme.a.key);
    for (const method of ["GET", "POST"]) {
      const refused = await ask(
        cookie,
        method,
        "/v1/domains",
        { ...OWN, origin },
        method === "POST" ? {} : undefined,
      );
      expect([method, refused.status, refused.json.error.type]).toEqual([method, 403, "permission_error"]);
    }
    expect((await ask(cookie, "GET", "/v1/frame", { origin })).status).toBe(403);
  });

  test("a request with a session from the origin of PUBLIC_URL is taken, but not from its host over http", async () => {
    const cookie = await session(api.acme.a.key);
    const from = async (origin: string) =>
      (await ask(cookie, "POST", "/v1/domains", { ...OWN, origin }, { domain: "a.example" })).status;
    expect(await from(PUBLIC)).toBe(201);
    const request = new Request("http://post.example/v1/me", {
      headers: { cookie, origin: "http://post.example", [UI_HEADER]: "1" },
    });
    expect((await api.http.fetch(request)).status).toBe(403);
  });

  test("a request with a session that writes needs our origin and our header", async () => {
    const cookie = await session(api.acme.a.key);
    const write = async (headers: Record<string, string>) =>
      (await ask(cookie, "POST", "/v1/domains", headers, { domain: "a.example" })).status;
    expect(await write({})).toBe(403);
    expect(await write({ origin: ORIGIN })).toBe(403);
    expect(await write({ [UI_HEADER]: "1" })).toBe(403);
    expect(await write({ ...OWN, [UI_HEADER]: "0" })).toBe(403);
    expect(await write(OWN)).toBe(201);
  });

  test("a request with a session that reads needs our header, which a link or a form of another page cannot send", async () => {
    const cookie = await session(api.acme.a.key);
    expect((await ask(cookie, "GET", "/v1/domains", {})).status).toBe(403);
    expect((await ask(cookie, "GET", "/v1/domains", { [UI_HEADER]: "1" })).status).toBe(200);
    expect((await ask(cookie, "HEAD", "/v1/domains", {})).status).toBe(403);
  });

  test("a request with a session that a browser makes by itself needs no header, but must come from our page or the user", async () => {
    const cookie = await session(api.acme.a.key);
    const load = async (site: string | null) =>
      (await ask(cookie, "GET", "/v1/frame", site === null ? {} : { "sec-fetch-site": site })).status;
    for (const site of ["same-origin", "none", null]) expect(await load(site)).toBe(200);
    for (const site of ["same-site", "cross-site", ""]) expect(await load(site)).toBe(403);
  });

  test("a request with a session that a browser makes by itself names its project in the URL", async () => {
    const cookie = await session();
    const load = (query: string, headers: Record<string, string> = {}) =>
      ask(cookie, "GET", `/v1/frame${query}`, headers);
    expect((await load(`?project=${api.acme.b.id}`)).text).toBe("acme-b");
    expect((await load(`?project=${api.other.a.id}`)).status).toBe(404);
    expect((await load("")).status).toBe(400);
    expect((await load("?project=%0d%0aX:%20%ff")).status).toBe(404);
    const own = await session(api.acme.a.key);
    expect((await ask(own, "GET", `/v1/frame?project=${api.acme.b.id}`, {})).status).toBe(403);
  });

  test("a request with a session of any other kind does not take a project from the URL, nor does a request with a key", async () => {
    const cookie = await session();
    expect((await ask(cookie, "GET", `/v1/domains?project=${api.acme.b.id}`)).status).toBe(400);
    const byKey = await api.call("GET", `/v1/frame?project=${api.acme.b.id}`, { key: api.acme.wide });
    expect(byKey.status).toBe(400);
  });

  test("a request with a session makes a change once if it is repeated with its Idempotency-Key", async () => {
    const cookie = await session(api.acme.a.key);
    const headers = { ...OWN, "Idempotency-Key": "once" };
    const first = await ask(cookie, "POST", "/v1/domains", headers, { domain: "a.example" });
    const again = await ask(cookie, "POST", "/v1/domains", headers, { domain: "a.example" });
    expect([first.status, again.status, again.json.id]).toEqual([201, 201, first.json.id]);
  });
});
