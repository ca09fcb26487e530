import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { systemClock } from "../../src/clock.ts";
import { MAX_SUBJECT_CHARS } from "../../src/core/messages/send-item.ts";
import { MAX_BODY_PART_BYTES } from "../../src/core/messages/send-rules.ts";
import { templateRoutes } from "../../src/http/routes/templates.ts";
import { openRenderer } from "../../src/wiring/cpu/renderer.ts";
import { type TestApi, testApi } from "../support/api.ts";
import { TEST_LINKS } from "../support/renderer.ts";

let api: TestApi;
const renderer = openRenderer({ clock: systemClock }, { links: TEST_LINKS, cpus: 1 });
beforeAll(async () => {
  api = await testApi({
    routes: ({ db }) => templateRoutes({ db, renderer }),
    maxBodyBytes: 3 * MAX_BODY_PART_BYTES,
  });
});
afterAll(async () => {
  renderer.close();
  await api.close();
});

/** Saves a template, with a text part unless the body names one. */
const create = (given: unknown, key?: string) => {
  const isWhole = typeof given !== "object" || given === null || Array.isArray(given);
  const body = isWhole ? given : { text: "Hello", ...given };
  return api.call("POST", "/v1/templates", key === undefined ? { body } : { body, key });
};
const preview = (body: unknown) => api.call("POST", "/v1/templates/preview", { body });

const WELCOME = {
  name: "Welcome",
  subject: "Hi {{ user.name }}",
  html: "<p>{{ user.name }} {{ x }}</p>",
  text: "{{ y }}",
};

