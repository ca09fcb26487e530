import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { loadConfig } from "../../src/config.ts";
import { MAX_CONSENTS } from "../../src/core/audience/consent.ts";
import { MAX_PROPERTIES } from "../../src/core/audience/properties.ts";
import {
  CONTACTS_PER_WRITE,
  REMOVED_AFTER_MS,
  removePropertyValues,
} from "../../src/flows/audience/properties.ts";
import { createDownloads } from "../../src/http/pipeline/download.ts";
import { contactPropertyRoutes } from "../../src/http/routes/audience/properties.ts";
import { contactBatchRoute } from "../../src/http/routes/contact-batch.ts";
import { contactRoutes } from "../../src/http/routes/contacts.ts";
import { log } from "../../src/log.ts";
import { openMemoryQueue } from "../../src/queue/memory.ts";
import { asksToJoin, type TestApi, testApi } from "../support/api.ts";

let api: TestApi;
let count = 0;
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
    ],
  });
  const all = [
    ["plan", "string"],
    ["seats", "number"],
    ["vip", "boolean"],
    ["since", "date"],
  ];
  for (const [name, type] of all) await define({ name, type });
});
afterAll(() => api.close());
beforeEach(() => count++);

const define = (body: unknown, key?: string) =>
  api.call("POST", "/v1/contact-properties", key === undefined ? { body } : { body, key });
const create = (properties: unknown, more: object = {}) =>
  api.call("POST", "/v1/contacts", { body: { email: `p${count}@example.com`, properties, ...more } });
const batch = async (...contacts: object[]) =>
  (await api.call("POST", "/v1/contacts/batch", { body: { contacts } })).json.data;
const iso = () => new Date(api.clock.now()).toISOString();

describe("properties of contacts", () => {
  test("a contact has values of each type, and a day becomes a time in UTC", async () => {
    const { status, json } = await create({ plan: "pro", seats: 2.5, vip: false, since: "2026-01-31" });
    expect([status, json.properties]).toEqual([
      201,
      { plan: "pro", seats: 2.5, vip: false, since: "2026-01-31T00:00:00.000Z" },
    ]);
    expect((await api.call("GET", `/v1/contacts/${json.id}`)).json).toEqual(json);
  });

  test("a change sets the given values and leaves the others, and null removes one", async () => {
    const { json } = await create({ plan: "pro", seats: 1 });
    const patch = async (properties: unknown) =>
      (await api.call("PATCH", `/v1/contacts/${json.id}`, { body: { properties } })).json.properties;
    expect(await patch({ vip: true })).toEqual({ plan: "pro", seats: 1, vip: true });
    expect(await patch({ plan: null, seats: 7 })).toEqual({ seats: 7, vip: true });
    expect(await patch({})).toEqual({ seats: 7, vip: true });
  });

  test("a batch sets values, says what is unchanged, and refuses a wrong item alone", async () => {
    const email = `p${count}@example.com`;
    expect(
      await batch({ email, properties: { plan: "pro" } }, { email: "b@x.test", properties: { plan: 1 } }),
    ).toEqual([
      expect.objectContaining({ email, result: "created" }),
      { error: expect.objectContaining({ param: "properties.plan", type: "validation_error" }) },
    ]);
    const same = [{ email, properties: { plan: "pro" } }];
    expect(await batch(...same, { email, properties: { plan: null } })).toMatchObject([
      { result: "unchanged" },
      { result: "updated" },
    ]);
    expect((await api.call("GET", `/v1/contacts?q=${email}`)).json.data[0].properties).toEqual({});
  });

  const wrong: [string, unknown, string][] = [
    ["a property that is not defined", { colour: "red" }, "properties.colour"],
    ["the name of a method of objects", { constructor: "red" }, "properties.constructor"],
    ["a number as string", { plan: 1 }, "properties.plan"],
    ["a string of 1001 characters", { plan: "x".repeat(1001) }, "properties.plan"],
    ["NUL in a string", { plan: "a\0" }, "properties.plan"],
    ["a string as number", { seats: "2" }, "properties.seats"],
    ["a whole number beyond 2^53", { seats: 2 ** 53 }, "properties.seats"],
    ["a number as boolean", { vip: 1 }, "properties.vip"],
    ["words as date", { since: "yesterday" }, "properties.since"],
    ["a list as value", { plan: ["pro"] }, "properties.plan"],
    ["a list as properties", [], "properties"],
  ];
  test.each(wrong)("refuses %s", async (_name, properties, param) => {
    const { status, json } = await create(properties);
    expect([status, json.error.param]).toEqual([422, param]);
  });

  test("values together have at most 8 KiB, also if they came one by one", async () => {
    const names = Array.from({ length: 9 }, (_, at) => `long${at}`);
    for (const name of names) await define({ name, type: "string" });
    const values = names.map((name) => [name, "x".repeat(950)]);
    const fits = Object.fromEntries(values.slice(0, 8));
    expect((await create(Object.fromEntries(values))).json.error.param).toBe("properties");
    const { json } = await create(fits);
    const body = { properties: Object.fromEntries(values.slice(8)) };
    const patched = await api.call("PATCH", `/v1/contacts/${json.id}`, { body });
    expect([patched.status, patched.json.error.param]).toEqual([422, "properties"]);
    expect(await batch({ email: json.email, ...body })).toMatchObject([{ error: { param: "properties" } }]);
    expect((await api.call("GET", `/v1/contacts/${json.id}`)).json.properties).toEqual(fits);
  });
});

