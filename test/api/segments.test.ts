import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { loadConfig } from "../../src/config.ts";
import {
  type Condition,
  MAX_CONDITIONS,
  MAX_DEPTH,
  MAX_SEGMENTS,
  readFilter,
} from "../../src/core/audience/filter.ts";
import { DAY_MS } from "../../src/core/time/units.ts";
import { createDownloads } from "../../src/http/pipeline/download.ts";
import { contactPropertyRoutes } from "../../src/http/routes/audience/properties.ts";
import { segmentRoutes } from "../../src/http/routes/audience/segments.ts";
import { topicRoutes } from "../../src/http/routes/audience/topics.ts";
import { contactBatchRoute } from "../../src/http/routes/contact-batch.ts";
import { contactRoutes } from "../../src/http/routes/contacts.ts";
import { log } from "../../src/log.ts";
import { openMemoryQueue } from "../../src/queue/memory.ts";
import { lookUpQuery, NUMBERS_STEP, numbersQuery } from "../../src/store/audience/condition-numbers.ts";
import { passingContacts, spreadSteps } from "../../src/store/audience/filter-sets.ts";
import { contactPasses } from "../../src/store/audience/filter-sql.ts";
import { MIGRATIONS } from "../../src/store/engine/migrations.ts";
import { noteEngagement } from "../../src/store/audience/engagement-times.ts";
import { asksToJoin, type TestApi, testApi } from "../support/api.ts";

setDefaultTimeout(60_000);

let api: TestApi;
let news: string;
let offers: string;

const PEOPLE = [
  { email: "ana@example.com", properties: { plan: "pro", seats: 5, vip: true, since: "2024-05-01" } },
  { email: "Ben@Example.com", properties: { plan: "free", seats: 1, vip: false } },
  { email: "cy@other.example", properties: { plan: "100%_off", seats: -2.5 } },
  { email: "di@other.example", properties: {}, subscribed: false },
];

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
      ...contactPropertyRoutes({ db }),
      ...topicRoutes({ db }),
      ...segmentRoutes({ db }),
    ],
  });
  for (const [name, type] of [
    ["plan", "string"],
    ["seats", "number"],
    ["vip", "boolean"],
    ["since", "date"],
    ["constructor", "string"],
  ])
    await post("/v1/contact-properties", { name, type });
  news = (await post("/v1/topics", { name: "News" })).json.id;
  offers = (await post("/v1/topics", { name: "Offers", defaultSubscribed: false })).json.id;
  for (const person of PEOPLE) {
    const topics = person.email.startsWith("ana") ? { [news]: "unsubscribed", [offers]: "subscribed" } : {};
    await post("/v1/contacts", { ...person, topics });
    api.clock.advance(DAY_MS);
  }
  const now = api.clock.now();
  const engaged = (what: "sent" | "opened" | "clicked", key: string, at: number) =>
    noteEngagement(what, api.acme.a.id, key, at);
  await api.db.write([
    engaged("sent", "ana@example.com", now - 1),
    engaged("sent", "ben@example.com", now),
    engaged("opened", "ana@example.com", now),
    engaged("clicked", "ben@example.com", now - 4 * DAY_MS),
    engaged("clicked", "stranger@example.com", now),
  ]);
});
afterAll(() => api.close());

const post = (path: string, body: unknown, key?: string) =>
  api.call("POST", path, key === undefined ? { body } : { body, key });
const names = (contacts: { email: string }[]) =>
  contacts.map(({ email }) => email.split("@")[0]?.toLowerCase());

/** Returns who passes a filter by each of the ways to ask. */
async function who(filter: object): Promise<(string | undefined)[]> {
  const counted = await post("/v1/segments/count", { filter });
  expect(counted.status, JSON.stringify(counted.json)).toBe(200);
  const listed = await api.call("GET", `/v1/contacts?filter=${encodeURIComponent(JSON.stringify(filter))}`);
  const found = names(listed.json.data);
  expect(counted.json.count).toBe(found.length);
  expect(names(counted.json.sample)).toEqual(found);
  return found.sort();
}

const leaf = (property: string, op: string, value?: unknown) =>
  value === undefined ? { property, op } : { property, op, value };
const field = (name: string, op: string, value: unknown) => ({ field: name, op, value });

