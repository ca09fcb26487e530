import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { loadConfig } from "../../src/config.ts";
import { newId } from "../../src/core/ids.ts";
import { createDownloads } from "../../src/http/pipeline/download.ts";
import { suppressionRoutes } from "../../src/http/routes/suppressions.ts";
import { type NewSuppression, suppress } from "../../src/store/projects/suppressions.ts";
import { type TestApi, testApi } from "../support/api.ts";
import { leftOut } from "../support/blocked.ts";

const DAY_MS = 86_400_000;
let api: TestApi;
beforeAll(async () => {
  api = await testApi({
    routes: ({ db, clock }) =>
      suppressionRoutes({ db, quotas: loadConfig({}).quotas, handOut: createDownloads(clock) }),
  });
});
afterAll(() => api.close());

const add = (body: unknown, key?: string) =>
  api.call("POST", "/v1/suppressions", key === undefined ? { body } : { body, key });
const batch = (emails: unknown) => api.call("POST", "/v1/suppressions/batch", { body: { emails } });
const list = async (query: string, key?: string) =>
  (await api.call("GET", `/v1/suppressions?${query}`, key === undefined ? {} : { key })).json.data;
const iso = (ahead = 0) => new Date(api.clock.now() + ahead).toISOString();
const blocked = async (email: string) =>
  (await leftOut(api.db, api.acme.a.id, [email], api.clock.now())).suppressed.has(email);

/** Writes the entry of a bounce for project `a`, or the given one. */
function bounce(email: string, changes: Partial<NewSuppression> = {}) {
  const now = api.clock.now();
  const entry: NewSuppression = {
    id: newId("sup", now),
    senderId: api.acme.a.id,
    email,
    reason: "bounce",
    bounceType: "hard",
    messageId: "msg_1",
    expiresAt: null,
    createdAt: now,
    ...changes,
  };
  return api.db.write([suppress(entry)]);
}