describe("/v1/contact-properties", () => {
  test("a property is defined, listed, read, and its fallback changed", async () => {
    const { status, json } = await define({ name: "country", type: "string", fallback: "FR" });
    expect([status, json]).toEqual([
      201,
      {
        id: expect.stringMatching(/^prp_/),
        name: "country",
        type: "string",
        fallback: "FR",
        createdAt: iso(),
        updatedAt: iso(),
      },
    ]);
    const path = `/v1/contact-properties/${json.id}`;
    expect((await api.call("GET", path)).json).toEqual(json);
    expect((await api.call("GET", "/v1/contact-properties")).json.data[0]).toEqual(json);
    api.clock.advance(5);
    const changed = { ...json, fallback: null, updatedAt: iso() };
    expect((await api.call("PATCH", path, { body: { fallback: null } })).json).toEqual(changed);
    expect((await api.call("PATCH", path, { body: { fallback: 1 } })).json.error.param).toBe("fallback");
    for (const key of [api.acme.b.key, api.other.a.key])
      for (const method of ["GET", "DELETE"])
        expect((await api.call(method, path, { key })).status).toBe(404);
  });

  const refused: [string, object, number, string][] = [
    ["a name that is taken", { name: "plan", type: "number" }, 409, "name"],
    ["a name of 51 letters", { name: "x".repeat(51), type: "string" }, 422, "name"],
    ["a name with a space", { name: "a b", type: "string" }, 422, "name"],
    ["a name with a quote", { name: 'a"b', type: "string" }, 422, "name"],
    ["an unknown type", { name: "size", type: "integer" }, 422, "type"],
    ["a fallback of another type", { name: "size", type: "number", fallback: "1" }, 422, "fallback"],
  ];
  test.each(refused)("refuses %s", async (_name, body, status, param) => {
    const answer = await define(body);
    expect([answer.status, answer.json.error.param]).toEqual([status, param]);
  });

  test("a project has at most 100 properties", async () => {
    const { key } = api.other.a;
    for (let at = 0; at < MAX_PROPERTIES; at++)
      expect((await define({ name: `n${at}`, type: "string" }, key)).status).toBe(201);
    expect((await define({ name: "more", type: "string" }, key)).json.error.code).toBe("quota_exceeded");
  });

  test("a deleted property takes no values at once, loses those of all contacts in steps, and then frees its name", async () => {
    const { json } = await define({ name: "gone", type: "number" });
    const contacts = Array.from({ length: CONTACTS_PER_WRITE + 1 }, (_, at) => ({
      email: `gone${at}@example.com`,
      properties: { gone: at, plan: "kept" },
    }));
    for (let at = 0; at < contacts.length; at += 100) await batch(...contacts.slice(at, at + 100));
    const left = async () =>
      (
        await api.db.first<{ n: number }>(
          "SELECT count(*) AS n FROM contacts WHERE sender_id = ? AND instr(properties, 'gone')",
          [api.acme.a.id],
        )
      )?.n;
    expect((await api.call("DELETE", `/v1/contact-properties/${json.id}`)).status).toBe(204);
    expect((await create({ gone: 1 })).json.error.param).toBe("properties.gone");
    await removePropertyValues({ db: api.db, clock: api.clock });
    expect(await left()).toBe(contacts.length);
    // A batch drops the value from a contact that it changes meanwhile.
    await batch({ email: "gone0@example.com", firstName: "Ada" });
    expect(await left()).toBe(contacts.length - 1);
    api.clock.advance(REMOVED_AFTER_MS);
    expect((await define({ name: "gone", type: "string" })).status).toBe(409);
    await removePropertyValues({ db: api.db, clock: api.clock });
    expect(await left()).toBe(0);
    const kept = (await api.call("GET", "/v1/contacts?q=gone500@")).json.data[0];
    expect(kept.properties).toEqual({ plan: "kept" });
    expect((await define({ name: "gone", type: "string" })).status).toBe(201);
  });
});

