import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { EVENT_TYPES } from "../../src/core/messages/events.ts";
import { unseal } from "../../src/core/crypto/secretbox.ts";
import { BOX_KEY, type TestApi, testApi } from "../support/api.ts";

let api: TestApi;
beforeAll(async () => {
  api = await testApi();
});
afterAll(() => api.close());

const URL_OK = "https://hooks.example.com/in";
const create = (body: unknown = { url: URL_OK, eventTypes: ["delivery"] }) =>
  api.call("POST", "/v1/webhooks", { body });
const secretsOf = (id: string) =>
  api.db.first<{ secret: string; previous_secret: string | null; previous_secret_until: number | null }>(
    "SELECT secret, previous_secret, previous_secret_until FROM webhooks WHERE id = ?",
    [id],
  );

describe("POST /v1/webhooks", () => {
  test("makes an enabled endpoint whose secret is shown once and stored sealed", async () => {
    const { status, json } = await create();
    const now = new Date(api.clock.now()).toISOString();
    expect(status).toBe(201);
    expect(json).toEqual({
      id: expect.stringMatching(/^whk_[0-9a-z]{26}$/),
      url: URL_OK,
      enabled: true,
      eventTypes: ["delivery"],
      content: true,
      signingSecret: expect.stringMatching(/^whsec_[A-Za-z0-9_-]{43}$/),
      disabledReason: null,
      failingSince: null,
      createdAt: now,
      updatedAt: now,
    });
    const row = await secretsOf(json.id);
    expect(row?.secret).not.toContain(json.signingSecret.slice(6));
    expect(unseal(BOX_KEY, row?.secret ?? "")).toBe(json.signingSecret);
    expect((await api.call("GET", `/v1/webhooks/${json.id}`)).json).toEqual({ ...json, signingSecret: "" });
  });

  const taken: [string, unknown, string[]][] = [
    ["all known types", [...EVENT_TYPES], [...EVENT_TYPES]],
    ["a type twice", ["bounce", "bounce"], ["bounce"]],
    ["all", ["*"], ["*"]],
  ];
  test.each(taken)("accepts %s", async (_name, eventTypes, stored) => {
    expect((await create({ url: URL_OK, eventTypes })).json.eventTypes).toEqual(stored);
  });

  const refused: [string, unknown, string][] = [
    ["no url", { eventTypes: ["*"] }, "url"],
    ["no types", { url: URL_OK }, "eventTypes"],
    ["an empty list", { url: URL_OK, eventTypes: [] }, "eventTypes"],
    ["an unknown type", { url: URL_OK, eventTypes: ["delivery", "exploded"] }, "eventTypes[1]"],
    ["all and one more", { url: URL_OK, eventTypes: ["*", "delivery"] }, "eventTypes"],
    ["types that are not a list", { url: URL_OK, eventTypes: "*" }, "eventTypes"],
    ["plain http", { url: "http://hooks.example.com/", eventTypes: ["*"] }, "url"],
    ["an empty label", { url: "https://example..com/", eventTypes: ["*"] }, "url"],
    ["a label of 64 octets", { url: `https://${"a".repeat(64)}.com/`, eventTypes: ["*"] }, "url"],
    ["port 0", { url: "https://hooks.example.com:0/", eventTypes: ["*"] }, "url"],
    ["a private address", { url: "https://192.168.1.1/", eventTypes: ["*"] }, "url"],
    ["localhost", { url: "https://localhost/", eventTypes: ["*"] }, "url"],
  ];
  test.each(refused)("refuses %s", async (_name, body, param) => {
    const called = await create(body);
    expect([called.status, called.json.error.type, called.json.error.param]).toEqual([
      422,
      "validation_error",
      param,
    ]);
  });
});

test.each(["http://hooks.example.com/", "https://127.0.0.1/"])(
  "the refusal of %s names the setting that allows it in development",
  async (url) => {
    const { json } = await create({ url, eventTypes: ["*"] });
    expect(json.error.message).toContain("ALLOW_PRIVATE_WEBHOOKS=1");
  },
);

describe("PATCH /v1/webhooks/{id}", () => {
  test("changes the given fields, never the secret, and shows none", async () => {
    const { json } = await create();
    const path = `/v1/webhooks/${json.id}`;
    const before = await secretsOf(json.id);
    api.clock.advance(1000);
    const updatedAt = new Date(api.clock.now()).toISOString();
    const shown = { ...json, signingSecret: "", updatedAt };
    const url = "https://other.example.com/";
    expect((await api.call("PATCH", path, { body: { enabled: false } })).json).toEqual({
      ...shown,
      enabled: false,
    });
    expect((await api.call("PATCH", path, { body: { url } })).json).toEqual({
      ...shown,
      enabled: false,
      url,
    });
    const body = { enabled: true, eventTypes: ["*"] };
    expect((await api.call("PATCH", path, { body })).json).toEqual({ ...shown, url, ...body });
    expect(await secretsOf(json.id)).toEqual(before);
  });

  test("enabling clears the reason why it was off", async () => {
    const { json } = await create();
    await api.db.write([
      {
        sql: "UPDATE webhooks SET enabled = 0, disabled_reason = 'failed', failing_since = 1 WHERE id = ?",
        args: [json.id],
      },
    ]);
    const path = `/v1/webhooks/${json.id}`;
    expect((await api.call("GET", path)).json).toMatchObject({ enabled: false, disabledReason: "failed" });
    const called = await api.call("PATCH", path, { body: { enabled: true } });
    expect(called.json).toMatchObject({ enabled: true, disabledReason: null });
    const row = await api.db.first("SELECT failing_since FROM webhooks WHERE id = ?", [json.id]);
    expect(row).toMatchObject({ failing_since: null });
  });

  test("PATCH /v1/webhooks/{id} with another URL starts a new failure count; with the same URL it does not", async () => {
    const { json } = await create();
    await api.db.write([{ sql: "UPDATE webhooks SET failing_since = 1 WHERE id = ?", args: [json.id] }]);
    const failingSince = async (url: string) => {
      await api.call("PATCH", `/v1/webhooks/${json.id}`, { body: { url } });
      return api.db.first("SELECT failing_since FROM webhooks WHERE id = ?", [json.id]);
    };
    expect(await failingSince(URL_OK)).toMatchObject({ failing_since: 1 });
    expect(await failingSince("https://other.example.com/")).toMatchObject({ failing_since: null });
  });

  test("refuses what a new one would be refused", async () => {
    const { json } = await create();
    for (const body of [
      { url: "https://127.0.0.1/" },
      { eventTypes: [] },
      { eventTypes: ["open", "*"] },
      { enabled: "yes" },
    ])
      expect((await api.call("PATCH", `/v1/webhooks/${json.id}`, { body })).status).toBe(422);
  });
});

