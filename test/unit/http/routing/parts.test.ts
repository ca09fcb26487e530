import { describe, expect, test } from "bun:test";
import { Type } from "@sinclair/typebox";
import { AppError } from "../../../../src/core/errors.ts";
import { errorAnswer } from "../../../../src/http/routing/errors.ts";
import { readIdempotencyKey } from "../../../../src/http/access/idempotency.ts";
import { KEY_USE_INTERVAL_MS, trackKeyUse } from "../../../../src/http/access/key-use.ts";
import { openPage } from "../../../../src/http/routing/paging.ts";
import { readQuery } from "../../../../src/http/routing/query.ts";
import { DAY_OR_TIME, EMAIL } from "../../../../src/http/routing/schemas.ts";
import { requestIdOf } from "../../../../src/http/pipeline/request-log.ts";
import { webhookUrl } from "../../../../src/flows/webhooks/webhook-url.ts";
import type { ApiKey } from "../../../../src/store/projects/keys.ts";
import { mayReach } from "../../../support/public-guard.ts";

function thrownBy(run: () => unknown): AppError {
  try {
    run();
  } catch (error) {
    if (error instanceof AppError) return error;
    throw error;
  }
  throw new Error("nothing was thrown");
}

describe("a request id that the client chose", () => {
  const rows: [string, string | null, boolean][] = [
    ["letters, digits, dot, underscore, dash", "aZ09._-", true],
    ["128 characters", "x".repeat(128), true],
    ["129 characters", "x".repeat(129), false],
    ["empty", "", false],
    ["with a space", "a b", false],
    ["with a comma", "a,b", false],
    ["markup", "<script>", false],
    ["none", null, false],
  ];
  test.each(rows)("%s", (_name, given, taken) => {
    const id = requestIdOf(new Headers(given === null ? {} : { "x-request-id": given }), 1_750_000_000_000);
    if (taken) expect(id).toBe(given ?? "");
    else expect(id).toMatch(/^req_[0-9a-z]{26}$/);
  });
});

describe("an Idempotency-Key", () => {
  const rows: [string, string, boolean][] = [
    ["one character", "a", true],
    ["256 characters", "k".repeat(256), true],
    ["with spaces within", "a b", true],
    ["257 characters", "k".repeat(257), false],
    ["empty", "", false],
    ["beyond ASCII", "caf\u00e9", false],
    ["with a tab", "a\tb", false],
  ];
  test.each(rows)("%s", (_name, key, taken) => {
    const read = () => readIdempotencyKey(new Headers({ "idempotency-key": key }));
    if (taken) expect(read()).toBe(key);
    else
      expect(thrownBy(read)).toMatchObject({
        type: "invalid_request",
        details: { param: "Idempotency-Key" },
      });
  });
});

describe("a query", () => {
  const schema = Type.Object({
    limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 100 })),
    subscribed: Type.Optional(Type.Boolean()),
    q: Type.Optional(Type.String()),
    email: Type.Optional(Type.String(EMAIL)),
    after: Type.Optional(Type.String(DAY_OR_TIME)),
  });
  const rows: [string, string, unknown][] = [
    ["no query", "", {}],
    ["an integer", "?limit=100", { limit: 100 }],
    ["a boolean", "?subscribed=false", { subscribed: false }],
    ["a boolean as Python writes it", "?subscribed=True", { subscribed: true }],
    ["digits where a text is required", "?q=12", { q: "12" }],
    ["names unknown", "?x=1&limit=5&__proto__=1", { limit: 5 }],
    ["a name twice: the first counts", "?q=a&q=b", { q: "a" }],
    ["percent encoding", "?q=a%40b%2Bc", { q: "a@b+c" }],
    ["broken percent encoding", "?q=%zz", { q: "%zz" }],
    ["a bare plus in an address", "?email=a+b@c.example", { email: "a+b@c.example" }],
    ["an encoded plus in an address", "?email=a%2Bb@c.example", { email: "a+b@c.example" }],
    ["a bare plus elsewhere: a space", "?q=a+b", { q: "a b" }],
    ["a bare plus in a search for an address", "?q=a+b@c.example", { q: "a+b@c.example" }],
    [
      "a bare plus in a time's zone",
      "?after=2026-01-31T09:30:00+01:00",
      { after: "2026-01-31T09:30:00+01:00" },
    ],
    ["a text that cannot be an address", "?email=ana", "email"],
    ["an address with a space", "?email=a%20b@c.example", "email"],
    ["an empty address", "?email=", "email"],
    ["an integer over its limit", "?limit=101", "limit"],
    ["an integer under its limit", "?limit=0", "limit"],
    ["no integer", "?limit=1.5", "limit"],
    ["an empty integer", "?limit=", "limit"],
    ["an integer in hex", "?limit=0x10", "limit"],
    ["an integer without end", `?limit=${"9".repeat(400)}`, "limit"],
    ["no boolean", "?subscribed=yes", "subscribed"],
  ];
  test.each(rows)("%s", (_name, text, expected) => {
    const read = () => readQuery(schema, `http://localhost/v1/x${text}`);
    if (typeof expected !== "string") expect(read()).toEqual(expected as Record<string, unknown>);
    else expect(thrownBy(read)).toMatchObject({ type: "validation_error", details: { param: expected } });
  });
});

