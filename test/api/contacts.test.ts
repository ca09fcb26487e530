import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { loadConfig } from "../../src/config.ts";
import { MAX_BATCH } from "../../src/flows/projects/contact-batch.ts";
import { createDownloads } from "../../src/http/pipeline/download.ts";
import { contactBatchRoute } from "../../src/http/routes/contact-batch.ts";
import { contactRoutes } from "../../src/http/routes/contacts.ts";
import { log } from "../../src/log.ts";
import { openMemoryQueue } from "../../src/queue/memory.ts";
import { findSuppressions } from "../../src/store/projects/suppressions.ts";
import { asksToJoin, type TestApi, testApi } from "../support/api.ts";

let api: TestApi;
beforeAll(async () => {
  api = await testApi({
    routes: ({ db, clock }) => [
      ...contactRoutes({
        db,
        clock,
        queue: openMemoryQueue({ clock, log: log("queue") }),
        handOut: createDownloads(clock),
        asksToJoin,
      }),
      contactBatchRoute({ db, quotas: loadConfig({}).quotas }),
    ],
  });
});
afterAll(() => api.close());

const create = (body: unknown, key?: string) =>
  api.call("POST", "/v1/contacts", key === undefined ? { body } : { body, key });
const iso = () => new Date(api.clock.now()).toISOString();
const nested = (depth: number): unknown => (depth === 0 ? "x" : { a: nested(depth - 1) });
const keys = (count: number) =>
  Object.fromEntries(Array.from({ length: count }, (_, index) => [`k${index}`, index]));
/** Metadata of that many bytes as JSON. */
const sized = (bytes: number) => ({ a: "x".repeat(bytes - '{"a":""}'.length) });

