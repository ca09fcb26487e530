import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { ENDPOINTS, type Endpoint, type Field, PENDING, RECORDS } from "../support/interface-table.ts";
import { bodyFor, MAKERS, makePath, missingFor, queryFor } from "../support/estate.ts";
import { faultsOf } from "../support/json-schema.ts";
import { fill, type Operation, resolve, type Schema } from "../support/openapi-document.ts";
import { type RawAnswer, startWorld, type World } from "../support/tenants.ts";

const START_MS = 180_000;

let world: World;
beforeAll(async () => {
  world = await startWorld();
  // One of each resource, so that no list is empty.
  for (const operation of world.operations)
    if (missingFor(operation).length === 0) await makePath(operation, world, world.home);
  for (const [collection, make] of Object.entries(MAKERS))
    if (!collection.includes("{}") && world.operations.some(({ key }) => key === `POST ${collection}`))
      await make({ world, tenant: world.home, above: [] });
}, START_MS);
afterAll(() => world.stop());

const served = ENDPOINTS.filter(({ key }) => !Object.hasOwn(PENDING, key));
const rows = served.map((endpoint): [string, Endpoint] => [endpoint.key, endpoint]);

function operationOf(endpoint: Endpoint): Operation {
  const found = world.operations.find(({ key }) => key === endpoint.key);
  if (found === undefined) throw new Error(`${endpoint.key} is not in the document`);
  return found;
}

/** Properties of an object's schema, including those of its parts. */
function propertiesOf(schema: Schema): { properties: Record<string, Schema>; required: string[] } {
  const whole = resolve(world.document, schema);
  const parts = (whole.allOf ?? []).map(propertiesOf);
  return {
    properties: Object.assign({}, whole.properties, ...parts.map(({ properties }) => properties)),
    required: [...(whole.required ?? []), ...parts.flatMap(({ required }) => required)],
  };
}

/** The JSON types that a schema allows. */
function typesOf(schema: Schema): string[] {
  const whole = resolve(world.document, schema);
  if (whole.anyOf !== undefined) return [...new Set(whole.anyOf.flatMap(typesOf))];
  return [whole.const === undefined ? (whole.type ?? "anything") : typeof whole.const];
}

/** Fields of a resource that a schema lacks. */
function lacking(schema: Schema, fields: Readonly<Record<string, Field>>, at: string): string[] {
  const { properties, required } = propertiesOf(schema);
  return Object.entries(fields).flatMap(([name, field]) => {
    const property = properties[name];
    if (property === undefined) return [`${at}.${name} is not in the schema`];
    const odd = typesOf(property).filter((type) => !field.types.includes(type));
    return [
      ...odd.map((type) => `${at}.${name} may be ${type}`),
      ...(field.always && !required.includes(name) ? [`${at}.${name} may be absent`] : []),
    ];
  });
}

/** Path of the resource within an answer. */
const RESOURCE_AT: Readonly<Record<Endpoint["shape"], (schema: Schema) => Schema | undefined>> = {
  one: (schema) => schema,
  page: (schema) => propertiesOf(schema).properties.data?.items,
  flat: (schema) => propertiesOf(schema).properties.data?.items,
  none: () => undefined,
};

/** The resources in a live answer. */
function shownIn(endpoint: Endpoint, { json }: RawAnswer): Record<string, unknown>[] {
  return endpoint.shape === "none" ? [] : endpoint.shape === "one" ? [json] : json.data;
}

/** One call of the endpoint as its table row says, with the project's key or, for account routes, the account's. */
async function callOnce(endpoint: Endpoint, operation: Operation): Promise<RawAnswer> {
  const made = endpoint.ofDesk
    ? [world.home.inboxId]
    : (await makePath(operation, world, world.home)).map(({ id }) => id);
  const path = fill(operation, made);
  const key = operation.level === "account" ? world.home.wide : world.home.key;
  const body = endpoint.noBody ? undefined : bodyFor(operation, world, world.home);
  return world.call(operation.method, `${path}${queryFor(operation, path)}`, { key }, body);
}

const ISO = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z$/;

function typeOf(value: unknown): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "array";
  return Number.isInteger(value) ? "integer" : typeof value;
}

/** Faults of a shown resource by its list of fields. */
function misshapen(shown: Record<string, unknown>, fields: Readonly<Record<string, Field>>): string[] {
  return Object.entries(fields).flatMap(([name, field]) => {
    const value = shown[name];
    if (value === undefined) return field.always ? [`${name} is missing`] : [];
    if (!field.types.includes(typeOf(value))) return [`${name} is ${typeOf(value)}`];
    return field.timestamp && typeof value === "string" && !ISO.test(value)
      ? [`${name} is no ISO 8601 time`]
      : [];
  });
}

