import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { type TestApi, testApi } from "../support/api.ts";

let api: TestApi;
beforeAll(async () => {
  api = await testApi();
});
afterAll(() => api.close());

const wide = (method: string, path: string, body?: unknown) =>
  api.call(method, path, { body, key: api.acme.wide });

describe("POST /v1/senders", () => {
  test("makes a project under the default plan and tier, usable at once", async () => {
    const { status, json } = await wide("POST", "/v1/senders", { name: "Shop", externalId: "shop" });
    expect(status).toBe(201);
    expect(json).toEqual({
      id: expect.stringMatching(/^snd_[0-9a-z]{26}$/),
      externalId: "shop",
      name: "Shop",
      plan: "pro",
      trustTier: "basic",
      dailyQuota: null,
      tracking: { opens: true, clicks: true },
      textFromHtml: true,
      routeIds: [],
      retention: { contentDays: null, eventDays: null },
      spamCheckFail: null,
      postalAddress: null,
      suspendedAt: null,
      createdAt: new Date(api.clock.now()).toISOString(),
    });
    const headers = { "x-service-product": "shop" };
    expect((await api.call("GET", "/v1/domains", { key: api.acme.wide, headers })).status).toBe(200);
  });

  test("accepts the fields of a change, except for a suspension", async () => {
    const said = {
      plan: "free",
      trustTier: "new",
      dailyQuota: 5,
      textFromHtml: false,
      tracking: { opens: false },
    };
    const body = { name: "Said", ...said, suspendedAt: "2026-01-01T00:00:00Z" };
    const { status, json } = await wide("POST", "/v1/senders", body);
    expect(status).toBe(201);
    const shown = { ...said, tracking: { opens: false, clicks: true }, suspendedAt: null };
    expect(json).toMatchObject(shown);
    expect((await wide("GET", `/v1/senders/${json.id}`)).json).toMatchObject(shown);
  });

  const derived: [string, string | RegExp][] = [
    ["My Shop & Co.", "my-shop-co"],
    ["  Ünïcode Café ", "unicode-cafe"],
    ["\u6771\u4eac", /^project-[0-9a-z]{8}$/],
    ["---", /^project-[0-9a-z]{8}$/],
  ];
  test.each(derived)("derives an external id from %p", async (name, externalId) => {
    const { json } = await wide("POST", "/v1/senders", { name });
    expect(json.externalId).toMatch(
      typeof externalId === "string" ? new RegExp(`^${externalId}$`) : externalId,
    );
  });

  const rows: [string, unknown, number, Record<string, unknown>][] = [
    ["no name", {}, 422, { param: "name", code: "missing_field" }],
    ["a name of 201 characters", { name: "x".repeat(201) }, 422, { param: "name" }],
    ["an empty external id", { name: "x", externalId: "" }, 422, { param: "externalId" }],
    ["an external id with a space", { name: "x", externalId: "a b" }, 422, { param: "externalId" }],
    ["one of 129 characters", { name: "x", externalId: "x".repeat(129) }, 422, { param: "externalId" }],
    ["one that looks like an id", { name: "x", externalId: "snd_x" }, 422, { param: "externalId" }],
    ["an unknown plan", { name: "x", plan: "gold" }, 422, { param: "plan" }],
    ["an unknown trust tier", { name: "x", trustTier: "gold" }, 422, { param: "trustTier" }],
    ["a quota below 0", { name: "x", dailyQuota: -1 }, 422, { param: "dailyQuota" }],
    ["a name with NUL in it", { name: "a\u0000b" }, 422, { param: "name" }],
    ["one that is taken", { name: "x", externalId: "acme-a" }, 409, { type: "conflict", code: "duplicate" }],
    ["a name whose external id is taken", { name: "Acme A" }, 409, { type: "conflict", param: "externalId" }],
  ];
  test.each(rows)("%s", async (_name, body, status, error) => {
    const called = await wide("POST", "/v1/senders", body);
    expect(called.status).toBe(status);
    expect(called.json.error).toMatchObject(error);
  });

  test("another account may use the same external id", async () => {
    const body = { name: "x", externalId: "acme-a" };
    expect((await api.call("POST", "/v1/senders", { body, key: api.other.wide })).status).toBe(201);
  });
});