describe("POST /v1/contacts", () => {
  test("stores a contact, subscribed unless told otherwise", async () => {
    const { status, json } = await create({
      email: "Ada@Example.COM",
      firstName: "Ada",
      metadata: { plan: ["pro"] },
    });
    expect(status).toBe(201);
    expect(json).toEqual({
      id: expect.stringMatching(/^con_[0-9a-z]{26}$/),
      email: "Ada@example.com",
      firstName: "Ada",
      lastName: null,
      subscribed: true,
      unsubscribedAt: null,
      metadata: { plan: ["pro"] },
      properties: {},
      topics: {},
      consent: [{ at: iso(), subscribed: true, how: "api" }],
      lastSentAt: null,
      lastOpenedAt: null,
      lastClickedAt: null,
      createdAt: iso(),
      updatedAt: iso(),
    });
    expect((await api.call("GET", `/v1/contacts/${json.id}`)).json).toEqual(json);
  });

  test("can be unsubscribed from the start", async () => {
    const { json } = await create({
      email: "off@example.com",
      subscribed: false,
      firstName: null,
      lastName: null,
    });
    expect(json).toMatchObject({ subscribed: false, unsubscribedAt: iso(), metadata: {} });
  });

  test("an address is known in any letter case of domain and local part: 409", async () => {
    await create({ email: "Twice@Exämple.com" });
    for (const email of ["Twice@Exämple.com", "tWICE@EXÄMPLE.COM", "twice@xn--exmple-cua.com"]) {
      const { status, json } = await create({ email });
      expect([status, json.error.type, json.error.code, json.error.param]).toEqual([
        409,
        "conflict",
        "duplicate",
        "email",
      ]);
    }
    for (const key of [api.acme.b.key, api.other.a.key])
      expect((await create({ email: "twice@exämple.com" }, key)).status).toBe(201);
  });

  test("POST /v1/contacts with an Idempotency-Key stores once", async () => {
    const how = { body: { email: "once@example.com" }, headers: { "idempotency-key": "con-1" } };
    const first = await api.call("POST", "/v1/contacts", how);
    const second = await api.call("POST", "/v1/contacts", how);
    expect([first.status, second.status, second.json]).toEqual([201, 201, first.json]);
  });

  const fits: [string, Record<string, unknown>][] = [
    ["names of 200 characters", { firstName: "f".repeat(200), lastName: "l".repeat(200) }],
    ["empty names", { firstName: "", lastName: "" }],
    ["exact numbers", { metadata: { n: [2 ** 53 - 1, 1 - 2 ** 53, 1.5, 1e-300] } }],
    ["50 keys of metadata", { metadata: keys(50) }],
    ["metadata of 16 KiB", { metadata: sized(16 * 1024) }],
    ["metadata 10 deep", { metadata: nested(10) }],
    ["a local part beyond ASCII", { email: "élodie@fits.example" }],
    ["unknown fields", { id: "con_1", unsubscribedAt: "x", createdAt: 1 }],
  ];
  test.each(fits)("accepts %s", async (name, changes) => {
    const { status, json } = await create({ email: `${name.replaceAll(" ", "-")}@fits.example`, ...changes });
    expect(status).toBe(201);
    for (const field of ["firstName", "lastName", "metadata"])
      if (field in changes) expect(json[field]).toEqual(changes[field]);
    expect((await api.call("GET", `/v1/contacts/${json.id}`)).json).toEqual(json);
  });

  const rows: [string, Record<string, unknown> | string, string, string | undefined][] = [
    ["no address", { email: undefined }, "email", "missing_field"],
    ["an invalid address", { email: "ada" }, "email", "invalid_email"],
    ["an empty address", { email: "" }, "email", "invalid_email"],
    ["a line break in the address", { email: "a@b.example\r\nBcc: c@d.example" }, "email", "invalid_email"],
    ["NUL in the address", { email: "a\u0000@b.example" }, "email", "invalid_email"],
    ["half a surrogate pair in the address", { email: "a\ud800@b.example" }, "email", "invalid_email"],
    ["a turned direction in the address", { email: "a\u202e@b.example" }, "email", "invalid_email"],
    ["an address of 255 octets", { email: `aa@${"b.".repeat(122)}example.` }, "email", "invalid_email"],
    ["a number as address", { email: 1 }, "email", undefined],
    ["a first name of 201 characters", { firstName: "f".repeat(201) }, "firstName", undefined],
    ["a last name of 201 characters", { lastName: "f".repeat(201) }, "lastName", undefined],
    ["a line break in a name", { firstName: "a\r\nb" }, "firstName", undefined],
    ["NUL in a name", { lastName: "a\u0000" }, "lastName", undefined],
    ["51 keys of metadata", { metadata: keys(51) }, "metadata", undefined],
    ["metadata of 16 KiB and a byte", { metadata: sized(16 * 1024 + 1) }, "metadata", undefined],
    ["a number too large for metadata", '{"n":{"deep":[1,1e400]}}', "metadata.n.deep[1]", undefined],
    ["a number too small for metadata", '{"n":-1e400}', "metadata.n", undefined],
    ["a whole number that would lose digits", '{"n":9007199254740993}', "metadata.n", undefined],
    ["metadata 11 deep", { metadata: nested(11) }, "metadata", undefined],
    ["metadata deeper than a body may be", { metadata: nested(5000) }, "", undefined],
    ["a list as metadata", { metadata: [] }, "metadata", undefined],
    ["null as metadata", { metadata: null }, "metadata", undefined],
    ["a text as subscribed", { subscribed: "false" }, "subscribed", undefined],
  ];
  test.each(rows)("refuses %s", async (_name, changes, param, code) => {
    const email = "refused@example.com";
    // As text: such numbers cannot be written from JavaScript.
    const body =
      typeof changes === "string" ? `{"email":"${email}","metadata":${changes}}` : { email, ...changes };
    const { status, json } = await create(body);
    expect([status, json.error.type, json.error.param, json.error.code]).toEqual([
      422,
      "validation_error",
      param,
      code,
    ]);
  });
});

