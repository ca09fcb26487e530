import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { type TestApi, testApi } from "../support/api.ts";

let api: TestApi;
beforeAll(async () => {
  api = await testApi();
});
afterAll(() => api.close());

const create = (body: unknown, key?: string) =>
  api.call("POST", "/v1/api-keys", key ? { body, key } : { body });

describe("POST /v1/api-keys", () => {
  test("makes an account-wide key whose secret works and is shown once", async () => {
    const { status, json } = await create({ name: "wide" }, api.acme.wide);
    expect(status).toBe(201);
    expect(json).toEqual({
      id: expect.stringMatching(/^key_[0-9a-z]{26}$/),
      name: "wide",
      keyPrefix: expect.stringMatching(/^pr_[0-9A-Za-z]{8}$/),
      last4: json.secret.slice(-4),
      senderId: null,
      scopes: [],
      allowRecipients: null,
      approval: false,
      inboxIds: null,
      secret: expect.stringMatching(/^pr_[0-9A-Za-z]{8}_[0-9A-Za-z]{32}$/),
      lastUsedAt: null,
      revokedAt: null,
      createdAt: new Date(api.clock.now()).toISOString(),
      createdBy: { type: "key", id: expect.stringMatching(/^key_/), name: "test" },
    });
    expect(json.secret).toStartWith(json.keyPrefix);
    expect((await api.call("GET", "/v1/senders", { key: json.secret })).status).toBe(200);
    const list = await api.call("GET", "/v1/api-keys?limit=100", { key: api.acme.wide });
    expect(list.text).not.toContain(json.secret);
    expect(list.json.data[0]).not.toHaveProperty("secret");
    const rows = await api.db.all<{ all_text: string }>(
      "SELECT secret_hash || key_prefix || name AS all_text FROM api_keys",
    );
    for (const row of rows) expect(row.all_text).not.toContain(json.secret.slice(12));
  });

  test("makes a project key that shows its project", async () => {
    const { status, json } = await create({ name: "p", senderId: api.acme.b.id }, api.acme.wide);
    expect(status).toBe(201);
    expect([json.senderId, json.senderExternalId]).toEqual([api.acme.b.id, "acme-b"]);
    expect((await api.call("GET", "/v1/domains", { key: json.secret })).status).toBe(200);
  });

  type Row = [string, (api: TestApi) => [unknown, string], number, Record<string, unknown>];
  const rows: Row[] = [
    ["no name", (a) => [{}, a.acme.wide], 422, { param: "name", code: "missing_field" }],
    ["an empty name", (a) => [{ name: "" }, a.acme.wide], 422, { param: "name" }],
    ["a name of spaces", (a) => [{ name: " \t " }, a.acme.wide], 422, { param: "name" }],
    ["a name of 201 characters", (a) => [{ name: "x".repeat(201) }, a.acme.wide], 422, { param: "name" }],
    ["a name with NUL in it", (a) => [{ name: "a\u0000b" }, a.acme.wide], 422, { param: "name" }],
    ["an unknown scope", (a) => [{ name: "x", scopes: ["root"] }, a.acme.wide], 422, { param: "scopes[0]" }],
    [
      "scopes that are not a list",
      (a) => [{ name: "x", scopes: "all" }, a.acme.wide],
      422,
      { param: "scopes" },
    ],
    [
      "an unknown project",
      (a) => [{ name: "x", senderId: "snd_x" }, a.acme.wide],
      404,
      { type: "not_found" },
    ],
    [
      "another account's project",
      (a) => [{ name: "x", senderId: a.other.a.id }, a.acme.wide],
      404,
      { type: "not_found" },
    ],
    [
      "a project key without senderId",
      (a) => [{ name: "x" }, a.acme.a.key],
      403,
      { type: "permission_error" },
    ],
    [
      "a project key for another project",
      (a) => [{ name: "x", senderId: a.acme.b.id }, a.acme.a.key],
      403,
      { type: "permission_error", param: "senderId" },
    ],
  ];
  test.each(rows)("%s", async (_name, given, status, error) => {
    const [body, key] = given(api);
    const called = await create(body, key);
    expect(called.status).toBe(status);
    expect(called.json.error).toMatchObject(error);
  });

  test("accepts a name of 200 characters, null for senderId and unknown fields", async () => {
    const body = { name: "x".repeat(200), senderId: null, scopes: [], later: true };
    expect((await create(body, api.acme.wide)).status).toBe(201);
  });

  test("shows an unpaired surrogate in a name as it is stored", async () => {
    const { json } = await create({ name: "a\ud800b", senderId: api.acme.b.id }, api.acme.wide);
    const { json: list } = await api.call("GET", "/v1/api-keys?limit=1", { key: api.acme.b.key });
    expect([json.name, list.data[0].name]).toEqual(["a\ufffdb", "a\ufffdb"]);
  });

  test("a project key makes a key for its own project", async () => {
    expect((await create({ name: "x", senderId: api.acme.a.id }, api.acme.a.key)).status).toBe(201);
  });

  test("a key cannot give another one scopes it lacks", async () => {
    const held = ["api_keys:write", "emails:send"];
    const key = await api.key({ scopes: held });
    const own = await create({ name: "x", scopes: held }, key);
    expect([own.status, own.json.scopes]).toEqual([201, held]);
    const more = await create({ name: "x", scopes: ["emails:send", "emails:read"] }, key);
    expect([more.status, more.json.error.code, more.json.error.param]).toEqual([
      403,
      "missing_scope",
      "emails:read",
    ]);
    const all = await create({ name: "x", scopes: [] }, key);
    expect([all.status, all.json.error.code]).toEqual([403, "missing_scope"]);
    expect((await create({ name: "x" }, key)).status).toBe(403);
  });
});

