import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { RightOfWay } from "../../src/core/concurrency/right-of-way.ts";
import { Type } from "@sinclair/typebox";
import { AppError } from "../../src/core/errors.ts";
import { accepted, created } from "../../src/http/routing/answer.ts";
import { accountRoute, projectRoute, type Route } from "../../src/http/routing/route.ts";
import { loadConfig } from "../../src/config.ts";
import { ALWAYS_ROOM } from "../../src/flows/free-space.ts";
import { createHttp } from "../../src/http/server/server.ts";
import { deleteOldAnswers, IDEMPOTENCY_WINDOW_MS } from "../../src/store/projects/idempotency.ts";
import { BOX_KEY, type CallOptions, type Called, type TestApi, testApi } from "../support/api.ts";

/** Number of runs of each probe. */
const ran = { plain: 0, recorded: 0, refused: 0 };
/** A promise the waiting probe waits for, and a signal that it has begun. */
let release: () => void = () => undefined;
let begun: () => void = () => undefined;
/** Lets two requests continue together, once both have looked for a stored answer. */
let meet: () => Promise<void> = () => Promise.resolve();

function probes({ db }: Pick<TestApi, "db">): Route[] {
  const base = {
    method: "POST",
    scope: "emails:send",
    summary: "Probe",
    answers: { 201: Type.Any() },
  } as const;
  return [
    projectRoute({
      ...base,
      path: "/v1/plain",
      operationId: "plain",
      handle: () => created({ run: ++ran.plain, mail: "\u{1F4EE}" }),
    }),
    projectRoute({
      ...base,
      path: "/v1/recorded",
      operationId: "recorded",
      answers: { 202: Type.Any() },
      async handle({ record, now, senderId }) {
        const answer = accepted({ run: ++ran.recorded });
        const sql = "INSERT INTO usage (sender_id, day, recipients) VALUES (?, ?, 1)";
        await db.write([{ sql, args: [senderId, `${now}-${ran.recorded}`] }, ...record(answer)]);
        return answer;
      },
    }),
    projectRoute({
      ...base,
      path: "/v1/unique",
      operationId: "unique",
      answers: { 202: Type.Any() },
      async handle({ record, senderId }) {
        await meet();
        const answer = accepted({ made: true });
        const sql = "INSERT INTO usage (sender_id, day, recipients) VALUES (?, 'unique', 1)";
        await db.write([{ sql, args: [senderId] }, ...record(answer)]).catch(() => {
          throw new AppError("conflict", "There is one already.", { code: "duplicate" });
        });
        return answer;
      },
    }),
    projectRoute({
      ...base,
      path: "/v1/refused",
      operationId: "refused",
      handle() {
        if (++ran.refused === 1) throw new AppError("conflict", "Not yet.");
        return created({ run: ran.refused });
      },
    }),
    projectRoute({
      ...base,
      path: "/v1/waiting",
      operationId: "waiting",
      async handle() {
        await new Promise<void>((resolve) => {
          release = resolve;
          begun();
        });
        return created({ waited: true });
      },
    }),
    projectRoute({
      ...base,
      path: "/v1/large",
      operationId: "large",
      body: Type.Object({ chars: Type.Integer() }),
      handle: ({ body }) => created({ run: ++ran.plain, text: "x".repeat(body.chars) }),
    }),
    accountRoute({
      ...base,
      scope: "senders:write",
      path: "/v1/account-wide",
      operationId: "accountWide",
      handle: () => created({ run: ++ran.plain }),
    }),
  ];
}

let api: TestApi;
beforeAll(async () => {
  api = await testApi({ routes: probes });
});
afterAll(() => api.close());

let keys = 0;
const newKey = () => `key-${++keys}`;
const post = (path: string, idempotencyKey: string, how: CallOptions = {}): Promise<Called> =>
  api.call("POST", path, {
    body: {},
    ...how,
    headers: { "idempotency-key": idempotencyKey, ...how.headers },
  });
const replayed = (called: Called) => called.headers.get("idempotent-replayed");