describe("GET /v1/contacts", () => {
  const list = async (query: string) => {
    const called = await api.call("GET", `/v1/contacts?${query}`, { key: api.other.b.key });
    return { ...called, emails: (called.json.data ?? []).map(({ email }: { email: string }) => email) };
  };
  beforeAll(async () => {
    const rows: [string, string | null, string | null, boolean][] = [
      ["one_1@list.example", "Émile", "Zola", true],
      ["two%2@list.example", "Ada", "O'Neil", false],
      ["three+3@other.example", null, null, true],
      ["four@list.example", "back\\slash", "💥", false],
      ["five@list.example", "Ada", "Lovelace", true],
    ];
    for (const [email, firstName, lastName, subscribed] of rows)
      expect((await create({ email, firstName, lastName, subscribed }, api.other.b.key)).status).toBe(201);
  });

  const all = [
    "five@list.example",
    "four@list.example",
    "three+3@other.example",
    "two%2@list.example",
    "one_1@list.example",
  ];
  const rows: [string, string, number[]][] = [
    ["everything, newest first", "", [0, 1, 2, 3, 4]],
    ["the subscribed", "subscribed=true", [0, 2, 4]],
    ["the unsubscribed", "subscribed=false", [1, 3]],
    ["part of an address in any case", "q=LIST.Ex", [0, 1, 3, 4]],
    ["part of a first name", "q=ada", [0, 3]],
    ["part of a last name", "q=lovel", [0]],
    ["a letter beyond ASCII in the other case", "q=%C3%A9mile", [4]],
    ["a letter beyond ASCII all in capitals", "q=%C3%89MILE", [4]],
    ["a percent sign as itself", "q=%25", [3]],
    ["an underscore as itself", "q=_", [4]],
    ["a backslash as itself", "q=%5C", [1]],
    ["a quote as itself", "q='", [3]],
    ["a plus as itself", "q=%2B", [2]],
    ["an emoji", "q=%F0%9F%92%A5", [1]],
    ["a text that does not occur", "q=nobody", []],
    ["both filters", "q=ada&subscribed=false", [3]],
    ["text that looks like SQL", "q=%27)%20OR%201=1--", []],
    ["256 wildcards", `q=${"%25".repeat(256)}`, []],
  ];
  test.each(rows)("finds %s", async (_name, query, expected) => {
    expect((await list(query)).emails).toEqual(expected.map((index) => all[index] ?? ""));
  });

  test("lists page by page within its filters", async () => {
    const first = await list("q=list.example&limit=3");
    expect(first.emails).toEqual([all[0], all[1], all[3]]);
    const cursor = first.json.nextCursor;
    const second = await list(`q=list.example&limit=3&cursor=${cursor}`);
    expect([second.emails, second.json.nextCursor]).toEqual([[all[4]], null]);
    for (const query of [`limit=3&cursor=${cursor}`, `q=list.example&subscribed=true&cursor=${cursor}`])
      expect((await list(query)).json.error.param).toBe("cursor");
  });

  const refused: [string, string][] = [
    ["subscribed=1", "subscribed"],
    ["subscribed=", "subscribed"],
    ["q=", "q"],
    [`q=${"x".repeat(257)}`, "q"],
    ["q=a%00b", "q"],
    ["limit=0", "limit"],
    ["limit=101", "limit"],
  ];
  test.each(refused)("refuses %.20s", async (query, param) => {
    const { status, json } = await list(query);
    expect([status, json.error.param]).toEqual([422, param]);
  });
});

