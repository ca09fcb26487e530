/** A JSON Schema as the served document spells it, with the keywords that the document uses. */
export interface Schema {
  $ref?: string;
  type?: string;
  properties?: Record<string, Schema>;
  required?: string[];
  items?: Schema;
  anyOf?: Schema[];
  oneOf?: Schema[];
  allOf?: Schema[];
  const?: unknown;
  enum?: unknown[];
  additionalProperties?: Schema;
  minimum?: number;
  maximum?: number;
  minLength?: number;
  maxLength?: number;
  minItems?: number;
  maxItems?: number;
  maxProperties?: number;
  pattern?: string;
  format?: string;
}

/** A named value of the query. */
export interface QueryValue {
  name: string;
  required: boolean;
  schema: Schema;
}

/** A `{name}` segment of a path. */
export interface PathParam {
  name: string;
  /** The path before the segment, which tells the resource, such as `/v1/domains`. */
  collection: string;
}

/** One operation of the served document, its references resolved. */
export interface Operation {
  id: string;
  method: string;
  path: string;
  /** Method and path, without the names of its segments: `GET /v1/domains/{}`. */
  key: string;
  level: "open" | "account" | "project";
  scope: string | null;
  /** Those that it needs next to `scope`. */
  otherScopes: string[];
  pathParams: PathParam[];
  query: QueryValue[];
  body: Schema | null;
  bodyExample: unknown;
  /** A body that is no JSON: its first content type, and the example of it. */
  file: { type: string; example: string } | null;
  bodyRequired: boolean;
  /** The 2xx statuses it names. */
  successes: readonly number[];
  /** By status: the JSON body's schema, or null if the answer has no JSON body. */
  answers: ReadonlyMap<number, Schema | null>;
  /** By status: the lower-case header fields of answers. true: always present. */
  headers: ReadonlyMap<number, ReadonlyMap<string, boolean>>;
}

interface RawParameter {
  $ref?: string;
  name: string;
  in: string;
  required?: boolean;
  schema: Schema;
}
interface RawHeader {
  $ref?: string;
  required?: boolean;
}
interface RawAnswer {
  $ref?: string;
  headers?: Record<string, RawHeader>;
  content?: Record<string, RawContent>;
}
interface RawContent {
  schema: Schema;
  example?: unknown;
}
export interface RawOperation {
  operationId: string;
  summary?: string;
  description?: string;
  parameters?: RawParameter[];
  requestBody?: { required?: boolean; content: Record<string, RawContent> };
  responses: Record<string, RawAnswer>;
  security?: Record<string, string[]>[];
}

/** The document as served. */
export interface Document {
  openapi: string;
  servers: { url: string }[];
  paths: Record<string, Record<string, RawOperation>>;
  webhooks: Record<string, Record<string, RawOperation>>;
  components: Record<string, Record<string, unknown>>;
}

const JSON_TYPE = "application/json";
const PROJECT_HEADER = "X-Service-Product";

/** Resolves a local reference such as `#/components/schemas/Error`. Throws if it has no target. */
export function resolve<Thing extends { $ref?: string }>(document: Document, thing: Thing): Thing {
  if (thing.$ref === undefined) return thing;
  let found: unknown = document;
  for (const step of thing.$ref.split("/").slice(1))
    found = found instanceof Object ? (found as Record<string, unknown>)[step] : undefined;
  if (!(found instanceof Object)) throw new Error(`${thing.$ref} points nowhere`);
  return found as Thing;
}

/** Returns every operation of the document, in order. */
export function operationsOf(document: Document): Operation[] {
  return Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, raw]) => operationOf(document, method.toUpperCase(), path, raw)),
  );
}