describe("GET /v1/api-keys", () => {
  test("shows an account-wide key all keys of its account, newest first, including revoked ones", async () => {
    const { json } = await create({ name: "to revoke" }, api.acme.wide);
    await api.call("DELETE", `/v1/api-keys/${json.id}`, { key: api.acme.wide });
    const all = await walk("/v1/api-keys?limit=2", api.acme.wide);
    expect(new Set(all.map(({ id }) => id)).size).toBe(all.length);
    expect([...all].sort((a, b) => (a.id < b.id ? 1 : -1))).toEqual(all);
    expect(all.find(({ id }) => id === json.id)?.revokedAt).toBe(new Date(api.clock.now()).toISOString());
    const others = await walk("/v1/api-keys", api.other.wide);
    expect(others).toHaveLength(3);
    expect(all.some(({ id }) => others.some((other) => other.id === id))).toBe(false);
  });

  test("shows a project key only its own project's keys", async () => {
    const all = await walk("/v1/api-keys", api.acme.b.key);
    expect(all.every(({ senderId }) => senderId === api.acme.b.id)).toBe(true);
  });

  test("a key made between two pages causes neither gaps nor duplicates", async () => {
    const before = await walk("/v1/api-keys?limit=100", api.acme.wide);
    const first = (await api.call("GET", "/v1/api-keys?limit=2", { key: api.acme.wide })).json;
    await create({ name: "in between" }, api.acme.wide);
    const rest = await walk(`/v1/api-keys?limit=2&cursor=${first.nextCursor}`, api.acme.wide);
    expect([...first.data, ...rest].map(({ id }) => id)).toEqual(before.map(({ id }) => id));
  });

  test("a cursor of another key's list is refused", async () => {
    const { json } = await api.call("GET", "/v1/api-keys?limit=1", { key: api.acme.wide });
    const called = await api.call("GET", `/v1/api-keys?limit=1&cursor=${json.nextCursor}`, {
      key: api.acme.a.key,
    });
    expect([called.status, called.json.error.param]).toEqual([400, "cursor"]);
  });
});

describe("DELETE /v1/api-keys/{id}", () => {
  test("hides keys of other accounts and, from a project key, of other projects and the account", async () => {
    const mine = (await create({ name: "mine" }, api.acme.wide)).json.id;
    const sibling = (await create({ name: "b", senderId: api.acme.b.id }, api.acme.wide)).json.id;
    for (const [id, key] of [
      [mine, api.other.wide],
      [mine, api.acme.a.key],
      [sibling, api.acme.a.key],
    ] as const)
      expect((await api.call("DELETE", `/v1/api-keys/${id}`, { key })).status).toBe(404);
    expect((await api.call("DELETE", `/v1/api-keys/${sibling}`, { key: api.acme.b.key })).status).toBe(204);
  });

  test("revokes once, and keeps the time of the first call", async () => {
    const { json } = await create({ name: "x" }, api.acme.wide);
    const first = new Date(api.clock.now()).toISOString();
    for (let call = 0; call < 2; call++) {
      const called = await api.call("DELETE", `/v1/api-keys/${json.id}`, { key: api.acme.wide });
      expect([called.status, called.text]).toEqual([204, ""]);
      api.clock.advance(1000);
    }
    const list = await walk("/v1/api-keys", api.acme.wide);
    expect(list.find(({ id }) => id === json.id)?.revokedAt).toBe(first);
  });
});

describe("a key limited to scopes", () => {
  const HELD = ["api_keys:write", "emails:send"];
  const others: [what: string, scopes: string[], status: number, param: string | undefined][] = [
    ["some of its scopes", ["emails:send"], 204, undefined],
    ["its own scopes", HELD, 204, undefined],
    ["one scope more", [...HELD, "emails:read"], 403, "emails:read"],
    ["every scope", [], 403, "scopes"],
  ];
  for (const wide of [true, false])
    test.each(others)(
      `revokes ${wide ? "in the account" : "in its project"} a key with %s`,
      async (_what, scopes, status, param) => {
        const senderId = wide ? null : api.acme.a.id;
        const key = await api.key({ senderId, scopes: HELD });
        const { json } = await create({ name: "x", senderId, scopes }, api.acme.wide);
        const called = await api.call("DELETE", `/v1/api-keys/${json.id}`, { key });
        expect([called.status, called.json?.error?.param]).toEqual([status, param]);
        const after = await api.call("GET", "/v1/api-keys?limit=1", { key: json.secret });
        expect(after.status).toBe(status === 204 ? 401 : scopes.length === 0 ? 200 : 403);
      },
    );
});

interface Listed {
  id: string;
  senderId: string | null;
  revokedAt: string | null;
}

/** All items of a list, page by page. */
async function walk(path: string, key: string): Promise<Listed[]> {
  const items: Listed[] = [];
  let next: string | null = path;
  while (next !== null) {
    const { json }: { json: { data: Listed[]; nextCursor: string | null } } = await api.call("GET", next, {
      key,
    });
    items.push(...json.data);
    const base = path.replace(/[?&]cursor=[^&]*/, "");
    next =
      json.nextCursor === null ? null : `${base}${base.includes("?") ? "&" : "?"}cursor=${json.nextCursor}`;
  }
  return items;
}