describe("POST /v1/suppressions", () => {
  test("blocks an address for good", async () => {
    const { status, json } = await add({ email: "Bob@Bücher.Example" });
    expect(status).toBe(201);
    expect(json).toEqual({
      id: expect.stringMatching(/^sup_[0-9a-z]{26}$/),
      email: "bob@xn--bcher-kva.example",
      reason: "manual",
      bounceType: null,
      messageId: null,
      note: null,
      expiresAt: null,
      createdAt: iso(),
    });
    expect(await blocked(json.email)).toBe(true);
  });

  test("accepts a note, and a time until which it blocks", async () => {
    const expiresAt = iso(DAY_MS);
    const { json } = await add({ email: "until@example.com", note: "on leave\n💤", expiresAt });
    expect(json).toMatchObject({ note: "on leave\n💤", expiresAt });
    api.clock.advance(DAY_MS - 1);
    expect([await blocked(json.email), (await list("email=until@example.com")).length]).toEqual([true, 1]);
    api.clock.advance(1);
    expect([await blocked(json.email), (await list("email=until@example.com")).length]).toEqual([false, 0]);
    const again = await add({ email: "until@example.com" });
    expect([again.status, again.json.id === json.id, again.json.note, again.json.createdAt]).toEqual([
      201,
      false,
      null,
      iso(),
    ]);
  });

  test("POST /v1/suppressions of a listed address is 200 with the existing entry", async () => {
    const first = (await add({ email: "twice@example.com", note: "first" })).json;
    const second = await add({ email: "TWICE@Example.COM", note: "second", expiresAt: iso(DAY_MS) });
    expect([second.status, second.json]).toEqual([200, first]);
    await bounce("bounced@example.com");
    const found = await add({ email: "bounced@example.com" });
    expect(found.status).toBe(200);
    expect(found.json).toMatchObject({ reason: "bounce", bounceType: "hard", messageId: "msg_1" });
  });

  test("concurrent POSTs to /v1/suppressions make one entry", async () => {
    const called = await Promise.all(Array.from({ length: 10 }, () => add({ email: "rush@example.com" })));
    expect(called.map(({ status }) => status).sort()).toEqual([...Array(9).fill(200), 201]);
    expect(new Set(called.map(({ json }) => json.id)).size).toBe(1);
  });

  test("POST /v1/suppressions with an Idempotency-Key replays its own answer", async () => {
    const how = { body: { email: "once@example.com" }, headers: { "idempotency-key": "sup-1" } };
    const first = await api.call("POST", "/v1/suppressions", how);
    const second = await api.call("POST", "/v1/suppressions", how);
    expect([first.status, second.status, second.json]).toEqual([201, 201, first.json]);
  });

  test("accepts a note of 1 000 characters", async () => {
    expect((await add({ email: "note@example.com", note: "n".repeat(1000) })).json.note).toHaveLength(1000);
    expect((await add({ email: "null@example.com", note: null, expiresAt: null })).status).toBe(201);
  });

  const rows: [string, Record<string, unknown>, string, string | undefined][] = [
    ["no address", { email: undefined }, "email", "missing_field"],
    ["an invalid address", { email: "bob" }, "email", "invalid_email"],
    ["NUL in the address", { email: "a\u0000@b.example" }, "email", "invalid_email"],
    ["half a surrogate pair in the address", { email: "\ud800@b.example" }, "email", "invalid_email"],
    ["a list as address", { email: ["a@b.example"] }, "email", undefined],
    ["a note of 1 001 characters", { note: "n".repeat(1001) }, "note", undefined],
    ["NUL in the note", { note: "a\u0000b" }, "note", undefined],
    ["a time without a zone", { expiresAt: "2030-01-01T00:00:00" }, "expiresAt", undefined],
    ["an invalid time", { expiresAt: "tomorrow" }, "expiresAt", undefined],
    ["a time after the last of UTC", { expiresAt: "9999-12-31T23:59:59-00:01" }, "expiresAt", undefined],
  ];
  test("accepts a time in the future, and refuses the present moment", async () => {
    const at = (ms: number) => new Date(api.clock.now() + ms).toISOString();
    expect((await add({ email: "now@example.com", expiresAt: at(0) })).json.error.param).toBe("expiresAt");
    expect((await add({ email: "now@example.com", expiresAt: at(1) })).status).toBe(201);
  });

  test.each(rows)("refuses %s", async (_name, changes, param, code) => {
    const { status, json } = await add({ email: "refused@example.com", ...changes });
    expect([status, json.error.type, json.error.param, json.error.code]).toEqual([
      422,
      "validation_error",
      param,
      code,
    ]);
  });
});

describe("POST /v1/suppressions/batch", () => {
  test("answers one result for each address, in order", async () => {
    await bounce("known@batch.example");
    const emails = [
      "A@batch.example",
      "nobody",
      "known@batch.example",
      5,
      "a@BATCH.example",
      "\ud800@x.example",
      null,
    ];
    const { status, json } = await batch(emails);
    expect(status).toBe(207);
    const [a, nobody, known, five, again, half, nothing] = json.data;
    expect(a).toEqual({ id: expect.stringMatching(/^sup_/), email: "a@batch.example" });
    expect(again).toEqual(a);
    expect(known.id).toBe((await list("email=known@batch.example"))[0].id);
    const message = 'The item must be an email address, such as "ana@example.com".';
    const refused = (code: string) => ({ error: { message, code, param: "", type: "validation_error" } });
    const noAddress = refused("invalid_email");
    const noItem = refused("invalid_item");
    expect([nobody, five, half, nothing]).toEqual([noAddress, noItem, noAddress, noItem]);
    expect(await blocked("a@batch.example")).toBe(true);
  });

  test("accepts 100 and no more, and at least one", async () => {
    const emails = Array.from({ length: 101 }, (_, index) => `n${index}@hundred.example`);
    expect((await batch(emails)).json.error.param).toBe("emails");
    expect(await list("q=hundred.example")).toEqual([]);
    const { status, json } = await batch(emails.slice(1));
    expect([status, json.data.length]).toEqual([207, 100]);
    expect(json.data.every(({ id }: { id?: string }) => id !== undefined)).toBe(true);
    expect(await list("q=hundred.example&limit=100")).toHaveLength(100);
    for (const body of [[], "a@b.example", undefined]) expect((await batch(body)).status).toBe(422);
  });

  test("replaces expired entries by new ones", async () => {
    await bounce("soft@batch.example", { bounceType: "soft", expiresAt: api.clock.now() + 1000 });
    const [before] = await list("email=soft@batch.example");
    api.clock.advance(1000);
    const { json } = await batch(["soft@batch.example"]);
    const [after] = await list("email=soft@batch.example");
    expect([after.id, after.reason, after.expiresAt]).toEqual([json.data[0].id, "manual", null]);
    expect(after.id).not.toBe(before.id);
  });

  test("several at once all return the same entries", async () => {
    const emails = ["r1@race.example", "r2@race.example"];
    const answers = await Promise.all([
      batch(emails),
      batch([...emails].reverse()),
      add({ email: "r1@race.example" }),
    ]);
    const ids = new Map(
      (await list("q=race.example")).map(({ id, email }: { id: string; email: string }) => [email, id]),
    );
    for (const { json } of answers.slice(0, 2))
      for (const { id, email } of json.data) expect(id).toBe(ids.get(email));
    expect(answers[2]?.json.id).toBe(ids.get("r1@race.example"));
  });
});