describe("the trail of consent", () => {
  const trailOf = async (id: string) => (await api.call("GET", `/v1/contacts/${id}`)).json.consent;

  test("each change of the subscription is an entry, and a repeated one is none", async () => {
    const { json } = await create({});
    const first = { at: iso(), subscribed: true, how: "api" };
    expect(json.consent).toEqual([first]);
    api.clock.advance(1000);
    const left = { at: iso(), subscribed: false, how: "api" };
    for (let times = 0; times < 2; times++) await api.call("POST", `/v1/contacts/${json.id}/unsubscribe`);
    expect(await trailOf(json.id)).toEqual([first, left]);
    api.clock.advance(1000);
    const back = { at: iso(), subscribed: true, how: "api" };
    for (let times = 0; times < 2; times++)
      await api.call("PATCH", `/v1/contacts/${json.id}`, { body: { subscribed: true, firstName: "Ada" } });
    expect(await trailOf(json.id)).toEqual([first, left, back]);
  });

  test("a client tells when, how and from which address a person has agreed", async () => {
    const consent = { at: "2020-05-01T10:00:00+02:00", how: "sign-up form", ip: "203.0.113.7" };
    const entry = {
      at: "2020-05-01T08:00:00.000Z",
      subscribed: true,
      how: "sign-up form",
      ip: "203.0.113.7",
    };
    const { json } = await create({}, { consent });
    expect(json.consent).toEqual([entry]);
    const again = { subscribed: true, consent: { how: "asked again" } };
    const patched = await api.call("PATCH", `/v1/contacts/${json.id}`, { body: again });
    expect(patched.json.consent).toEqual([entry, { at: iso(), subscribed: true, how: "asked again" }]);
    const item = { email: json.email, subscribed: true, consent };
    expect(await batch(item)).toMatchObject([{ result: "unchanged" }]);
  });

  const refused: [string, object, string][] = [
    ["a time to come", { subscribed: true, consent: { at: "2099-01-01T00:00:00Z" } }, "consent.at"],
    ["words as time", { subscribed: true, consent: { at: "today" } }, "consent.at"],
    ["a name as address", { subscribed: true, consent: { ip: "localhost" } }, "consent.ip"],
    ["101 characters of words", { subscribed: true, consent: { how: "x".repeat(101) } }, "consent.how"],
    ["a proof of nothing", { consent: { how: "form" } }, "consent"],
  ];
  test.each(refused)("refuses %s", async (_name, body, param) => {
    const { json } = await create({});
    const answer = await api.call("PATCH", `/v1/contacts/${json.id}`, { body });
    expect([answer.status, answer.json.error.param]).toEqual([422, param]);
  });

  test("a full trail keeps its first entry and the newest, whichever way they came", async () => {
    const { json } = await create({}, { consent: { how: "first" } });
    const saves = [
      (how: string) =>
        api.call("PATCH", `/v1/contacts/${json.id}`, { body: { subscribed: true, consent: { how } } }),
      (how: string) => batch({ email: json.email, subscribed: true, consent: { how } }),
    ];
    for (let at = 1; at <= MAX_CONSENTS + 1; at++) await saves[at % 2]?.(`step ${at}`);
    const how = (await trailOf(json.id)).map((entry: { how: string }) => entry.how);
    expect(how).toEqual(["first", ...Array.from({ length: MAX_CONSENTS - 1 }, (_, at) => `step ${at + 3}`)]);
  });
});