describe("POST /v1/templates", () => {
  test("saves a template and names its variables", async () => {
    const { status, json } = await create({ ...WELCOME, slug: "first-one" });
    expect(status).toBe(201);
    expect(json).toEqual({
      ...WELCOME,
      id: expect.stringMatching(/^tpl_[0-9a-z]{26}$/),
      slug: "first-one",
      variables: ["user.name", "x", "y"],
      createdAt: new Date(api.clock.now()).toISOString(),
      updatedAt: new Date(api.clock.now()).toISOString(),
    });
    expect((await api.call("GET", `/v1/templates/${json.id}`)).json).toEqual(json);
    expect((await api.call("GET", "/v1/templates/first-one")).json).toEqual(json);
  });

  test("POST /v1/templates without html or text stores null for it", async () => {
    expect((await create({ name: "Bare", subject: "", html: null, text: "t" })).json).toMatchObject({
      subject: "",
      html: null,
      text: "t",
      variables: [],
    });
  });

  test.each([{}, { html: null }, { html: "", text: " \n" }])(
    "that would show nothing is 422: %p",
    async (parts) => {
      const { status, json } = await create({ name: "Blank", subject: "s", text: null, ...parts });
      expect([status, json.error.code, json.error.param]).toEqual([422, "missing_field", "html"]);
      const { json: saved } = await create({ name: "Shown", subject: "s", text: "t" });
      const emptied = await api.call("PATCH", `/v1/templates/${saved.id}`, { body: { html: "", text: "" } });
      expect([emptied.status, emptied.json.error.param]).toEqual([422, "html"]);
    },
  );

  test.each(["{{a b}}", "{{ first name }}", "{% if x %}{{ 'a' b | upcase }}{% endif %}"])(
    "with several values in a placeholder is 422: %p",
    async (text) => {
      const { status, json } = await create({ name: "Stray", subject: "s", text });
      expect([status, json.error.param]).toEqual([422, "text"]);
      expect(json.error.message).toContain("several values");
    },
  );

  test.each(["{{ a.b. }}", "{{ a. }}", "{{ .a }}", "{% if a. %}x{% endif %}", "{{ a | append: b. }}"])(
    "with a dot beside no name is 422: %p",
    async (text) => {
      const { status, json } = await create({ name: "Dot", subject: "s", text });
      expect([status, json.error.param]).toEqual([422, "text"]);
      expect(json.error.message).toContain("has a dot without a name");
    },
  );

  test.each(["{{ a == b }}", "{{ a and b or c }}", "{{ not a }}", "{{ (1..3) | join }}", "{{ a['b c'] }}"])(
    "with one value in a placeholder is saved: %p",
    async (text) => {
      expect((await create({ name: "One value", subject: "s", text })).status).toBe(201);
    },
  );

  const slugs: [string, string][] = [
    ["Password Reset!", "password-reset"],
    ["Password reset", "password-reset-2"],
    ["  password—RESET ", "password-reset-3"],
    ["Crème brûlée №5", "creme-brulee-no5"],
    ["ようこそ", "template"],
    ["😀", "template-2"],
    ["x".repeat(200), "x".repeat(64)],
    ["x".repeat(100), `${"x".repeat(62)}-2`],
  ];
  test("derives a slug from the name, with -2, -3 … if it is taken", async () => {
    for (const [name, slug] of slugs) expect((await create({ name, subject: "s" })).json.slug).toBe(slug);
  });

  test("concurrent POSTs to /v1/templates each get their own derived slug", async () => {
    const called = await Promise.all(
      Array.from({ length: 12 }, () => create({ name: "Rush", subject: "s" })),
    );
    const taken = called.map(({ json }) => json.slug).sort();
    const expected = ["rush", ...Array.from({ length: 11 }, (_, index) => `rush-${index + 2}`)].sort();
    expect(taken).toEqual(expected);
  });

  test("a given slug that is taken is 409; another project may have it", async () => {
    const body = { name: "n", subject: "s", slug: "taken" };
    expect((await create(body)).status).toBe(201);
    const { status, json } = await create(body);
    expect([status, json.error.type, json.error.code, json.error.param]).toEqual([
      409,
      "conflict",
      "duplicate",
      "slug",
    ]);
    for (const key of [api.acme.b.key, api.other.a.key]) expect((await create(body, key)).status).toBe(201);
  });

  test("POST /v1/templates with an Idempotency-Key saves once", async () => {
    const how = { body: { name: "Once", subject: "s", text: "t" }, headers: { "idempotency-key": "tpl-1" } };
    const first = await api.call("POST", "/v1/templates", how);
    const second = await api.call("POST", "/v1/templates", how);
    expect([first.status, second.status, second.json]).toEqual([201, 201, first.json]);
    expect(second.headers.get("idempotent-replayed")).toBe("true");
    expect((await api.call("GET", "/v1/templates/once-2")).status).toBe(404);
  });

  const fits: [string, Record<string, unknown>][] = [
    ["a name of 200 characters", { name: "n".repeat(200) }],
    ["a subject of 998 characters", { subject: "s".repeat(MAX_SUBJECT_CHARS) }],
    ["html of 2 MiB", { html: "h".repeat(MAX_BODY_PART_BYTES) }],
    ["text of 2 MiB", { text: "t".repeat(MAX_BODY_PART_BYTES) }],
    ["a slug of 64 characters", { slug: "s".repeat(64) }],
    ["a slug of hyphens and digits", { slug: "-0-" }],
    ["unknown fields", { id: "tpl_1", variables: ["z"], createdAt: "never" }],
  ];
  test.each(fits)("accepts %s", async (_name, changes) => {
    expect((await create({ name: "Fits", subject: "s", ...changes })).status).toBe(201);
  });

  const rows: [string, unknown, string, string | undefined][] = [
    ["nothing", {}, "name", "missing_field"],
    ["no subject", { subject: undefined }, "subject", "missing_field"],
    ["an empty name", { name: "" }, "name", undefined],
    ["a name of 201 characters", { name: "n".repeat(201) }, "name", undefined],
    ["a line break in the name", { name: "a\nb" }, "name", undefined],
    ["a subject of 999 characters", { subject: "s".repeat(MAX_SUBJECT_CHARS + 1) }, "subject", undefined],
    ["html of 2 MiB and a byte", { html: `é${"h".repeat(MAX_BODY_PART_BYTES - 1)}` }, "html", undefined],
    ["text of 2 MiB and a byte", { text: "t".repeat(MAX_BODY_PART_BYTES + 1) }, "text", undefined],
    ["a number as html", { html: 1 }, "html", undefined],
    ["an empty slug", { slug: "" }, "slug", undefined],
    ["a slug of 65 characters", { slug: "s".repeat(65) }, "slug", undefined],
    ["a slug in capitals", { slug: "Slug" }, "slug", undefined],
    ["a slug with a line break", { slug: "slug\n" }, "slug", undefined],
    ["a slug like an id", { slug: "tpl_01h00000000000000000000000" }, "slug", undefined],
    ["NUL in the subject", { subject: "a\u0000b" }, "subject", undefined],
    ["NUL in html", { html: "a\u0000b" }, "html", undefined],
    ["NUL in text", { text: "a\u0000b" }, "text", undefined],
    ["a syntax error in the subject", { subject: "{{ a" }, "subject", undefined],
    ["a syntax error in html", { html: "{% if a %}" }, "html", undefined],
    ["a syntax error in text", { text: "{{ a | nofilter }}" }, "text", undefined],
    ["another file", { html: "{% include 'x' %}" }, "html", undefined],
    ["more code than can be read", { html: "{{a}}".repeat(20_001) }, "html", undefined],
  ];
  test.each(rows)("refuses %s", async (name, changes, param, code) => {
    const body = name === "nothing" ? {} : { name: "Refused", subject: "s", ...Object(changes) };
    const { status, json } = await create(body);
    expect([status, json.error.type, json.error.param, json.error.code]).toEqual([
      422,
      "validation_error",
      param,
      code,
    ]);
  });

  test("a body that is not an object is 422, and one that is not JSON 400", async () => {
    for (const body of [[], "1", "null", '"x"']) expect((await create(body)).status).toBe(422);
    expect((await create("{")).status).toBe(400);
  });
});