describe("a contact", () => {
  test("a contact changes the given fields: null clears a name, metadata is replaced as a whole", async () => {
    const { json } = await create({
      email: "change@example.com",
      firstName: "Ada",
      lastName: "L",
      metadata: { a: 1, b: { c: 2 } },
    });
    const patch = (body: unknown) => api.call("PATCH", `/v1/contacts/${json.id}`, { body });
    api.clock.advance(1000);
    const expected = { ...json, firstName: null, updatedAt: iso() };
    expect((await patch({ firstName: null })).json).toEqual(expected);
    expect((await patch({ metadata: { d: 3 } })).json).toEqual({ ...expected, metadata: { d: 3 } });
    const others = { email: "other@example.com", id: "x", unsubscribedAt: "x" };
    expect((await patch({ lastName: "M", ...others })).json).toEqual({
      ...expected,
      lastName: "M",
      metadata: { d: 3 },
    });
    expect((await patch({ metadata: {} })).json.metadata).toEqual({});
    const now = iso();
    api.clock.advance(1000);
    expect((await patch({})).json.updatedAt).toBe(now);
  });

  test("a contact is unsubscribed and subscribed again by a change, and keeps the time it was unsubscribed", async () => {
    const { json } = await create({ email: "switch@example.com" });
    const patch = async (body: unknown) => {
      const called = await api.call("PATCH", `/v1/contacts/${json.id}`, { body });
      expect((await api.call("GET", `/v1/contacts/${json.id}`)).json).toEqual(called.json);
      return called.json;
    };
    api.clock.advance(1000);
    const left = iso();
    expect(await patch({ subscribed: false })).toMatchObject({ subscribed: false, unsubscribedAt: left });
    api.clock.advance(1000);
    const again = await patch({ subscribed: false, firstName: "Ada" });
    expect(again).toMatchObject({ subscribed: false, unsubscribedAt: left, firstName: "Ada" });
    expect(await patch({ subscribed: true })).toMatchObject({ subscribed: true, unsubscribedAt: null });
  });

  test("a contact refuses invalid changes and stays as it was", async () => {
    const { json } = await create({ email: "stays@example.com", firstName: "Ada" });
    const rows: [unknown, string][] = [
      [{ firstName: "f".repeat(201) }, "firstName"],
      [{ lastName: "a\nb" }, "lastName"],
      [{ firstName: 1 }, "firstName"],
      [{ subscribed: "no" }, "subscribed"],
      [{ metadata: { n: 2 ** 53 } }, "metadata.n"],
      [{ metadata: null }, "metadata"],
      [{ metadata: keys(51) }, "metadata"],
      [{ metadata: sized(16 * 1024 + 1) }, "metadata"],
      [{ metadata: nested(11), firstName: "Eve" }, "metadata"],
    ];
    for (const [body, param] of rows) {
      const called = await api.call("PATCH", `/v1/contacts/${json.id}`, { body });
      expect([called.status, called.json.error.param]).toEqual([422, param]);
    }
    expect((await api.call("GET", `/v1/contacts/${json.id}`)).json).toEqual(json);
  });

  test("a contact is unsubscribed once, keeps that time, and is not suppressed", async () => {
    const { json } = await create({ email: "leaves@example.com" });
    const post = (verb: string) => api.call("POST", `/v1/contacts/${json.id}/${verb}`);
    api.clock.advance(1000);
    const consent = [...json.consent, { at: iso(), subscribed: false, how: "api" }];
    const left = { ...json, consent, subscribed: false, unsubscribedAt: iso(), updatedAt: iso() };
    const first = await post("unsubscribe");
    expect([first.status, first.json]).toEqual([200, left]);
    api.clock.advance(1000);
    const again = await post("unsubscribe");
    expect([again.status, again.json]).toEqual([200, left]);
    expect(await findSuppressions(api.db, api.acme.a.id, ["leaves@example.com"], api.clock.now())).toEqual(
      new Map(),
    );
    const joined = { at: iso(), subscribed: true, how: "api" };
    const back = { ...json, consent: [...consent, joined], updatedAt: iso() };
    expect((await post("resubscribe")).json).toEqual(back);
    api.clock.advance(1000);
    expect((await post("resubscribe")).json).toEqual(back);
    expect((await api.call("GET", `/v1/contacts/${json.id}`)).json).toEqual(back);
  });

  test("a contact is deleted once, and its address is free again", async () => {
    const { json } = await create({ email: "gone@example.com" });
    const called = await api.call("DELETE", `/v1/contacts/${json.id}`);
    expect([called.status, called.text]).toEqual([204, ""]);
    expect((await api.call("DELETE", `/v1/contacts/${json.id}`)).status).toBe(404);
    expect((await create({ email: "gone@example.com" })).status).toBe(201);
  });

  test("a contact that is unknown or another project's is 404", async () => {
    const { json } = await create({ email: "mine@example.com" });
    const strangers: [string, string][] = ["none", "%00", "%FF", "'--", "mine@example.com"].map((id) => [
      id,
      api.acme.a.key,
    ]);
    for (const key of [api.acme.b.key, api.other.a.key]) strangers.push([json.id, key]);
    for (const [id, key] of strangers) {
      const calls: [string, string, unknown?][] = [
        ["GET", ""],
        ["PATCH", "", { firstName: "x" }],
        ["DELETE", ""],
        ["POST", "/unsubscribe"],
        ["POST", "/resubscribe"],
      ];
      for (const [method, tail, body] of calls) {
        const called = await api.call(method, `/v1/contacts/${id}${tail}`, { key, body });
        expect([method, tail, called.status, called.json.error.type]).toEqual([
          method,
          tail,
          404,
          "not_found",
        ]);
      }
    }
    expect((await api.call("GET", `/v1/contacts/${json.id}`)).json).toEqual(json);
  });
});