describe("a filter finds", () => {
  const pro = leaf("plan", "eq", "pro");
  const free = leaf("plan", "eq", "free");
  const rows: [string, () => object, string[]][] = [
    ["a string", () => pro, ["ana"]],
    ["a string in its case alone", () => leaf("plan", "eq", "Pro"), []],
    ["another string, or none", () => leaf("plan", "ne", "pro"), ["ben", "cy", "di"]],
    ["a part of a string in any case", () => leaf("plan", "contains", "RE"), ["ben"]],
    ["the beginning", () => leaf("plan", "startsWith", "pr"), ["ana"]],
    ["the end", () => leaf("plan", "endsWith", "e"), ["ben"]],
    ["a percent sign as itself", () => leaf("plan", "contains", "%_"), ["cy"]],
    ["a text that looks like SQL", () => leaf("plan", "eq", "' OR 1=1 --"), []],
    ["a number", () => leaf("seats", "eq", -2.5), ["cy"]],
    ["larger numbers", () => leaf("seats", "gt", 1), ["ana"]],
    ["numbers from one on", () => leaf("seats", "gte", 1), ["ana", "ben"]],
    ["smaller numbers, not a missing one", () => leaf("seats", "lt", 5), ["ben", "cy"]],
    ["true", () => leaf("vip", "eq", true), ["ana"]],
    ["false, not a missing one", () => leaf("vip", "eq", false), ["ben"]],
    ["a date", () => leaf("since", "eq", "2024-05-01"), ["ana"]],
    ["a date before a time in another zone", () => leaf("since", "lt", "2024-05-01T03:00:00+02:00"), ["ana"]],
    ["no date after", () => leaf("since", "gt", "2024-05-01"), []],
    ["dates older than some days", () => leaf("since", "olderThanDays", 30), ["ana"]],
    ["a value that is there", () => leaf("seats", "set"), ["ana", "ben", "cy"]],
    ["a value that is missing", () => leaf("seats", "unset"), ["di"]],
    ["a property with the name of a method", () => leaf("constructor", "unset"), ["ana", "ben", "cy", "di"]],
    ["an address in any case", () => field("email", "eq", "BEN@example.com"), ["ben"]],
    ["a domain", () => field("email", "endsWith", "@Other.example"), ["cy", "di"]],
    ["the subscribed", () => field("subscribed", "eq", true), ["ana", "ben", "cy"]],
    ["contacts of the last days", () => field("createdAt", "withinDays", 2.5), ["cy", "di"]],
    ["contacts from before", () => field("createdAt", "olderThanDays", 2.5), ["ana", "ben"]],
    ["contacts that got a message", () => field("lastSentAt", "withinDays", 1), ["ana", "ben"]],
    ["contacts that got none", () => ({ field: "lastSentAt", op: "unset" }), ["cy", "di"]],
    ["who has opened one", () => ({ field: "lastOpenedAt", op: "set" }), ["ana"]],
    ["who has not clicked for some days", () => field("lastClickedAt", "olderThanDays", 3), ["ben"]],
    ["nobody before a day", () => field("createdAt", "lt", "2025-01-01"), []],
    ["who gets a topic", () => ({ topic: news, op: "eq", value: "subscribed" }), ["ben", "cy"]],
    ["who does not get it", () => ({ topic: news, op: "ne", value: "subscribed" }), ["ana", "di"]],
    ["who has chosen a topic", () => ({ topic: offers, op: "eq", value: "subscribed" }), ["ana"]],
    ["all", () => ({ all: [leaf("seats", "gt", 0), leaf("plan", "ne", "free")] }), ["ana"]],
    ["any", () => ({ any: [pro, free] }), ["ana", "ben"]],
    ["none of several", () => ({ not: [pro, free] }), ["cy", "di"]],
    ["not of a missing value", () => ({ not: [leaf("seats", "gt", 1)] }), ["ben", "cy", "di"]],
    [
      "nested filters",
      () => ({ all: [{ not: [pro] }, { any: [free, leaf("seats", "unset")] }] }),
      ["ben", "di"],
    ],
  ];
  test.each(rows)("%s", async (_name, filter, expected) => {
    expect(await who(filter())).toEqual(expected);
  });
});