describe("GET /v1/templates", () => {
  test("lists the project's, newest first, each once, while new ones are added", async () => {
    const key = api.other.b.key;
    const ids: string[] = [];
    for (let i = 0; i < 5; i++) ids.unshift((await create({ name: `n${i}`, subject: "s" }, key)).json.id);
    const seen: string[] = [];
    let cursor: string | null = null;
    for (let pages = 0; pages === 0 || cursor !== null; pages++) {
      const at: string = cursor === null ? "" : `&cursor=${cursor}`;
      const { json } = await api.call("GET", `/v1/templates?limit=2${at}`, { key });
      seen.push(...json.data.map(({ id }: { id: string }) => id));
      cursor = json.nextCursor;
      await create({ name: "later", subject: "s" }, key);
    }
    expect(seen).toEqual(ids);
  });

  test("refuses a limit out of range and another project's cursor", async () => {
    for (const limit of ["0", "101", "x"])
      expect((await api.call("GET", `/v1/templates?limit=${limit}`)).status).toBe(422);
    const { json } = await api.call("GET", "/v1/templates?limit=1");
    const path = `/v1/templates?limit=1&cursor=${json.nextCursor}`;
    expect((await api.call("GET", path)).status).toBe(200);
    const called = await api.call("GET", path, { key: api.acme.b.key });
    expect([called.status, called.json.error.param]).toEqual([400, "cursor"]);
  });
});

