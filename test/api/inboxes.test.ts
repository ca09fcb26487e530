import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { countReceived } from "../../src/store/threads/inboxes.ts";
import { type TestApi, testApi } from "../support/api.ts";

let api: TestApi;
let domainId: string;
let siblingDomainId: string;
beforeAll(async () => {
  api = await testApi();
  const { id, records } = (await api.call("POST", "/v1/domains", { body: { domain: "in.example.com" } }))
    .json;
  domainId = id;
  for (const { type, name, value } of records) api.zone.set(`${type} ${name}`, [value]);
  await api.call("POST", `/v1/domains/${id}/verify`);
  await api.call("PATCH", `/v1/domains/${id}/receiving`, { body: { enabled: true } });
  const body = { domain: "b.example.com" };
  siblingDomainId = (await api.call("POST", "/v1/domains", { body, key: api.acme.b.key })).json.id;
});
afterAll(() => api.close());

const create = (body: unknown) => api.call("POST", "/v1/inboxes", { body });

describe("POST /v1/inboxes", () => {
  test("makes an inbox, of type agent unless told otherwise", async () => {
    const { status, json } = await create({ address: "Support@IN.example.com" });
    expect(status).toBe(201);
    expect(json).toEqual({
      id: expect.stringMatching(/^inb_[0-9a-z]{26}$/),
      senderId: api.acme.a.id,
      domainId,
      address: "support@in.example.com",
      displayName: "",
      type: "agent",
      accept: "anyone",
      signature: "",
      createdAt: new Date(api.clock.now()).toISOString(),
    });
    expect((await api.call("GET", `/v1/inboxes/${json.id}`)).json).toEqual(json);
  });

  test("accepts a local part and a domain's id", async () => {
    const { status, json } = await create({
      localPart: "Sales.Team",
      domainId,
      displayName: "Sales",
      type: "sending",
    });
    expect(status).toBe(201);
    expect(json).toMatchObject({
      address: "sales.team@in.example.com",
      displayName: "Sales",
      type: "sending",
    });
  });

  test("shows an unpaired surrogate in its name as it is stored", async () => {
    const { json } = await create({ localPart: "half", domainId, displayName: "a\ud800b" });
    expect(json.displayName).toBe("a\ufffdb");
    expect((await api.call("GET", `/v1/inboxes/${json.id}`)).json).toEqual(json);
  });

  test("a taken address is 409, in any letter case", async () => {
    await create({ localPart: "twice", domainId });
    const called = await create({ address: "TWICE@in.example.com" });
    expect([called.status, called.json.error.code, called.json.error.param]).toEqual([
      409,
      "duplicate",
      "address",
    ]);
  });

  const rows: [string, (ids: { own: string; sibling: string }) => unknown, number, string | undefined][] = [
    ["nothing", () => ({}), 422, "address"],
    ["a local part alone", () => ({ localPart: "x" }), 422, "domainId"],
    ["a domain alone", ({ own }) => ({ domainId: own }), 422, "address"],
    ["no address", () => ({ address: "support" }), 422, "address"],
    ["two at-signs in the local part", ({ own }) => ({ localPart: "a@b", domainId: own }), 422, "localPart"],
    [
      "a local part with which the address has more than 254 octets",
      ({ own }) => ({ localPart: "x".repeat(245), domainId: own }),
      422,
      "localPart",
    ],
    ["a plus, which would never get mail", () => ({ address: "a+b@in.example.com" }), 422, "address"],
    ["a line break", () => ({ address: "a\r\nb@in.example.com" }), 422, "address"],
    [
      "a line break in the name",
      ({ own }) => ({ localPart: "n", domainId: own, displayName: "a\r\nBcc: x" }),
      422,
      "displayName",
    ],
    [
      "a name of 201 characters",
      ({ own }) => ({ localPart: "n", domainId: own, displayName: "x".repeat(201) }),
      422,
      "displayName",
    ],
    ["an unknown type", ({ own }) => ({ localPart: "t", domainId: own, type: "robot" }), 422, "type"],
    ["an unregistered domain", () => ({ address: "a@nobody.example" }), 422, "address"],
    ["another project's domain", () => ({ address: "a@b.example.com" }), 422, "address"],
    [
      "an address at another domain than the one named",
      ({ sibling }) => ({ address: "a@in.example.com", domainId: sibling }),
      422,
      "domainId",
    ],
    ["another project's domain id", ({ sibling }) => ({ localPart: "a", domainId: sibling }), 404, undefined],
    ["a hostile domain id", () => ({ localPart: "a", domainId: "' OR 1=1 --" }), 404, undefined],
  ];
  test.each(rows)("refuses %s", async (_name, body, status, param) => {
    const called = await create(body({ own: domainId, sibling: siblingDomainId }));
    expect([called.status, called.json.error.param]).toEqual([status, param]);
  });
});