describe("the interface", () => {
  test("every endpoint is in the document, except those that are still to be built", () => {
    const documented = new Set(world.operations.map(({ key }) => key));
    const absent = served.map(({ key }) => key).filter((key) => !documented.has(key));
    expect(absent).toEqual([]);
  });

  test("no endpoint that is still to be built is there already", () => {
    const documented = new Set(world.operations.map(({ key }) => key));
    expect(Object.keys(PENDING).filter((key) => documented.has(key))).toEqual([]);
    for (const reason of Object.values(PENDING)) expect(reason).not.toBe("");
  });

  test("every API path begins with its version, and no operation has two names", () => {
    const unversioned = world.operations.filter(
      ({ level, path }) => level !== "open" && !path.startsWith("/v1/"),
    );
    expect(unversioned.map(({ key }) => key)).toEqual([]);
    const ids = world.operations.map(({ id }) => id);
    expect(new Set(ids).size).toBe(ids.length);
  });

  test("every operation that requires a key can answer 401, 403 and 429, and one with an id 404", () => {
    const faults = world.operations
      .filter(({ level }) => level !== "open")
      .flatMap(({ key, answers, pathParams }) =>
        [401, 403, 429, 500, ...(pathParams.length > 0 ? [404] : [])]
          .filter((status) => !answers.has(status))
          .map((status) => `${key} does not name ${status}`),
      );
    expect(faults).toEqual([]);
  });

  test("every error is described as the error envelope", () => {
    for (const { key, answers } of world.operations)
      for (const [status, schema] of answers) {
        if (status < 400) continue;
        const { properties, required } = propertiesOf(schema ?? {});
        const inner = propertiesOf(properties.error ?? {});
        expect([key, status, required]).toEqual([key, status, ["error"]]);
        expect(inner.required).toContain("type");
        expect(inner.required).toContain("message");
      }
  });
});

describe.each(rows)("%s", (_key, endpoint) => {
  test("is documented with its status, its inputs and the fields of its resource", () => {
    const operation = operationOf(endpoint);
    expect(operation.successes).toContain(endpoint.status);
    for (const status of endpoint.errors ?? []) expect([...operation.answers.keys()]).toContain(status);
    const query = operation.query.map(({ name }) => name);
    expect(query).toEqual(expect.arrayContaining([...(endpoint.query ?? [])]));
    const body = propertiesOf(operation.body ?? {});
    expect(Object.keys(body.properties)).toEqual(expect.arrayContaining([...(endpoint.takes ?? [])]));
    expect(body.required).toEqual(expect.arrayContaining([...(endpoint.requires ?? [])]));
    for (const [name, taken] of Object.entries(endpoint.itemsTake ?? {})) {
      const item = propertiesOf(body.properties[name]?.items ?? {});
      expect(Object.keys(item.properties)).toEqual(expect.arrayContaining([...taken]));
    }
    const answer = operation.answers.get(endpoint.status) ?? null;
    if (endpoint.shape === "none") return expect(answer).toBeNull();
    const resource = RESOURCE_AT[endpoint.shape](answer ?? {});
    expect(lacking(resource ?? {}, endpoint.shows, "answer")).toEqual([]);
    for (const [name, record] of Object.entries(endpoint.inner ?? {})) {
      const inner = propertiesOf(resource ?? {}).properties[name];
      const fields = RECORDS[record] ?? {};
      expect(lacking(inner?.items ?? inner ?? {}, fields, name)).toEqual([]);
    }
    if (endpoint.shape === "page") expect(lacking(answer ?? {}, RECORDS.page ?? {}, "answer")).toEqual([]);
    return undefined;
  });

  test("answers as documented", async () => {
    const operation = operationOf(endpoint);
    const answer = await callOnce(endpoint, operation);
    expect([answer.status, answer.status === endpoint.status ? "" : answer.text]).toEqual([
      endpoint.status,
      "",
    ]);
    expect(answer.headers.get("x-request-id")).toMatch(/^[A-Za-z0-9._-]{1,128}$/);
    if (endpoint.shape === "none") return expect(answer.text).toBe("");
    const schema = operation.answers.get(endpoint.status) ?? {};
    expect(faultsOf(world.document, schema, answer.json)).toEqual([]);
    const shown = shownIn(endpoint, answer);
    expect(shown.length).toBeGreaterThan(0);
    expect(shown.flatMap((each) => misshapen(each, endpoint.shows))).toEqual([]);
    for (const name of endpoint.hides ?? []) for (const each of shown) expect(each[name] ?? "").toBe("");
    for (const [name, record] of Object.entries(endpoint.inner ?? {}))
      for (const each of shown)
        for (const part of [each[name] ?? []].flat() as Record<string, unknown>[])
          expect(misshapen(part, RECORDS[record] ?? {})).toEqual([]);
    if (endpoint.shape === "page") expect(["string", "object"]).toContain(typeof answer.json.nextCursor);
    for (const [name, value] of Object.entries(endpoint.values ?? {}))
      expect(shown[0]?.[name]).toEqual(value);
    return undefined;
  });
});