describe("a filter is refused", () => {
  const eq = leaf("plan", "eq", "x");
  const nested = (depth: number): object => (depth === 0 ? eq : { all: [nested(depth - 1)] });
  const rows: [string, object, string][] = [
    ["without a subject", { op: "eq", value: 1 }, "filter"],
    ["with two subjects", { property: "plan", field: "email", op: "eq", value: "x" }, "filter"],
    ["for an unknown property", leaf("colour", "eq", "x"), "filter.property"],
    ["for an unknown topic", { topic: "top_none", op: "eq", value: "subscribed" }, "filter.topic"],
    ["for an unknown field", field("phone", "eq", "x"), "filter.field"],
    ["for an operator of another type", leaf("plan", "gt", "x"), "filter.op"],
    ["without an operator", { property: "plan", value: "x" }, "filter.op"],
    ["for a value of another type", leaf("seats", "eq", "5"), "filter.value"],
    ["for a value where none belongs", leaf("plan", "set", "x"), "filter.value"],
    ["for days that are no number", leaf("since", "withinDays", "7"), "filter.value"],
    ["for words as date", field("createdAt", "gt", "today"), "filter.value"],
    ["for an unknown part", { ...eq, case: "any" }, "filter.case"],
    ["for all and any together", { all: [eq], any: [eq] }, "filter"],
    ["for an empty list", { any: [] }, "filter.any"],
    ["for a list of strings", { any: ["x"] }, "filter.any[0]"],
    ["6 levels deep", nested(MAX_DEPTH + 1), "filter.all[0].all[0].all[0].all[0].all[0]"],
    [
      "with 51 conditions",
      { all: [{ any: Array(26).fill(eq) }, { any: Array(25).fill(eq) }] },
      "filter.all[1].any[24]",
    ],
  ];
  test.each(rows)("%s", async (_name, filter, param) => {
    for (const [path, body] of [
      ["/v1/segments", { name: "S", filter }],
      ["/v1/segments/count", { filter }],
    ] as const) {
      const { status, json } = await post(path, body);
      expect([status, json.error.param]).toEqual([422, param]);
    }
    const listed = await api.call("GET", `/v1/contacts?filter=${encodeURIComponent(JSON.stringify(filter))}`);
    expect([listed.status, listed.json.error.param]).toEqual([422, param]);
  });

  test("a filter of 5 levels and of 50 conditions is taken", async () => {
    expect(await who(nested(MAX_DEPTH))).toEqual([]);
    expect(await who({ not: Array(MAX_CONDITIONS).fill(eq) })).toHaveLength(PEOPLE.length);
  });

  test("a filter that is no JSON is refused", async () => {
    for (const text of ["{", "[]", "null"])
      expect(
        (await api.call("GET", `/v1/contacts?filter=${encodeURIComponent(text)}`)).json.error.param,
      ).toBe("filter");
  });
});