describe("GET /v1/suppressions", () => {
  const key = () => api.other.a.key;
  const emails = (rows: { email: string }[]) => rows.map(({ email }) => email);
  beforeAll(async () => {
    const senderId = api.other.a.id;
    await bounce("b_1@list.example", { senderId });
    await bounce("b%2@list.example", { senderId, reason: "complaint", bounceType: null });
    await add({ email: "manual@other.example" }, key());
    await bounce("soft@list.example", {
      senderId,
      bounceType: "soft",
      expiresAt: api.clock.now() + 7 * DAY_MS,
    });
    await bounce("past@list.example", { senderId, bounceType: "soft", expiresAt: api.clock.now() });
  });

  const rows: [string, string, string[]][] = [
    [
      "everything that has not expired, newest first",
      "",
      ["soft@list.example", "manual@other.example", "b%2@list.example", "b_1@list.example"],
    ],
    ["one address in any case", "email=MANUAL@Other.example", ["manual@other.example"]],
    ["no address that has expired", "email=past@list.example", []],
    ["bounces", "reason=bounce", ["soft@list.example", "b_1@list.example"]],
    ["complaints", "reason=complaint", ["b%2@list.example"]],
    ["those added by hand", "reason=manual", ["manual@other.example"]],
    [
      "part of an address in any case",
      "q=@LIST",
      ["soft@list.example", "b%2@list.example", "b_1@list.example"],
    ],
    ["a percent sign as itself", "q=%25", ["b%2@list.example"]],
    ["an underscore as itself", "q=_", ["b_1@list.example"]],
    ["all filters together", "q=list&reason=bounce&email=b_1@list.example", ["b_1@list.example"]],
  ];
  test.each(rows)("finds %s", async (_name, query, expected) => {
    expect(emails(await list(query, key()))).toEqual(expected);
  });

  test("shows the entry of a bounce", async () => {
    const [soft] = await list("email=soft@list.example", key());
    expect(soft).toMatchObject({ reason: "bounce", bounceType: "soft", messageId: "msg_1", note: null });
    expect(Date.parse(soft.expiresAt) - Date.parse(soft.createdAt)).toBe(7 * DAY_MS);
  });

  test("lists page by page within its filters", async () => {
    const first = (await api.call("GET", "/v1/suppressions?reason=bounce&limit=1", { key: key() })).json;
    const next = `limit=1&cursor=${first.nextCursor}`;
    const second = (await api.call("GET", `/v1/suppressions?reason=bounce&${next}`, { key: key() })).json;
    expect([emails(first.data), emails(second.data), second.nextCursor]).toEqual([
      ["soft@list.example"],
      ["b_1@list.example"],
      null,
    ]);
    expect((await api.call("GET", `/v1/suppressions?${next}`, { key: key() })).status).toBe(400);
  });

  test("shows nothing of another project", async () => {
    expect(await list("q=list.example", api.other.b.key)).toEqual([]);
    expect(await list("q=list.example", api.acme.a.key)).toEqual([]);
  });

  const refused: [string, string][] = [
    ["reason=other", "reason"],
    ["q=", "q"],
    [`q=${"x".repeat(257)}`, "q"],
    ["q=%00", "q"],
    ["limit=101", "limit"],
    ["email=nobody", "email"],
  ];
  test.each(refused)("refuses %.20s", async (query, param) => {
    const { status, json } = await api.call("GET", `/v1/suppressions?${query}`);
    expect([status, json.error.param]).toEqual([422, param]);
  });
});