describe("a template", () => {
  test("a template changes the given fields, and its variables with them, by id or slug", async () => {
    const { json } = await create({ ...WELCOME, slug: "change" });
    api.clock.advance(1000);
    const patch = (path: string, body: unknown) => api.call("PATCH", `/v1/templates/${path}`, { body });
    const updatedAt = new Date(api.clock.now()).toISOString();
    const second = await patch("change", { html: "{{ new.one }}" });
    expect(second.status).toBe(200);
    const expected = { ...json, html: "{{ new.one }}", variables: ["user.name", "new.one", "y"], updatedAt };
    expect(second.json).toEqual(expected);
    expect((await patch(json.id, { text: null, slug: "changed", name: "New" })).json).toEqual({
      ...expected,
      text: null,
      slug: "changed",
      name: "New",
      variables: ["user.name", "new.one"],
    });
    expect((await api.call("GET", "/v1/templates/change")).status).toBe(404);
    expect((await api.call("GET", "/v1/templates/changed")).json.id).toBe(json.id);
    expect((await patch("changed", {})).json.name).toBe("New");
    expect((await patch("changed", { slug: "changed" })).status).toBe(200);
  });

  test("changed by two requests at once has both changes and the variables of both", async () => {
    const { json } = await create({ name: "Both", subject: "s", slug: "both" });
    await Promise.all([
      api.call("PATCH", "/v1/templates/both", { body: { html: "{{ a }}" } }),
      api.call("PATCH", "/v1/templates/both", { body: { text: "{{ b }}" } }),
    ]);
    expect((await api.call("GET", `/v1/templates/${json.id}`)).json).toMatchObject({
      html: "{{ a }}",
      text: "{{ b }}",
      variables: ["a", "b"],
    });
  });

  test("a template refuses invalid changes and stays as it was", async () => {
    await create({ name: "Here", subject: "s", slug: "here" });
    const { json } = await create({ ...WELCOME, slug: "stays" });
    const rows: [unknown, number, string][] = [
      [{ slug: "here" }, 409, "slug"],
      [{ slug: "A" }, 422, "slug"],
      [{ name: null }, 422, "name"],
      [{ subject: null }, 422, "subject"],
      [{ subject: "{{ a" }, 422, "subject"],
      [{ html: "{% if %}" }, 422, "html"],
      [{ text: "t".repeat(MAX_BODY_PART_BYTES + 1) }, 422, "text"],
    ];
    for (const [body, status, param] of rows) {
      const called = await api.call("PATCH", "/v1/templates/stays", { body });
      expect([called.status, called.json.error.param]).toEqual([status, param]);
    }
    expect((await api.call("GET", "/v1/templates/stays")).json).toEqual(json);
  });

  test("a template is deleted by id or slug, and its slug is free again", async () => {
    for (const by of ["id", "slug"] as const) {
      const { json } = await create({ name: "Gone", subject: "s", slug: "gone" });
      const called = await api.call("DELETE", `/v1/templates/${json[by]}`);
      expect([called.status, called.text]).toEqual([204, ""]);
      for (const name of [json.id, "gone"])
        expect((await api.call("GET", `/v1/templates/${name}`)).status).toBe(404);
      expect((await api.call("DELETE", "/v1/templates/gone")).status).toBe(404);
    }
  });

  test("a template that is unknown or another project's is 404", async () => {
    const { json } = await create({ ...WELCOME, slug: "mine" });
    const names = [
      "none",
      "tpl_00000000000000000000000000",
      "%00",
      "%FF",
      "a'--",
      "%F0%9F%98%80",
      "x".repeat(3000),
    ];
    const strangers = [api.acme.b.key, api.other.a.key].flatMap((key) =>
      [json.id, "mine"].map((name) => [name, key]),
    );
    for (const [name, key] of [...names.map((name) => [name, api.acme.a.key]), ...strangers]) {
      const how = key === undefined ? {} : { key };
      const path = `/v1/templates/${name}`;
      const statuses = [
        (await api.call("GET", path, how)).status,
        (await api.call("PATCH", path, { ...how, body: { name: "x" } })).status,
        (await api.call("DELETE", path, how)).status,
        (await api.call("POST", `${path}/render`, { ...how, body: {} })).status,
      ];
      expect([name, ...statuses]).toEqual([name, 404, 404, 404, 404]);
    }
    expect((await api.call("GET", "/v1/templates/mine")).json).toEqual(json);
  });
});

describe("POST /v1/templates/{id}/render", () => {
  test("renders by id or slug with the given data", async () => {
    const { json } = await create({ ...WELCOME, slug: "render" });
    const body = { data: { user: { name: "<Ada>\r\nBcc: x" }, x: "&" } };
    for (const name of [json.id, "render"]) {
      const called = await api.call("POST", `/v1/templates/${name}/render`, { body });
      expect(called.status).toBe(200);
      expect(called.json).toEqual({
        subject: "Hi <Ada> Bcc: x",
        html: "<p>&lt;Ada&gt;\r\nBcc: x &amp;</p>",
        text: "",
        missing: ["y"],
      });
    }
  });

  test("POST /v1/templates/{id}/render without data or body substitutes nothing", async () => {
    await create({ name: "n", subject: "[{{ a }}]", html: "{{ b.c }}", text: null, slug: "empty" });
    const expected = { subject: "[]", html: "", text: null, missing: ["a", "b.c"] };
    for (const how of [{}, { body: {} }, { body: { data: {} } }])
      expect((await api.call("POST", "/v1/templates/empty/render", how)).json).toEqual(expected);
  });

  test("POST /v1/templates/{id}/render over a limit is 422 rendering_failure", async () => {
    await create({ name: "n", subject: "s", html: "{{ a | append: a }}", slug: "over" });
    const body = { data: { a: "x".repeat(MAX_BODY_PART_BYTES) } };
    const { status, json } = await api.call("POST", "/v1/templates/over/render", { body });
    expect([status, json.error.type, json.error.code, json.error.param]).toEqual([
      422,
      "validation_error",
      "rendering_failure",
      "html",
    ]);
  });

  test("refuses data that is not an object", async () => {
    await create({ name: "n", subject: "s", slug: "data" });
    for (const data of [null, [], "x", 1])
      expect((await api.call("POST", "/v1/templates/data/render", { body: { data } })).json.error.param).toBe(
        "data",
      );
  });
});

