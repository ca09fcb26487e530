import { choicesOf, type Document, resolve, type Schema } from "./openapi-document.ts";

/** Keywords that do not restrict a value. */
const SILENT: ReadonlySet<string> = new Set(["description", "default", "examples", "title", "discriminator"]);
const TYPES: Readonly<Record<string, (value: unknown) => boolean>> = {
  string: (value) => typeof value === "string",
  boolean: (value) => typeof value === "boolean",
  number: (value) => typeof value === "number",
  integer: (value) => Number.isInteger(value),
  null: (value) => value === null,
  array: Array.isArray,
  object: isObject,
};

const FORMATS: Readonly<Record<string, (text: string) => boolean>> = {
  // RFC 3339 §5.6 in the form that the service writes, with years of six digits too: statistics accept times before
  // the year 0.
  "date-time": (text) =>
    /^(?:\d{4}|[+-]\d{6})-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z$/.test(text) && !Number.isNaN(Date.parse(text)),
  "idn-email": (text) => /^[^\s@]+@[^\s@]+$/.test(text),
  uri: (text) => URL.canParse(text) && /^[\x21-\x7e]+$/.test(text),
};

type Keyword = (document: Document, schema: Schema, value: unknown, at: string) => string[];

const KEYWORDS: Readonly<Record<string, Keyword>> = {
  type: (_document, { type = "" }, value, at) =>
    TYPES[type]?.(value) === true ? [] : [`${at} is not ${type}`],
  const: (_document, schema, value, at) =>
    value === schema.const ? [] : [`${at} is not ${JSON.stringify(schema.const)}`],
  enum: (_document, schema, value, at) =>
    schema.enum?.includes(value) === true ? [] : [`${at} is none of ${JSON.stringify(schema.enum)}`],
  required: (_document, { required = [] }, value, at) =>
    isObject(value)
      ? required.filter((name) => !Object.hasOwn(value, name)).map((name) => `${at}.${name} is missing`)
      : [],
  properties: (document, { properties = {} }, value, at) =>
    isObject(value)
      ? Object.entries(properties).flatMap(([name, property]) =>
          Object.hasOwn(value, name) ? faultsOf(document, property, value[name], `${at}.${name}`) : [],
        )
      : [],
  additionalProperties: (document, { additionalProperties = {}, properties = {} }, value, at) =>
    Object.entries(isObject(value) ? value : {})
      .filter(([name]) => !Object.hasOwn(properties, name))
      .flatMap(([name, inner]) => faultsOf(document, additionalProperties, inner, `${at}.${name}`)),
  items: (document, { items = {} }, value, at) =>
    Array.isArray(value)
      ? value.flatMap((item, index) => faultsOf(document, items, item, `${at}[${index}]`))
      : [],
  anyOf: (document, { anyOf = [] }, value, at) =>
    anyOf.some((part) => faultsOf(document, part, value, at).length === 0) ? [] : [`${at} fits no choice`],
  oneOf(document, { oneOf = [] }, value, at) {
    const fitting = oneOf.filter((part) => faultsOf(document, part, value, at).length === 0).length;
    return fitting === 1 ? [] : [`${at} fits ${fitting} choices`];
  },
  allOf: (document, { allOf = [] }, value, at) =>
    allOf.flatMap((part) => faultsOf(document, part, value, at)),
  pattern: (_document, { pattern = "" }, value, at) =>
    typeof value !== "string" || new RegExp(pattern).test(value) ? [] : [`${at} does not match ${pattern}`],
  format: (_document, { format = "" }, value, at) =>
    typeof value !== "string" || FORMATS[format]?.(value) === true ? [] : [`${at} is no ${format}`],
  minimum: bound("minimum", (value) => value, 1, "number"),
  maximum: bound("maximum", (value) => value, -1, "number"),
  minLength: bound("minLength", ({ length }) => length, 1, "string"),
  maxLength: bound("maxLength", ({ length }) => length, -1, "string"),
  minItems: bound("minItems", ({ length }) => length, 1, "array"),
  maxItems: bound("maxItems", ({ length }) => length, -1, "array"),
  maxProperties: bound("maxProperties", (value) => Object.keys(value).length, -1, "object"),
  $ref: (document, schema, value, at) => faultsOf(document, resolve(document, schema), value, at),
};

interface Bounded {
  number: number;
  string: string;
  array: unknown[];
  object: object;
}
type BoundName =
  | "minimum"
  | "maximum"
  | "minLength"
  | "maxLength"
  | "minItems"
  | "maxItems"
  | "maxProperties";

/** A keyword that limits values of one type; `sign` is 1 for a lower bound, -1 for an upper one. */
function bound<Type extends keyof Bounded>(
  name: BoundName,
  measure: (value: Bounded[Type]) => number,
  sign: 1 | -1,
  type: Type,
): Keyword {
  return (_document, schema, value, at) => {
    if (TYPES[type]?.(value) !== true) return [];
    const off = (measure(value as Bounded[Type]) - (schema[name] ?? 0)) * sign < 0;
    return off ? [`${at} breaks ${name} ${schema[name]}`] : [];
  };
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/**
 * Returns the faults of a value by a schema of the document. Throws if the schema has an unknown keyword, so that
 * no value passes unchecked.
 */
export function faultsOf(document: Document, schema: Schema, value: unknown, at = "$"): string[] {
  return Object.keys(schema).flatMap((name) => {
    const keyword = KEYWORDS[name];
    if (keyword !== undefined) return keyword(document, schema, value, at);
    if (SILENT.has(name)) return [];
    throw new Error(`the keyword ${name} at ${at} has no check`);
  });
}

/** Returns the fields of a value that its schema does not name. If a schema names no fields, all are allowed. */
export function undocumentedIn(document: Document, schema: Schema, value: unknown, at = "$"): string[] {
  const { allOf, items, ...own } = resolve(document, schema);
  const choices = choicesOf(own);
  if (choices.length > 0) {
    const fitting = choices.filter((part) => faultsOf(document, part, value).length === 0);
    const found = fitting.map((part) => undocumentedIn(document, part, value, at));
    return found.reduce((least, other) => (other.length < least.length ? other : least), found[0] ?? []);
  }
  if (Array.isArray(value))
    return value.flatMap((item, index) => undocumentedIn(document, items ?? {}, item, `${at}[${index}]`));
  const parts = (allOf ?? []).map((part) => resolve(document, part).properties);
  const properties: Record<string, Schema> = Object.assign({}, own.properties, ...parts);
  if (!isObject(value) || own.additionalProperties !== undefined || Object.keys(properties).length === 0)
    return [];
  return Object.entries(value).flatMap(([name, field]) => {
    const property = properties[name];
    const where = `${at}.${name}`;
    return property === undefined
      ? [`${where} is not documented`]
      : undocumentedIn(document, property, field, where);
  });
}