describe("a POST with an Idempotency-Key", () => {
  test.each(["/v1/plain", "/v1/recorded"])(
    "%s runs once and is answered the same afterwards",
    async (path) => {
      const key = newKey();
      const first = await post(path, key);
      const second = await post(path, key);
      expect(replayed(first)).toBeNull();
      expect(replayed(second)).toBe("true");
      expect([second.status, second.text]).toEqual([first.status, first.text]);
    },
  );

  test("a POST with an Idempotency-Key is not stored if a request without effect has a large answer", async () => {
    const around = '{"run":000,"text":""}'.length;
    ran.plain = 100;
    for (const [chars, again] of [
      [256 * 1024 - around, "true"],
      [256 * 1024 - around + 1, null],
    ] as const) {
      const key = newKey();
      expect((await post("/v1/large", key, { body: { chars } })).status).toBe(201);
      expect(replayed(await post("/v1/large", key, { body: { chars } }))).toBe(again);
    }
  });

  test("a POST with an Idempotency-Key runs again under another key, and without one", async () => {
    const before = ran.plain;
    await post("/v1/plain", newKey());
    await post("/v1/plain", newKey());
    await api.call("POST", "/v1/plain", { body: {} });
    expect(ran.plain).toBe(before + 3);
  });

  test("a POST that reuses an Idempotency-Key for another body is 409", async () => {
    const key = newKey();
    await post("/v1/plain", key, { body: { a: 1 } });
    const called = await post("/v1/plain", key, { body: { a: 2 } });
    expect([called.status, called.json.error.code]).toEqual([409, "idempotency_mismatch"]);
  });

  test.each([
    ["in other spacing", '{"a":1,"b":{"c":[1,"é"]}}', '{ "a": 1,\n"b": {"c":[1, "é"]} }'],
    ["with its keys in another order", '{"a":1,"b":{"c":1,"d":2}}', '{"b":{"d":2,"c":1},"a":1}'],
    ["with its values spelled otherwise", '{"a":"é/","b":1}', '{"a":"\\u00e9\\/","b":1.0}'],
  ])(
    "a POST that reuses an Idempotency-Key with the same JSON %s is replayed",
    async (_name, body, again) => {
      const key = newKey();
      await post("/v1/recorded", key, { body });
      expect(replayed(await post("/v1/recorded", key, { body: again }))).toBe("true");
    },
  );

  test("a POST with an Idempotency-Key is separate in another project, another path and another account", async () => {
    const key = newKey();
    await post("/v1/plain", key);
    expect(replayed(await post("/v1/plain", key, { key: api.acme.b.key }))).toBeNull();
    expect(replayed(await post("/v1/plain", key, { key: api.other.a.key }))).toBeNull();
    expect(replayed(await post("/v1/recorded", key))).toBeNull();
  });

  test("belongs to the project, whichever key sends it", async () => {
    const key = newKey();
    await post("/v1/plain", key);
    const wide = await post("/v1/plain", key, {
      key: api.acme.wide,
      headers: { "x-service-product": "acme-a" },
    });
    expect(replayed(wide)).toBe("true");
  });

  test("belongs to the account on a route of the account", async () => {
    const key = newKey();
    await post("/v1/account-wide", key, { key: api.acme.wide });
    expect(replayed(await post("/v1/account-wide", key, { key: api.acme.wide }))).toBe("true");
    expect(replayed(await post("/v1/account-wide", key, { key: api.other.wide }))).toBeNull();
  });

  test("a refused POST may be sent again under its Idempotency-Key", async () => {
    const key = newKey();
    expect((await post("/v1/refused", key)).status).toBe(409);
    const second = await post("/v1/refused", key, { body: { corrected: true } });
    expect([second.status, replayed(second)]).toEqual([201, null]);
  });

  test("an Idempotency-Key whose request is still running is 409 with Retry-After, and replays once that is done", async () => {
    const key = newKey();
    const started = new Promise<void>((resolve) => {
      begun = resolve;
    });
    const first = post("/v1/waiting", key);
    await started;
    const second = await post("/v1/waiting", key);
    expect([second.status, second.json.error.code]).toEqual([409, "idempotency_in_flight"]);
    expect(second.headers.get("retry-after")).toBe("1");
    release();
    expect((await first).status).toBe(201);
    expect(replayed(await post("/v1/waiting", key))).toBe("true");
  });

  test("a running request with an Idempotency-Key does not block other keys, routes or projects", async () => {
    const key = newKey();
    const releases: (() => void)[] = [];
    const begin = async (idempotencyKey: string, how: CallOptions = {}) => {
      const started = new Promise<void>((resolve) => {
        begun = resolve;
      });
      const called = post("/v1/waiting", idempotencyKey, how);
      await Promise.race([started, called]);
      releases.push(release);
      return { called };
    };
    const running = [
      await begin(key),
      await begin(newKey()),
      await begin(key, { key: api.acme.wide, headers: { "x-service-product": "acme-b" } }),
    ];
    const elsewhere = await post("/v1/plain", key);
    for (const each of releases) each();
    const ended = await Promise.all(running.map(({ called }) => called));
    expect([...ended, elsewhere].map(({ status }) => status)).toEqual([201, 201, 201, 201]);
  });

  test.each([
    ["empty", ""],
    ["of 257 characters", "k".repeat(257)],
  ])("an Idempotency-Key that is %s is 400", async (_name, key) => {
    const called = await post("/v1/plain", key);
    expect([called.status, called.json.error.param]).toEqual([400, "Idempotency-Key"]);
  });

  test("a POST with an Idempotency-Key is remembered for 24 hours and not a moment longer", async () => {
    const key = newKey();
    await post("/v1/recorded", key);
    api.clock.advance(IDEMPOTENCY_WINDOW_MS - 1);
    expect(replayed(await post("/v1/recorded", key))).toBe("true");
    api.clock.advance(1);
    expect(replayed(await post("/v1/recorded", key))).toBeNull();
    expect(replayed(await post("/v1/recorded", key))).toBe("true");
  });

  describe("that reaches two processes at once", () => {
    /** Sends the request to both. Returns the answers and the number of rows made. */
    async function toBoth(path: string) {
      const { db, clock } = api;
      const inSecond = createHttp({
        db,
        clock,
        config: { host: "127.0.0.1", port: 0, maxBodyBytes: 1000, httpProxies: [], publicUrl: "" },
        boxKey: BOX_KEY,
        cursorKey: BOX_KEY,
        sessionKey: BOX_KEY,
        limiter: null,
        keyLimiter: null,
        checks: [],
        docs: null,
        ui: null,
        onAnswer: null,
        quotas: loadConfig({}).quotas,
        rightOfWay: new RightOfWay(clock),
        space: ALWAYS_ROOM,
        routes: probes(api),
      });
      const count = async () => (await db.first<{ n: number }>("SELECT COUNT(*) AS n FROM usage"))?.n ?? 0;
      const before = await count();
      const headers = {
        authorization: `Bearer ${api.acme.a.key}`,
        "content-type": "application/json",
        "idempotency-key": newKey(),
      };
      const request = () => new Request(`http://localhost${path}`, { method: "POST", body: "{}", headers });
      const answers = await Promise.all([api.http.fetch(request()), inSecond.fetch(request())]);
      const texts = await Promise.all(answers.map((answer) => answer.text()));
      return { answers, texts, made: (await count()) - before };
    }

    test.each([
      ["and ends in the record of the key", "/v1/recorded"],
      ["and is refused first because of a row that the other one has made", "/v1/unique"],
    ])("is done by one, and both answer the same: %s", async (_name, path) => {
      const { promise: bothHere, resolve } = Promise.withResolvers<void>();
      let here = 0;
      meet = () => {
        if (++here === 2) resolve();
        return bothHere;
      };
      const { answers, texts, made } = await toBoth(path);
      expect(answers.map(({ status }) => status)).toEqual([202, 202]);
      expect(texts[0]).toBe(texts[1] ?? "");
      const again = answers.filter(({ headers }) => headers.get("idempotent-replayed") === "true");
      expect(again).toHaveLength(1);
      expect(made).toBe(1);
    });
  });
});

