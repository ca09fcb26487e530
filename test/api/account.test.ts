import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { loadConfig } from "../../src/config.ts";
import { accountRoutes } from "../../src/http/routes/projects/account.ts";
import { type TestApi, testApi } from "../support/api.ts";

let api: TestApi;
beforeAll(async () => {
  api = await testApi({
    routes: (deps) => accountRoutes({ ...deps, config: loadConfig({ PLAN_GOLD: "7/9" }) }),
  });
});
afterAll(() => api.close());

describe("GET /v1/me", () => {
  test("shows a project key its project and its limits", async () => {
    const key = await api.key({ name: "shop", senderId: api.acme.a.id, scopes: ["emails:send"] });
    const { status, json } = await api.call("GET", "/v1/me", { key });
    expect(status).toBe(200);
    expect(json).toEqual({
      account: { id: api.acme.id, ownerEmail: "owner@acme.example" },
      key: {
        id: expect.stringMatching(/^key_/),
        name: "shop",
        scopes: ["emails:send"],
        senderId: api.acme.a.id,
      },
      member: null,
      project: {
        id: api.acme.a.id,
        externalId: "acme-a",
        name: "acme-a",
        plan: "unlimited",
        trustTier: "unlimited",
        suspendedAt: null,
      },
      service: { domain: "postrider.localhost", delivery: "capture" },
      limits: {
        maxRecipients: 50,
        maxMessageBytes: 26_214_400,
        maxAttachments: 20,
        maxScheduleDays: 30,
        requestsPerSecond: null,
        requestBurst: null,
        recipientsPerDay: null,
      },
    });
  });

  test("shows an account-wide key no project, and the rate of account routes", async () => {
    const { json } = await api.call("GET", "/v1/me", { key: api.acme.wide });
    expect(json).toMatchObject({
      key: { scopes: [], senderId: null },
      project: null,
      limits: { requestsPerSecond: 100, requestBurst: 200, recipientsPerDay: null },
    });
  });

  test("shows an account-wide key the project that it names", async () => {
    const made = await api.call("POST", "/v1/senders", {
      key: api.acme.wide,
      body: { name: "Free", externalId: "free", plan: "free", trustTier: "new", dailyQuota: 50 },
    });
    const headers = { "x-service-product": "free" };
    const { json } = await api.call("GET", "/v1/me", { key: api.acme.wide, headers });
    expect(json).toMatchObject({
      project: { id: made.json.id, plan: "free" },
      limits: { requestsPerSecond: 10, requestBurst: 20, recipientsPerDay: 50 },
    });
  });

  test("answers 404 if an account-wide key names another account's project", async () => {
    const headers = { "x-service-product": api.other.a.id };
    expect((await api.call("GET", "/v1/me", { key: api.acme.wide, headers })).status).toBe(404);
  });

  test("answers 403 if a project key names another project", async () => {
    const headers = { "x-service-product": api.acme.b.id };
    expect((await api.call("GET", "/v1/me", { headers })).status).toBe(403);
  });

  test("answers 401 without a key", async () => {
    expect((await api.call("GET", "/v1/me", { key: null })).status).toBe(401);
  });
});

describe("PATCH /v1/account", () => {
  test("changes the owner's address, in its normal form", async () => {
    const { status, json } = await api.call("PATCH", "/v1/account", {
      key: api.other.wide,
      body: { ownerEmail: "New.Owner@BÜCHER.example" },
    });
    expect(status).toBe(200);
    expect(json).toMatchObject({ id: api.other.id, ownerEmail: "New.Owner@xn--bcher-kva.example" });
    const me = await api.call("GET", "/v1/me", { key: api.other.a.key });
    expect(me.json.account.ownerEmail).toBe("New.Owner@xn--bcher-kva.example");
  });

  test("changes nothing if it names nothing", async () => {
    const { json } = await api.call("PATCH", "/v1/account", { key: api.acme.wide, body: {} });
    expect(json).toMatchObject({ id: api.acme.id, ownerEmail: "owner@acme.example" });
  });

  test("changes no owner's address if the URL for notices is refused", async () => {
    const body = { ownerEmail: "new@acme.example", notices: { webhook: "no-url" } };
    const { status, json } = await api.call("PATCH", "/v1/account", { key: api.acme.wide, body });
    expect([status, json.error.type]).toEqual([422, "validation_error"]);
    const me = await api.call("GET", "/v1/me", { key: api.acme.wide });
    expect(me.json.account.ownerEmail).toBe("owner@acme.example");
  });

  test("refuses what is no address", async () => {
    const body = { ownerEmail: "owner" };
    const { status, json } = await api.call("PATCH", "/v1/account", { key: api.acme.wide, body });
    expect([status, json.error.param, json.error.code]).toEqual([422, "ownerEmail", "invalid_email"]);
  });

  test("refuses a project key, and a key without senders:write", async () => {
    const body = { ownerEmail: "a@b.example" };
    expect((await api.call("PATCH", "/v1/account", { body })).status).toBe(403);
    const key = await api.key({ senderId: null, senderExternalId: null, scopes: ["senders:read"] });
    const { status, json } = await api.call("PATCH", "/v1/account", { key, body });
    expect([status, json.error.param]).toEqual([403, "senders:write"]);
  });
});