test("hostile text is accepted unchanged or refused, in every field", async () => {
  const texts = [
    "\u202etxt.exe",
    "a\u{1f600}b",
    "\u2028\u2029",
    "'; DROP TABLE contacts; --",
    "\\%_",
    "\ufeff",
  ];
  for (const [index, text] of texts.entries()) {
    const metadata = { [text]: text, "": [text], __proto__x: null };
    const { status, json } = await create({
      email: `h${index}@hostile.example`,
      firstName: text,
      lastName: text,
      metadata,
    });
    expect(status).toBe(201);
    expect(json).toMatchObject({ firstName: text, lastName: text });
    expect(json.metadata).toEqual(metadata);
    expect((await api.call("GET", `/v1/contacts/${json.id}`)).json).toEqual(json);
  }
  const half = await create({ email: "half@hostile.example", firstName: "a\ud800", lastName: "\udc00" });
  expect(half.json).toMatchObject({ firstName: "a\ufffd", lastName: "\ufffd" });
  const body = '{"email":"raw@hostile.example","metadata":{"__proto__":{"a":1},"\\u0000":"\\ud800"}}';
  const raw = await create(body);
  expect(raw.status).toBe(201);
  const read = await api.call("GET", `/v1/contacts/${raw.json.id}`);
  expect(read.text).toBe(raw.text);
  expect(Object.keys(read.json.metadata)).toContain("__proto__");
});

test("an unpaired surrogate in metadata is replaced, in keys and texts, and nothing else is changed", async () => {
  const given = { "k\ud800": ["\udc00", "\u{1f600}", "\\ud800", '"\\\ud83d'] };
  const shown = { "k\ufffd": ["\ufffd", "\u{1f600}", "\\ud800", '"\\\ufffd'] };
  const { json } = await create({ email: "halves@hostile.example", metadata: given });
  expect(json.metadata).toEqual(shown);
  const changed = await api.call("PATCH", `/v1/contacts/${json.id}`, {
    body: { metadata: { again: given } },
  });
  expect(changed.json.metadata).toEqual({ again: shown });
  expect((await api.call("GET", `/v1/contacts/${json.id}`)).json).toEqual(changed.json);
});

describe("a key without the scope is 403", () => {
  const rows: [string, string, string][] = [
    ["POST", "/v1/contacts", "contacts:write"],
    ["POST", "/v1/contacts/batch", "contacts:write"],
    ["GET", "/v1/contacts", "contacts:read"],
    ["GET", "/v1/contacts/x", "contacts:read"],
    ["PATCH", "/v1/contacts/x", "contacts:write"],
    ["DELETE", "/v1/contacts/x", "contacts:write"],
    ["POST", "/v1/contacts/x/unsubscribe", "contacts:write"],
    ["POST", "/v1/contacts/x/resubscribe", "contacts:write"],
  ];
  test.each(rows)("%s %s requires %s", async (method, path, scope) => {
    const key = await api.key({ senderId: api.acme.a.id, scopes: ["emails:send"] });
    const { status, json } = await api.call(method, path, { key });
    expect([status, json.error.code, json.error.param]).toEqual([403, "missing_scope", scope]);
  });
});