describe("DELETE /v1/suppressions", () => {
  const remove = (query: string, key = api.acme.a.key) =>
    api.call("DELETE", `/v1/suppressions?${query}`, { key });

  test("removes an address from the list of only that project", async () => {
    await add({ email: "free+again@example.com" });
    await add({ email: "free+again@example.com" }, api.acme.b.key);
    const called = await remove("email=FREE%2Bagain%40example.com");
    expect([called.status, called.text]).toEqual([204, ""]);
    expect(await blocked("free+again@example.com")).toBe(false);
    expect(await list("email=free%2Bagain@example.com", api.acme.b.key)).toHaveLength(1);
    expect((await add({ email: "free+again@example.com" })).status).toBe(201);
  });

  test("takes a bare plus as a plus", async () => {
    await add({ email: "tag+1@example.com" });
    expect((await remove("email=tag+1@example.com")).status).toBe(204);
    expect(await blocked("tag+1@example.com")).toBe(false);
  });

  test("DELETE /v1/suppressions of an address that is not listed is 204 too", async () => {
    const before = (await list("limit=100")).length;
    expect((await remove("email=never@example.com")).status).toBe(204);
    expect((await list("limit=100")).length).toBe(before);
  });

  const rows = ["nobody", "", "%00", "%ED%A0%80", "%F0%9F%98%80@", "'%20OR%20''='", "x".repeat(5000)];
  test.each(rows)("of %.30s, which cannot be an address, is 422", async (email) => {
    const { status, json } = await remove(`email=${email}`);
    expect([status, json.error.code, json.error.param]).toEqual([422, "invalid_email", "email"]);
  });

  test("DELETE /v1/suppressions without an address is 422", async () => {
    const { status, json } = await remove("");
    expect([status, json.error.code, json.error.param]).toEqual([422, "missing_field", "email"]);
  });
});

test("hostile text in a note is stored unchanged", async () => {
  const texts = [
    "\u202etxt.exe",
    "a\u{1f600}b",
    "\r\n\t\u0001\u007f",
    "'; DROP TABLE suppressions; --",
    "\u2028",
  ];
  for (const [index, note] of texts.entries()) {
    const { status, json } = await add({ email: `h${index}@hostile.example`, note });
    expect([status, json.note]).toEqual([201, note]);
    expect((await list(`email=h${index}@hostile.example`))[0]).toEqual(json);
  }
  expect((await add({ email: "half@hostile.example", note: "a\ud800" })).json.note).toBe("a\ufffd");
});

describe("a key without the scope is 403", () => {
  const rows: [string, string, string][] = [
    ["POST", "/v1/suppressions", "suppressions:write"],
    ["POST", "/v1/suppressions/batch", "suppressions:write"],
    ["GET", "/v1/suppressions", "suppressions:read"],
    ["DELETE", "/v1/suppressions?email=a@b.example", "suppressions:write"],
  ];
  test.each(rows)("%s %s requires %s", async (method, path, scope) => {
    const key = await api.key({ senderId: api.acme.a.id, scopes: ["emails:send"] });
    const { status, json } = await api.call(method, path, { key });
    expect([status, json.error.code, json.error.param]).toEqual([403, "missing_scope", scope]);
  });
});