describe("GET /v1/inboxes", () => {
  test("lists all of the project's, flat and newest first, or those of one domain", async () => {
    const second = (await api.call("POST", "/v1/domains", { body: { domain: "two.example.com" } })).json.id;
    const ids: string[] = [];
    for (let i = 0; i < 25; i++)
      ids.unshift((await create({ localPart: `i${i}`, domainId: second })).json.id);
    const called = await api.call("GET", `/v1/inboxes?domainId=${second}`);
    expect(Object.keys(called.json)).toEqual(["data"]);
    expect(called.json.data.map(({ id }: { id: string }) => id)).toEqual(ids);
    const all = (await api.call("GET", "/v1/inboxes")).json.data;
    expect(all.length).toBeGreaterThan(25);
    expect(all.slice(0, 25).map(({ id }: { id: string }) => id)).toEqual(ids);
    expect((await api.call("GET", "/v1/inboxes", { key: api.acme.b.key })).json).toEqual({ data: [] });
    expect((await api.call("GET", `/v1/inboxes?domainId=${siblingDomainId}`)).json).toEqual({ data: [] });
  });
});

describe("an inbox", () => {
  test("an inbox changes its name and type, and nothing else", async () => {
    const { json } = await create({ localPart: "change", domainId });
    const path = `/v1/inboxes/${json.id}`;
    const other = (await create({ localPart: "besides", domainId })).json;
    const body = { displayName: "New", address: "other@in.example.com", senderId: api.acme.b.id };
    expect((await api.call("PATCH", path, { body })).json).toEqual({ ...json, displayName: "New" });
    expect((await api.call("PATCH", path, { body: { type: "sending" } })).json.type).toBe("sending");
    expect((await api.call("PATCH", path, { body: { displayName: "" } })).json.displayName).toBe("");
    expect((await api.call("PATCH", path, { body: { type: "x" } })).status).toBe(422);
    expect((await api.call("GET", `/v1/inboxes/${other.id}`)).json).toEqual(other);
  });

  test("an inbox is deleted only if it never received mail", async () => {
    const { json } = await create({ localPart: "gone", domainId });
    const path = `/v1/inboxes/${json.id}`;
    const fresh = (await create({ localPart: "fresh", domainId })).json;
    await api.db.write([countReceived(api.acme.a.id, json.id)]);
    const refused = await api.call("DELETE", path);
    expect([refused.status, refused.json.error.type]).toEqual([409, "conflict"]);
    const called = await api.call("DELETE", `/v1/inboxes/${fresh.id}`);
    expect([called.status, called.text]).toEqual([204, ""]);
    expect((await api.call("GET", `/v1/inboxes/${fresh.id}`)).status).toBe(404);
    expect((await create({ localPart: "fresh", domainId })).status).toBe(201);
  });

  test("an inbox of another project or account is 404", async () => {
    const { json } = await create({ localPart: "mine", domainId });
    const path = `/v1/inboxes/${json.id}`;
    for (const key of [api.acme.b.key, api.other.a.key]) {
      expect((await api.call("GET", path, { key })).status).toBe(404);
      expect((await api.call("PATCH", path, { key, body: { displayName: "x" } })).status).toBe(404);
      expect((await api.call("DELETE", path, { key })).status).toBe(404);
    }
    expect((await api.call("GET", path)).json).toEqual(json);
  });
});