describe("/v1/segments", () => {
  test("a segment is created, changed, listed, read and deleted, and its contacts follow their values", async () => {
    const filter = leaf("plan", "eq", "gold");
    const { status, json } = await post("/v1/segments", { name: "Gold", filter });
    expect([status, json]).toEqual([
      201,
      {
        id: expect.stringMatching(/^seg_/),
        name: "Gold",
        filter,
        createdAt: json.createdAt,
        updatedAt: json.createdAt,
      },
    ]);
    const path = `/v1/segments/${json.id}`;
    const members = async () => names((await api.call("GET", `${path}/contacts`)).json.data);
    expect(await members()).toEqual([]);
    const { json: eve } = await post("/v1/contacts", {
      email: "eve@example.com",
      properties: { plan: "gold" },
    });
    expect(await members()).toEqual(["eve"]);
    const searched = await api.call("GET", `/v1/contacts?segmentId=${json.id}&q=eve`);
    expect(names(searched.json.data)).toEqual(["eve"]);
    expect((await api.call("GET", "/v1/contacts?segmentId=seg_x")).status).toBe(404);
    const both = `/v1/contacts?segmentId=${json.id}&filter=%7B%7D`;
    expect((await api.call("GET", both)).json.error.param).toBe("segmentId");
    await api.call("PATCH", `/v1/contacts/${eve.id}`, { body: { properties: { plan: null } } });
    expect(await members()).toEqual([]);
    const changes = { filter: field("email", "startsWith", "eve") };
    expect((await api.call("PATCH", path, { body: changes })).json).toMatchObject({
      name: "Gold",
      ...changes,
    });
    expect(await members()).toEqual(["eve"]);
    await api.call("DELETE", `/v1/contacts/${eve.id}`);
    expect(await members()).toEqual([]);
    expect((await api.call("GET", path)).json).toMatchObject(changes);
    expect((await api.call("GET", "/v1/segments")).json.data[0].id).toBe(json.id);
    expect((await api.call("DELETE", path)).status).toBe(204);
    expect((await api.call("GET", `${path}/contacts`)).status).toBe(404);
  });

  test("a segment whose property was deleted says so, and can be changed", async () => {
    const { json: property } = await post("/v1/contact-properties", { name: "gone", type: "string" });
    const { json } = await post("/v1/segments", { name: "Old", filter: leaf("gone", "set") });
    await api.call("DELETE", `/v1/contact-properties/${property.id}`);
    const asked = await api.call("GET", `/v1/segments/${json.id}/contacts`);
    expect([asked.status, asked.json.error.code]).toEqual([409, "invalid_state"]);
    expect(asked.json.error.message).toContain("filter.property");
    const body = { filter: leaf("plan", "set") };
    expect((await api.call("PATCH", `/v1/segments/${json.id}`, { body })).status).toBe(200);
  });

  test("a project has at most 200 segments", async () => {
    const { key } = api.acme.b;
    const body = { name: "S", filter: field("subscribed", "eq", true) };
    for (let at = 0; at < MAX_SEGMENTS; at++)
      expect((await post("/v1/segments", body, key)).status).toBe(201);
    expect((await post("/v1/segments", body, key)).json.error.code).toBe("quota_exceeded");
  });
});

