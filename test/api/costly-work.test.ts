import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { COSTLY_WORK, type CostlyWork } from "../../src/core/concurrency/costly-work.ts";
import { rightsOf } from "../../src/http/resend/form/translate.ts";
import { openRateLimiter } from "../../src/queue/rate-limiter.ts";
import { allRoutes } from "../support/all-routes.ts";
import { type TestApi, TEST_KEY, testApi } from "../support/api.ts";

let api: TestApi;
beforeEach(async () => {
  api = await testApi();
});
afterEach(() => api.close());

/** Holds every key that is made until it is released. */
function heldKeys(of: TestApi) {
  const waiting: (() => void)[] = [];
  let most = 0;
  let now = 0;
  of.domains.generateDkimKey = async () => {
    most = Math.max(most, ++now);
    await new Promise<void>((resolve) => waiting.push(resolve));
    now--;
    return TEST_KEY;
  };
  return {
    most: () => most,
    async release() {
      while (waiting.length === 0) await new Promise((resolve) => setImmediate(resolve));
      waiting.shift()?.();
    },
  };
}

const create = (name: string, key: string) =>
  api.call("POST", "/v1/domains", { key, body: { domain: `${name}.example.com` } });

describe("a project that adds domains in a loop", () => {
  test("a project that adds domains in a loop makes one key at a time, and another project's turn is next", async () => {
    const keys = heldKeys(api);
    const done: string[] = [];
    const looped = Array.from({ length: 5 }, (_, at) =>
      create(`d${at}`, api.acme.a.key).then(() => done.push("loop")),
    );
    const other = create("other", api.other.a.key).then(({ status }) => done.push(String(status)));
    // When later requests are answered, these wait for their turn.
    for (let reads = 0; reads < 5; reads++) await api.call("GET", "/v1/domains", { key: api.other.a.key });
    for (let released = 0; released < 6; released++) await keys.release();
    await Promise.all([...looped, other]);
    expect([keys.most(), done.indexOf("201") <= 2]).toEqual([1, true]);
  });

  test("a project that adds domains in a loop is refused with 429 once half of the places that wait are its own, and others are not", async () => {
    const keys = heldKeys(api);
    const { maxWaiting } = COSTLY_WORK.keys;
    const mine = Array.from({ length: 1 + maxWaiting / 2 + 1 }, (_, at) => create(`d${at}`, api.acme.a.key));
    const first = await Promise.race(mine);
    expect(first).toMatchObject({ status: 429, json: { error: { type: "rate_limited" } } });
    expect(Number(first.headers.get("retry-after"))).toBeGreaterThan(0);
    const other = create("other", api.other.a.key);
    for (let released = 0; released < mine.length; released++) await keys.release();
    expect((await other).status).toBe(201);
    const statuses = (await Promise.all(mine)).map(({ status }) => status);
    expect(statuses.filter((status) => status === 429)).toHaveLength(1);
  });

  test("a project that adds domains in a loop may make as many keys in an hour as the setting says, rotations among them", async () => {
    await api.close();
    const limits = { plans: {}, defaultPlan: "free", dkimKeysPerHour: 2 } as const;
    let at = 0;
    const deps = { clock: { elapsed: () => at } } as unknown as Parameters<typeof openRateLimiter>[0];
    const { takeKey } = openRateLimiter(deps, { redisUrl: null }, limits as never);
    api = await testApi({ http: { keyLimiter: takeKey } });
    const { json } = await create("one", api.acme.a.key);
    expect((await api.call("POST", `/v1/domains/${json.id}/rotate-dkim`)).status).toBe(200);
    const refused = await create("two", api.acme.a.key);
    expect([refused.status, refused.json.error.message]).toEqual([
      429,
      expect.stringContaining("2 DKIM keys an hour"),
    ]);
    expect(Number(refused.headers.get("retry-after"))).toBe(1800);
    expect((await create("theirs", api.other.a.key)).status).toBe(201);
    at += 1_800_000;
    expect((await create("two", api.acme.a.key)).status).toBe(201);
  });
});

describe("costly work", () => {
  const COSTLY: Readonly<Record<CostlyWork, string[]>> = {
    keys: ["createDomain", "rotateDomainDkim"],
    lookups: ["checkBroadcastLinks", "getPolicyAdvice", "updateDomain", "verifyDomain"],
    content: [
      "checkBroadcast",
      "checkEmail",
      "countSegment",
      "exportAddress",
      "forwardEmail",
      "previewEmail",
      "previewTemplate",
      "renderTemplate",
      "sendBroadcast",
      "simulateInbound",
      "testBroadcast",
    ],
    uploads: ["importContacts", "importSuppressions"],
  };

  test("costly work is limited in each route that does it, also in Resend's dialect", async () => {
    const routes = await allRoutes();
    const operations = new Map(routes.map((route) => [route.operationId, route]));
    for (const [work, ids] of Object.entries(COSTLY)) {
      const limited = routes.filter(({ costly }) => costly === work).map(({ operationId }) => operationId);
      expect([work, [...new Set(limited)].sort()]).toEqual([work, ids]);
      for (const id of ids) expect(rightsOf(operations, id)).toMatchObject({ costly: work });
    }
  });

  test("costly work is limited even on a route that changes nothing", async () => {
    const free = (await allRoutes()).filter(
      ({ method, readsOnly, costly }) => method !== "GET" && readsOnly === true && costly === undefined,
    );
    expect(free.map(({ operationId }) => operationId)).toEqual([]);
  });
});