describe("an answer that holds a secret", () => {
  const body = { name: "made once" };

  test("an answer that holds a secret is stored sealed, and replayed to the key that sent the request", async () => {
    const key = newKey();
    const first = await post("/v1/api-keys", key, { key: api.acme.wide, body });
    const row = await api.db.first<{ body: string }>("SELECT body FROM idempotency WHERE key = ?", [key]);
    expect(row?.body).not.toContain(first.json.secret.slice(12));
    expect(row?.body).not.toContain("made once");
    const second = await post("/v1/api-keys", key, { key: api.acme.wide, body });
    expect(second.text).toBe(first.text);
  });

  test("an answer that holds a secret is not given to another key of the account", async () => {
    const key = newKey();
    await post("/v1/api-keys", key, { key: api.acme.wide, body });
    const weaker = await api.key({ scopes: ["api_keys:write"] });
    const called = await post("/v1/api-keys", key, { key: weaker, body });
    expect([called.status, called.json.error.code]).toEqual([409, "idempotency_mismatch"]);
    expect(called.text).not.toContain("pr_");
  });

  test("distinguishes a request of another key from one with another body", async () => {
    const key = newKey();
    const webhook = { url: "https://hooks.example/in", eventTypes: ["*"] };
    const header = { "x-service-product": api.acme.a.id };
    const made = await post("/v1/webhooks", key, { key: api.acme.a.key, body: webhook });
    expect(made.status).toBe(201);
    const asked = async (caller: string, body: unknown) => {
      const headers = caller === api.acme.wide ? header : {};
      const { status, json } = await post("/v1/webhooks", key, { key: caller, body, headers });
      return [status, json.error?.message ?? json.id];
    };
    const other = { ...webhook, url: "https://hooks.example/out" };
    const used = "This Idempotency-Key was used";
    expect(await asked(api.acme.wide, webhook)).toEqual([
      409,
      expect.stringContaining(`${used} by another API key`),
    ]);
    expect(await asked(api.acme.wide, other)).toEqual([409, `${used} with another body.`]);
    expect(await asked(api.acme.a.key, other)).toEqual([409, `${used} with another body.`]);
    expect(await asked(api.acme.a.key, webhook)).toEqual([201, made.json.id]);
  });
});

test("old answers are deleted and young ones kept, a bounded number at a time", async () => {
  api.clock.advance(2 * IDEMPOTENCY_WINDOW_MS);
  const key = newKey();
  await post("/v1/plain", key);
  const now = api.clock.now();
  expect(await deleteOldAnswers(api.db, now, 1)).toBe(1);
  while ((await deleteOldAnswers(api.db, now, 100)) > 0);
  const left = await api.db.all<{ key: string }>("SELECT key FROM idempotency");
  expect(left.map((row) => row.key)).toEqual([key]);
});