function operationOf(document: Document, method: string, path: string, raw: RawOperation): Operation {
  const parameters = (raw.parameters ?? []).map((parameter) => resolve(document, parameter));
  const scopes = (raw.security ?? []).flatMap((requirement) => Object.values(requirement).flat());
  const asksProject = parameters.some(({ name }) => name === PROJECT_HEADER);
  const statuses = Object.keys(raw.responses).map(Number);
  const successes = statuses.filter((status) => status >= 200 && status < 400);
  if (successes.length === 0) throw new Error(`${method} ${path} names no success`);
  return {
    id: raw.operationId,
    method,
    path,
    key: `${method} ${path.replace(/\{\w+\}/g, "{}")}`,
    level: (raw.security ?? []).length === 0 ? "open" : asksProject ? "project" : "account",
    scope: scopes[0] ?? null,
    otherScopes: scopes.slice(1),
    pathParams: [...path.matchAll(/\/\{(\w+)\}/g)].map((match) => ({
      name: match[1] ?? "",
      collection: path.slice(0, match.index).replace(/\{\w+\}/g, "{}"),
    })),
    query: parameters
      .filter((parameter) => parameter.in === "query")
      .map(({ name, required, schema }) => ({ name, required: required === true, schema })),
    body: raw.requestBody?.content[JSON_TYPE]?.schema ?? null,
    bodyExample: raw.requestBody?.content[JSON_TYPE]?.example,
    file: fileOf(raw),
    bodyRequired: raw.requestBody?.required === true,
    successes,
    answers: new Map(
      Object.entries(raw.responses).map(([status, answer]) => [
        Number(status),
        resolve(document, answer).content?.[JSON_TYPE]?.schema ?? null,
      ]),
    ),
    headers: new Map(
      Object.entries(raw.responses).map(([status, answer]) => [
        Number(status),
        headersOf(document, resolve(document, answer)),
      ]),
    ),
  };
}

function fileOf({ requestBody }: RawOperation): Operation["file"] {
  const [first] = Object.entries(requestBody?.content ?? {});
  return first === undefined || first[0] === JSON_TYPE
    ? null
    : { type: first[0], example: String(first[1].example) };
}

function headersOf(document: Document, { headers = {} }: RawAnswer): Map<string, boolean> {
  return new Map(
    Object.entries(headers).map(([name, header]) => [
      name.toLowerCase(),
      resolve(document, header).required === true,
    ]),
  );
}

/** Header fields that every HTTP server may send and that the document need not list. */
const UNTOLD: ReadonlySet<string> = new Set([
  "cache-control",
  "connection",
  "content-length",
  "content-type",
  "date",
  "transfer-encoding",
  "content-disposition",
  "content-security-policy",
  "cross-origin-resource-policy",
  "referrer-policy",
  "x-content-type-options",
  "x-dns-prefetch-control",
]);

/** Returns the faults of an answer's header fields by the document. */
export function headerFaults({ headers: documented }: Operation, status: number, headers: Headers): string[] {
  const told = documented.get(status) ?? new Map<string, boolean>();
  const untold = [...headers.keys()].filter((name) => !told.has(name) && !UNTOLD.has(name));
  const missing = [...told].filter(([name, always]) => always && !headers.has(name)).map(([name]) => name);
  return [
    ...untold.map((name) => `the header ${name} is not documented with ${status}`),
    ...missing.map((name) => `no header ${name} with ${status}`),
  ];
}

/** The schema of webhook payloads. */
export function webhookSchemaOf({ webhooks }: Document): Schema {
  const schema = webhooks.event?.post?.requestBody?.content[JSON_TYPE]?.schema;
  if (schema === undefined) throw new Error("the document shows no webhook");
  return schema;
}

/** Fills the path's segments in order. Values are not encoded. */
export function fill(operation: Operation, values: readonly string[]): string {
  let next = 0;
  return operation.path.replace(/\{\w+\}/g, () => values[next++] ?? "");
}

/** The schema of any JSON value. It contains itself. */
export const ANY_JSON = "#/components/schemas/JsonValue";

/**
 * Returns the places of a schema's values as lists of steps. `[]` is an item of an array, `*` any key of a record.
 */
export function placesOf(document: Document, schema: Schema, at: readonly string[] = []): Place[] {
  const resolved = schema.$ref === ANY_JSON ? {} : resolve(document, schema);
  const here: Place = { at, schema: resolved };
  const inner: Place[] = [];
  for (const [name, property] of Object.entries(resolved.properties ?? {}))
    inner.push(...placesOf(document, property, [...at, name]));
  if (resolved.items !== undefined) inner.push(...placesOf(document, resolved.items, [...at, "[]"]));
  if (resolved.additionalProperties !== undefined)
    inner.push(...placesOf(document, resolved.additionalProperties, [...at, "*"]));
  for (const part of [...choicesOf(resolved), ...(resolved.allOf ?? [])])
    inner.push(...placesOf(document, part, at).filter((place) => place.at.length > at.length));
  return at.length === 0 ? inner : [here, ...inner];
}

/** Returns the variants of a schema. None if it has no choice. */
export function choicesOf({ anyOf, oneOf }: Schema): readonly Schema[] {
  return anyOf ?? oneOf ?? [];
}

/** A value's place in a body. */
export interface Place {
  at: readonly string[];
  schema: Schema;
}