describe("a project", () => {
  test("a project is managed only with an account-wide key", async () => {
    for (const [method, path, body] of [
      ["POST", "/v1/senders", { name: "x" }],
      ["GET", "/v1/senders", undefined],
      ["GET", `/v1/senders/${api.acme.a.id}`, undefined],
      ["PATCH", `/v1/senders/${api.acme.a.id}`, { name: "x" }],
      ["GET", "/v1/senders/snd_none", undefined],
      ["POST", "/v1/senders", {}],
      ["POST", "/v1/senders", "no JSON"],
      ["GET", "/v1/senders?limit=0", undefined],
    ] as const) {
      const called = await api.call(method, path, { body });
      expect([called.status, called.json.error.type]).toEqual([403, "permission_error"]);
    }
  });

  test("a project of another account is 404", async () => {
    const path = `/v1/senders/${api.other.a.id}`;
    expect((await wide("GET", path)).status).toBe(404);
    expect((await wide("PATCH", path, { name: "mine now" })).status).toBe(404);
    expect((await api.call("GET", path, { key: api.other.wide })).json.name).toBe("other-a");
  });

  test("a project is listed with its siblings, newest first", async () => {
    const { json } = await api.call("GET", "/v1/senders?limit=1", { key: api.other.wide });
    expect(json.data).toHaveLength(1);
    const next = await api.call("GET", `/v1/senders?limit=100&cursor=${json.nextCursor}`, {
      key: api.other.wide,
    });
    expect(next.json.data.at(-1).externalId).toBe("other-a");
    expect(next.json.nextCursor).toBeNull();
  });

  const path = () => `/v1/senders/${api.acme.a.id}`;
  const changes: [string, object, object][] = [
    ["name", { name: "New" }, { name: "New" }],
    ["external id", { externalId: "acme-new" }, { externalId: "acme-new" }],
    ["plan", { plan: "free" }, { plan: "free" }],
    ["trust tier", { trustTier: "high" }, { trustTier: "high" }],
    ["quota", { dailyQuota: 5 }, { dailyQuota: 5 }],
    ["no quota", { dailyQuota: null }, { dailyQuota: null }],
    ["one tracking switch", { tracking: { opens: false } }, { tracking: { opens: false, clicks: true } }],
    ["the other", { tracking: { clicks: false } }, { tracking: { opens: false, clicks: false } }],
    ["the text part", { textFromHtml: false }, { textFromHtml: false }],
    ["suspension", { suspendedAt: "2026-01-02T03:04:05Z" }, { suspendedAt: "2026-01-02T03:04:05.000Z" }],
    ["its lifting", { suspendedAt: null }, { suspendedAt: null }],
    ["nothing", {}, { name: "New", plan: "free" }],
  ];
  test.each(changes)(
    "a project accepts a change of %s and leaves the rest",
    async (_name, body, expected) => {
      const before = (await wide("GET", path())).json;
      const called = await wide("PATCH", path(), body);
      expect(called.status).toBe(200);
      expect(called.json).toEqual({ ...before, ...expected });
      expect((await wide("GET", path())).json).toEqual(called.json);
    },
  );

  const refused: [string, object, string][] = [
    ["an unknown plan", { plan: "gold" }, "plan"],
    ["a plan every object has", { plan: "constructor" }, "plan"],
    ["an unknown tier", { trustTier: "gold" }, "trustTier"],
    ["a quota below zero", { dailyQuota: -1 }, "dailyQuota"],
    ["a broken quota", { dailyQuota: 1.5 }, "dailyQuota"],
    ["a text part that is a word", { textFromHtml: "yes" }, "textFromHtml"],
    ["an invalid time", { suspendedAt: "yesterday" }, "suspendedAt"],
    ["a time without a zone", { suspendedAt: "2026-01-02T03:04:05" }, "suspendedAt"],
    ["no name", { name: "" }, "name"],
    ["a name with NUL in it", { name: "a\u0000b" }, "name"],
    ["an empty external id", { externalId: "" }, "externalId"],
    ["an external id that looks like an id", { externalId: "snd_x" }, "externalId"],
  ];
  test.each(refused)("a project refuses %s", async (_name, body, param) => {
    const called = await wide("PATCH", path(), body);
    expect([called.status, called.json.error.param]).toEqual([422, param]);
  });

  test("a project is refused a sibling's external id, and is found only by its new one", async () => {
    const { json: made } = await wide("POST", "/v1/senders", { name: "Renamed", externalId: "before" });
    const taken = await wide("PATCH", `/v1/senders/${made.id}`, { externalId: "acme-b" });
    expect([taken.status, taken.json.error.code, taken.json.error.param]).toEqual([
      409,
      "duplicate",
      "externalId",
    ]);
    await wide("PATCH", `/v1/senders/${made.id}`, { externalId: "after" });
    for (const [name, status] of [
      ["before", 404],
      ["after", 200],
    ] as const) {
      const headers = { "x-service-product": name };
      expect((await api.call("GET", "/v1/domains", { key: api.acme.wide, headers })).status).toBe(status);
    }
  });

  test("a project shows an unpaired surrogate in its name as it is stored", async () => {
    const { json: made } = await wide("POST", "/v1/senders", { name: "a\ud800b" });
    expect(made.name).toBe("a\ufffdb");
    expect((await wide("GET", `/v1/senders/${made.id}`)).json.name).toBe("a\ufffdb");
    expect((await wide("PATCH", `/v1/senders/${made.id}`, { name: "\udc00" })).json.name).toBe("\ufffd");
  });
});