describe("POST /v1/templates/preview", () => {
  test("renders a draft and saves nothing", async () => {
    const key = await api.key({ senderId: api.acme.b.id, scopes: ["templates:read"] });
    const before = (await api.call("GET", "/v1/templates", { key })).json.data.length;
    const body = { subject: "{{ a }}", html: "{{ a }}", text: "{{ b }}", data: { a: "<" } };
    const called = await api.call("POST", "/v1/templates/preview", { body, key });
    expect([called.status, called.json]).toEqual([
      200,
      { subject: "<", html: "&lt;", text: "", missing: ["b"] },
    ]);
    expect((await api.call("GET", "/v1/templates", { key })).json.data.length).toBe(before);
    expect((await preview({})).json).toEqual({ subject: "", html: null, text: null, missing: [] });
  });

  const rows: [string, unknown, string, string | undefined][] = [
    ["a syntax error", { html: "{{ a" }, "html", undefined],
    ["html of 2 MiB and a byte", { html: "h".repeat(MAX_BODY_PART_BYTES + 1) }, "html", undefined],
    ["a subject of 999 characters", { subject: "s".repeat(MAX_SUBJECT_CHARS + 1) }, "subject", undefined],
    [
      "a subject that renders to 999 characters",
      { subject: "{{ a }}", data: { a: "s".repeat(MAX_SUBJECT_CHARS + 1) } },
      "subject",
      "rendering_failure",
    ],
    [
      "a loop without end",
      { text: "{% for i in (1..999999999) %}x{% endfor %}" },
      "text",
      "rendering_failure",
    ],
    ["a filter that throws", { html: "{{ '%' | url_decode }}" }, "html", "rendering_failure"],
  ];
  test.each(rows)("refuses %s", async (_name, body, param, code) => {
    const { status, json } = await preview(body);
    expect([status, json.error.param, json.error.code]).toEqual([422, param, code]);
  });
});

test("hostile text is accepted unchanged or refused, in every field", async () => {
  const texts = [
    "\u202etxt.exe",
    "a\u{1f600}b",
    "\u2028\u2029\u0085",
    "'; DROP TABLE templates; --",
    "\\%_",
    "\ufeff",
  ];
  for (const text of texts) {
    const called = await create({ name: text, subject: text, html: `<p>${text}`, text });
    expect(called.status).toBe(201);
    expect(called.json).toMatchObject({ name: text, subject: text, html: `<p>${text}`, text });
    expect((await api.call("GET", `/v1/templates/${called.json.id}`)).json).toEqual(called.json);
    const changed = await api.call("PATCH", `/v1/templates/${called.json.id}`, {
      body: { text: `${text}!` },
    });
    expect(changed.json.text).toBe(`${text}!`);
  }
  const half = await create({ name: "a\ud800", subject: "\udc00b", html: "\ud800", text: "{{ a }}\ud800" });
  expect(half.json).toMatchObject({
    name: "a\ufffd",
    subject: "\ufffdb",
    html: "\ufffd",
    text: "{{ a }}\ufffd",
  });
  expect((await api.call("GET", `/v1/templates/${half.json.id}`)).json).toEqual(half.json);
  const body = { subject: "{{ a }}", text: "{{ a }}", data: { a: "\ud800\u0000", "\ud800": 1 } };
  expect((await preview(body)).status).toBe(200);
});

describe("a key without the scope is 403", () => {
  const rows: [string, string, string][] = [
    ["POST", "/v1/templates", "templates:write"],
    ["GET", "/v1/templates", "templates:read"],
    ["GET", "/v1/templates/x", "templates:read"],
    ["PATCH", "/v1/templates/x", "templates:write"],
    ["DELETE", "/v1/templates/x", "templates:write"],
    ["POST", "/v1/templates/x/render", "templates:read"],
    ["POST", "/v1/templates/preview", "templates:read"],
  ];
  test.each(rows)("%s %s requires %s", async (method, path, scope) => {
    const key = await api.key({ senderId: api.acme.a.id, scopes: ["emails:send"] });
    const { status, json } = await api.call(method, path, { key });
    expect([status, json.error.code, json.error.param]).toEqual([403, "missing_scope", scope]);
  });
});