describe("a webhook", () => {
  test("a webhook of another project or account is 404", async () => {
    const { json } = await create();
    const path = `/v1/webhooks/${json.id}`;
    for (const key of [api.acme.b.key, api.other.a.key]) {
      expect((await api.call("GET", path, { key })).json.error.type).toBe("not_found");
      expect((await api.call("PATCH", path, { key, body: { enabled: false } })).status).toBe(404);
      expect((await api.call("DELETE", path, { key })).status).toBe(404);
      expect((await api.call("POST", `${path}/rotate-secret`, { key })).status).toBe(404);
      const list = await api.call("GET", "/v1/webhooks", { key });
      expect(list.text).not.toContain(json.id);
    }
    expect((await api.call("GET", path)).json.enabled).toBe(true);
  });

  test("a webhook is gone once deleted", async () => {
    const { json } = await create();
    const path = `/v1/webhooks/${json.id}`;
    const called = await api.call("DELETE", path);
    expect([called.status, called.text]).toEqual([204, ""]);
    for (const [method, of] of [
      ["GET", path],
      ["PATCH", path],
      ["DELETE", path],
      ["POST", `${path}/rotate-secret`],
      ["POST", `${path}/test`],
      ["GET", `${path}/deliveries`],
      ["POST", `${path}/deliveries/dlv_${"0".repeat(26)}/replay`],
    ] as const)
      expect([
        of,
        (await api.call(method, of, method === "PATCH" ? { body: { enabled: true } } : {})).status,
      ]).toEqual([of, 404]);
    expect((await api.call("GET", "/v1/webhooks?limit=100")).text).not.toContain(json.id);
  });

  test("a webhook is listed newest first, in pages", async () => {
    const ids: string[] = [];
    for (let i = 0; i < 3; i++) ids.unshift((await create()).json.id);
    const first = await api.call("GET", "/v1/webhooks?limit=2");
    const second = await api.call("GET", `/v1/webhooks?limit=1&cursor=${first.json.nextCursor}`);
    const shown = [...first.json.data, ...second.json.data];
    expect(shown.map(({ id }: { id: string }) => id)).toEqual(ids);
    expect(shown.every(({ signingSecret }: { signingSecret: string }) => signingSecret === "")).toBe(true);
  });
});

describe("POST /v1/webhooks/{id}/rotate-secret", () => {
  test("gives a new secret, and the old one also signs during the grace period", async () => {
    const { json } = await create();
    const called = await api.call("POST", `/v1/webhooks/${json.id}/rotate-secret`, {
      body: { graceSeconds: 60 },
    });
    expect(called.status).toBe(200);
    expect(called.json.signingSecret).toMatch(/^whsec_[A-Za-z0-9_-]{43}$/);
    const row = await secretsOf(json.id);
    expect(unseal(BOX_KEY, row?.secret ?? "")).toBe(called.json.signingSecret);
    expect(unseal(BOX_KEY, row?.previous_secret ?? "")).toBe(json.signingSecret);
    expect(row?.previous_secret_until).toBe(api.clock.now() + 60_000);
  });

  test("rotating the secret of a webhook that is deleted at the same time returns no useless secret", async () => {
    const { json } = await create();
    const path = `/v1/webhooks/${json.id}`;
    const deleting = api.call("DELETE", path);
    const called = await api.call("POST", `${path}/rotate-secret`);
    expect((await deleting).status).toBe(204);
    expect([called.status, called.json.signingSecret]).toEqual([404, undefined]);
    expect(unseal(BOX_KEY, (await secretsOf(json.id))?.secret ?? "")).toBe(json.signingSecret);
  });

  const rows: [unknown, number][] = [
    [undefined, 200],
    [{}, 200],
    [{ graceSeconds: 604_800 }, 200],
    [{ graceSeconds: 604_801 }, 422],
    [{ graceSeconds: -1 }, 422],
  ];
  test.each(rows)("with %p", async (body, status) => {
    const { json } = await create();
    expect((await api.call("POST", `/v1/webhooks/${json.id}/rotate-secret`, { body })).status).toBe(status);
  });
});

test("with ALLOW_PRIVATE_WEBHOOKS a webhook may be http and private", async () => {
  const development = await testApi({ allowPrivateWebhooks: true });
  const body = { url: "http://127.0.0.1:8080/hook", eventTypes: ["*"] };
  expect((await development.call("POST", "/v1/webhooks", { body })).status).toBe(201);
  await development.close();
});