describe("POST /v1/contacts/batch", () => {
  const save = (contacts: unknown) => api.call("POST", "/v1/contacts/batch", { body: { contacts } });
  const results = async (contacts: unknown) => {
    const { status, json } = await save(contacts);
    expect(status).toBe(207);
    return json.data.map(({ result, error }: { result?: string; error?: { code: string; param: string } }) =>
      error === undefined ? result : [error.code, error.param],
    );
  };
  const read = async (id: string) => (await api.call("GET", `/v1/contacts/${id}`)).json;

  test("creates what is new, updates what differs, and leaves what is equal", async () => {
    const known = (await create({ email: "known@save.example", firstName: "Kim", metadata: { a: 1 } })).json;
    const equal = { email: "EQUAL@save.example", lastName: "Lee", metadata: { b: 2, c: [3] } };
    await create({ ...equal, email: "equal@save.example" });
    const { json } = await save([
      { email: "New@save.example", firstName: "Nia" },
      { email: "KNOWN@save.example", lastName: "Ode" },
      { ...equal, metadata: { c: [3], b: 2 } },
    ]);
    expect(json.data.map(({ result }: { result: string }) => result)).toEqual([
      "created",
      "updated",
      "unchanged",
    ]);
    expect(await read(json.data[0].id)).toMatchObject({ email: "New@save.example", firstName: "Nia" });
    expect(json.data[1]).toMatchObject({ id: known.id, email: "known@save.example" });
    expect(await read(known.id)).toMatchObject({ firstName: "Kim", lastName: "Ode", metadata: { a: 1 } });
  });

  test("refuses wrong items alone, each with its field", async () => {
    expect(
      await results([
        { email: "good@wrong.example" },
        { email: "nobody" },
        { firstName: "Ana" },
        "ana@wrong.example",
        null,
        { email: "deep@wrong.example", metadata: nested(12) },
        { email: "last@wrong.example", subscribed: "no" },
      ]),
    ).toEqual([
      "created",
      ["invalid_email", "email"],
      ["missing_field", "email"],
      ["invalid_item", ""],
      ["invalid_item", ""],
      ["validation_error", "metadata"],
      ["validation_error", "subscribed"],
    ]);
  });

  test("applies items with the same address in their order", async () => {
    expect(
      await results([
        { email: "twice@save.example", firstName: "A" },
        { email: "Twice@save.example", firstName: "B" },
        { email: "twice@save.example" },
      ]),
    ).toEqual(["created", "updated", "unchanged"]);
    const { json } = await api.call("GET", "/v1/contacts?q=twice%40save");
    expect(json.data).toMatchObject([{ firstName: "B" }]);
  });

  test("subscribes an unsubscribed contact again only if the item says so", async () => {
    const email = "left@save.example";
    const { id, unsubscribedAt } = (await create({ email, subscribed: false })).json;
    await save([{ email, firstName: "Lea" }]);
    expect(await read(id)).toMatchObject({ firstName: "Lea", subscribed: false, unsubscribedAt });
    await save([{ email, subscribed: true }]);
    expect(await read(id)).toMatchObject({ subscribed: true, unsubscribedAt: null });
  });

  test("creates each address once if batches race", async () => {
    const contacts = Array.from({ length: 20 }, (_, at) => ({ email: `race${at}@save.example` }));
    const all = await Promise.all(
      ["A", "B", "C", "D"].map((firstName) => results(contacts.map((one) => ({ ...one, firstName })))),
    );
    expect(all.flat().filter((result) => result === "created")).toHaveLength(contacts.length);
    expect(all.flat().filter((result) => result === "updated")).toHaveLength(3 * contacts.length);
  });

  test("hides from a key that may not read contacts if they have changed", async () => {
    const key = await api.key({ senderId: api.acme.a.id, scopes: ["contacts:write"] });
    const contacts = [{ email: "hidden@save.example" }];
    const once = async () =>
      (await api.call("POST", "/v1/contacts/batch", { body: { contacts }, key })).json.data[0].result;
    expect([await once(), await once()]).toEqual(["created", "updated"]);
  });

  test("takes no empty batch, none over the limit, and names a field that is nearly right", async () => {
    const many = (count: number) =>
      Array.from({ length: count }, (_, at) => ({ email: `b${at}@many.example` }));
    for (const contacts of [[], many(MAX_BATCH + 1), "x"])
      expect((await save(contacts)).json.error).toMatchObject({ param: "contacts" });
    expect((await save(many(MAX_BATCH))).json.data).toHaveLength(MAX_BATCH);
    const { json } = await save([{ email: "near@save.example", first_name: "Ned" }]);
    expect(json.data[0].warnings).toMatchObject([{ param: "first_name" }]);
  });
});