describe("a page", () => {
  const key = new Uint8Array(32).fill(1);
  const base = { key, path: "/v1/things", owner: "snd_1", query: {} };
  const rows = ["c", "b", "a"];
  const show = (row: string) => row;
  const open = (query: Record<string, unknown>, rest: Partial<typeof base> = {}) =>
    openPage({ ...base, ...rest, query });

  test("holds 20 items unless told otherwise, and reads one more", () => {
    expect(open({}).take).toBe(21);
    expect(open({ limit: 100 }).take).toBe(101);
  });

  test("is the last exactly if no row is left over", () => {
    expect(open({ limit: 3 }).answer(rows, show, show)).toEqual({ data: rows, nextCursor: null });
    expect(open({ limit: 2 }).answer(rows, show, show)).toEqual({
      data: ["c", "b"],
      nextCursor: expect.any(String),
    });
    expect(open({}).answer([], show, show)).toEqual({ data: [], nextCursor: null });
  });

  test("starts after the last item shown before, even with another limit", () => {
    const cursor = open({ limit: 2, q: "x" }).answer(rows, show, show).nextCursor;
    expect(open({ limit: 7, q: "x", cursor }).after).toBe("b");
  });

  const foreign: [string, Record<string, unknown>, Partial<typeof base>][] = [
    ["of another path", {}, { path: "/v1/others" }],
    ["of another project", {}, { owner: "snd_2" }],
    ["of other filters", { q: "x" }, {}],
    ["under another key", {}, { key: new Uint8Array(32).fill(2) }],
  ];
  test.each(foreign)("refuses a cursor %s", (_name, query, rest) => {
    const cursor = open({ limit: 2 }).answer(rows, show, show).nextCursor;
    expect(thrownBy(() => open({ ...query, cursor }, rest))).toMatchObject({
      type: "invalid_request",
      details: { param: "cursor" },
    });
  });

  test("refuses a cursor that is altered in any character, cut, lengthened or made up", () => {
    const cursor = open({ limit: 2 }).answer(rows, show, show).nextCursor ?? "";
    const altered = [...cursor].map(
      (char, at) => cursor.slice(0, at) + (char === "A" ? "B" : "A") + cursor.slice(at + 1),
    );
    for (const text of [
      ...altered,
      cursor.slice(1),
      `${cursor}AAAA`,
      "",
      "AAAA",
      "x".repeat(10_000),
      "\u0000",
    ])
      expect(thrownBy(() => open({ limit: 2, cursor: text })).type).toBe("invalid_request");
  });
});