describe("counting", () => {
  const MANY = 2 * NUMBERS_STEP + 2;
  /** Adds contacts of a project in one statement. */
  const fillProject = (senderId: string, count: number) => ({
    sql: `INSERT INTO contacts (id, sender_id, email, email_key, properties, created_at, updated_at)
      WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < ?1)
      SELECT printf('con_many%08d', n), ?2, 'p' || n || '@many.example', 'p' || n || '@many.example',
        json_object('plan', iif(n % 5 = 0, 'pro', 'free'), 'seats', n), 0, 0 FROM numbers`,
    args: [count, senderId],
  });

  test("contacts of more than one step are counted once each", async () => {
    const { id, key } = api.other.a;
    for (const [name, type] of [
      ["plan", "string"],
      ["seats", "number"],
    ])
      await post("/v1/contact-properties", { name, type }, key);
    await api.db.write([fillProject(id, MANY)]);
    const pro = leaf("plan", "eq", "pro");
    const some = leaf("seats", "lt", 5000);
    const many = leaf("seats", "gt", 50);
    const rare = leaf("seats", "eq", 4000);
    const filters = [
      pro,
      many,
      leaf("plan", "ne", "pro"),
      leaf("seats", "unset"),
      leaf("seats", "gte", MANY),
      { all: [many, some, pro] },
      { all: [many, rare] },
      { all: [rare, { any: [pro, { not: [many] }] }] },
      { all: [leaf("seats", "gt", MANY), many] },
      { any: [rare, { all: [pro, some] }] },
      { not: [pro, rare, some] },
      { all: [many, leaf("plan", "ne", "pro"), field("subscribed", "ne", false), { not: [rare] }] },
    ];
    const shapes = [
      { name: "plan", type: "string" },
      { name: "seats", type: "number" },
    ] as const;
    for (const filter of filters) {
      const { sql, args } = contactPasses(readFilter(filter, { shapes, topics: [], now: 0 }));
      const passing = await api.db.all<{ id: string; email: string }>(
        `SELECT id, email FROM contacts WHERE sender_id = ? AND ${sql} ORDER BY id DESC`,
        [id, ...args],
      );
      const { json } = await post("/v1/segments/count", { filter }, key);
      const expected = { count: passing.length, estimated: false, sample: passing.slice(0, 10) };
      expect(json, JSON.stringify(filter)).toEqual(expected);
    }
    await post("/v1/contacts", { email: "last@many.example", properties: { plan: "pro" } }, key);
    expect((await post("/v1/segments/count", { filter: pro }, key)).json.count).toBe(
      Math.floor(MANY / 5) + 1,
    );
  });

  test("a count that would read too many values is an estimate from contacts of all times", async () => {
    const { id } = api.other.a;
    const filter = { subject: { kind: "property", name: "plan", type: "string" }, op: "eq", value: "pro" };
    const passing = await passingContacts(api.db, id, filter as Condition, { most: 1, sample: 1 });
    // The last step is read alone. Of its three contacts two pass.
    expect(passing).toMatchObject({ estimated: true, count: Math.round(((MANY + 1) * 2) / 3) });
    expect(passing.last).toMatchObject([{ email: "last@many.example" }]);
    expect(spreadSteps(10 * NUMBERS_STEP).map((from) => from / NUMBERS_STEP)).toEqual([
      9, 4, 7, 2, 5, 0, 8, 3, 6, 1,
    ]);
  });

  test("a condition reads the numbers of one step from its column alone", async () => {
    const rows = await api.db.all<{ detail: string }>(
      `EXPLAIN QUERY PLAN ${numbersQuery("value IS 'pro'")}`,
      [api.acme.a.id, "p:plan", 0],
    );
    expect(rows.map(({ detail }) => detail)).toEqual([
      "SEARCH audience_values USING PRIMARY KEY (column_id=? AND no>? AND no<?)",
      "SCALAR SUBQUERY 1",
      "SEARCH audience_columns USING COVERING INDEX audience_columns_by_name (sender_id=? AND name=?)",
    ]);
    const asked = await api.db.all<{ detail: string }>(
      `EXPLAIN QUERY PLAN ${lookUpQuery("value IS 'pro'")}`,
      [api.acme.a.id, "p:plan", "[1]"],
    );
    expect(asked.map(({ detail }) => detail).slice(0, 2)).toEqual([
      "SCAN json_each VIRTUAL TABLE INDEX 1:",
      "SEARCH v USING PRIMARY KEY (column_id=? AND no=?)",
    ]);
  });

  test("of a deleted contact and of a changed one, no old value is left", async () => {
    const { id, key } = api.other.b;
    await post("/v1/contact-properties", { name: "plan", type: "string" }, key);
    const made = [];
    for (const email of ["a@x.example", "b@x.example", "c@x.example"])
      made.push((await post("/v1/contacts", { email, properties: { plan: "pro" } }, key)).json.id);
    await api.call("DELETE", `/v1/contacts/${made[0]}`, { key });
    await api.call("PATCH", `/v1/contacts/${made[1]}`, { key, body: { properties: { plan: null } } });
    const count = async (filter: object) => (await post("/v1/segments/count", { filter }, key)).json.count;
    expect(await count(leaf("plan", "eq", "pro"))).toBe(1);
    expect(await count(leaf("plan", "unset"))).toBe(1);
    const values = await api.db.all<{ name: string }>(
      "SELECT c.name FROM audience_values v JOIN audience_columns c ON c.id = v.column_id WHERE c.sender_id = ?",
      [id],
    );
    expect(values.map(({ name }) => name).sort()).toEqual([
      "createdAt",
      "createdAt",
      "email",
      "email",
      "p:plan",
      "subscribed",
      "subscribed",
    ]);
  });
});

test("contacts from before the step have their values after it, and its walk may run twice", async () => {
  const rows = () =>
    api.db.all(`SELECT n.contact_id, c.name, v.value FROM audience_values v JOIN audience_columns c ON c.id = v.column_id
      JOIN audience_numbers n ON n.sender_id = c.sender_id AND n.no = v.no WHERE n.contact_id < 'con_many' ORDER BY 1, 2`);
  const copied = await rows();
  expect(copied.length).toBeGreaterThan(3 * PEOPLE.length);
  const walk = MIGRATIONS.find(({ name }) => name === "engagement")?.fill?.[0]?.sql ?? "";
  for (const table of ["audience_values", "audience_numbers"])
    await api.db.write([{ sql: `DELETE FROM ${table}`, args: [] }]);
  for (let times = 0; times < 2; times++) await api.db.write([{ sql: walk, args: ["", "con_many"] }]);
  expect(await rows()).toEqual(copied);
});