describe("a webhook's URL", () => {
  const rows: [string, boolean, boolean][] = [
    // Columns: url, whether production accepts it, whether development does.
    ["https://hooks.example.com/in?x=1", true, true],
    ["https://hooks.example.com:8443/", true, true],
    ["https://1.1.1.1/", true, true],
    ["http://hooks.example.com/", false, true],
    ["https://localhost/", false, true],
    ["https://localhost./", false, true],
    ["https://LOCALHOST/", false, true],
    ["https://a.localhost/", false, true],
    ["https://127.0.0.1/", false, true],
    ["https://127.1/", false, true],
    ["https://0x7f.0.0.1/", false, true],
    ["https://2130706433/", false, true],
    ["https://10.0.0.1/", false, true],
    ["https://169.254.169.254/latest/meta-data", false, true],
    ["https://100.64.0.1/", false, true],
    ["https://[::1]/", false, true],
    ["https://[::ffff:10.0.0.1]/", false, true],
    ["https://[64:ff9b::a00:1]/", false, true],
    ["https://[fe80::1]/", false, true],
    ["https://user:pass@hooks.example.com/", false, false],
    ["ftp://hooks.example.com/", false, false],
    ["javascript:alert(1)", false, false],
    ["hooks.example.com", false, false],
    ["", false, false],
    [`https://hooks.example.com/${"x".repeat(2048 - 26)}`, true, true],
    [`https://hooks.example.com/${"x".repeat(2048 - 25)}`, false, false],
  ];
  test.each(rows)("%s", (url, production, development) => {
    for (const [allowPrivate, taken] of [
      [false, production],
      [true, development],
    ] as const) {
      const read = () => webhookUrl(url, { mayReach, allowPrivate });
      if (taken) expect(read()).toBe(new URL(url).href);
      else expect(thrownBy(read)).toMatchObject({ type: "validation_error", details: { param: "url" } });
    }
  });

  test("a webhook's URL that is too long is refused with that reason", () => {
    const read = () => webhookUrl(`https://a.example/${"x".repeat(2048)}`, { mayReach, allowPrivate: false });
    expect(thrownBy(read)).toMatchObject({ message: '"url" must have at most 2048 characters.' });
  });
});

describe("lastUsedAt", () => {
  const key = (lastUsedAt: number | null) => ({ id: "key_1", lastUsedAt }) as ApiKey;
  const START = 1_750_000_000_000;

  test("use is written at most once a minute per key", () => {
    const written: number[] = [];
    const use = trackKeyUse(async (_id, at) => void written.push(at));
    for (const at of [0, 1, KEY_USE_INTERVAL_MS - 1, KEY_USE_INTERVAL_MS, KEY_USE_INTERVAL_MS + 1])
      use.note(key(null), START + at);
    expect(written).toEqual([START, START + KEY_USE_INTERVAL_MS]);
  });

  test("use is not written again if another process just wrote it", () => {
    const written: number[] = [];
    const use = trackKeyUse(async (_id, at) => void written.push(at));
    use.note(key(START), START + KEY_USE_INTERVAL_MS - 1);
    expect(written).toEqual([]);
  });

  test("use that cannot be written does not fail the request", async () => {
    const use = trackKeyUse(() => Promise.reject(new Error("database gone")));
    use.note(key(null), START);
    await use.settled();
  });
});

describe("an error that is not an AppError", () => {
  const rows: [string, unknown, number, string][] = [
    ["a bug", new TypeError("x is not a function at /srv/secret.ts"), 500, "internal_error"],
    ["SQL", new Error("SQLITE_ERROR: near SELECT * FROM api_keys"), 500, "internal_error"],
    ["no error at all", "text thrown", 500, "internal_error"],
    [
      "a database out of reach",
      Object.assign(new Error("connect to 10.0.0.1"), { code: "ECONNREFUSED" }),
      503,
      "service_unavailable",
    ],
    ["a locked database", Object.assign(new Error("x"), { code: "SQLITE_BUSY" }), 503, "service_unavailable"],
  ];
  test.each(rows)("%s reveals nothing about itself", (_name, thrown, status, type) => {
    const answer = errorAnswer(thrown, "req_1");
    expect(answer.status).toBe(status);
    expect(answer.body).toMatchObject({ error: { type, requestId: "req_1" } });
    expect(JSON.stringify(answer.body)).not.toMatch(/secret|SELECT|10\.0\.0\.1|stack|text thrown/);
  });
});
