import type { TSchema } from "@sinclair/typebox";
import { validationError } from "../../core/errors.ts";
import { check } from "../../core/validation.ts";

const BOOLEANS: ReadonlyMap<string, boolean> = new Map([
  ["true", true],
  ["false", false],
]);

/**
 * Parsers of query values by schema type. If a text does not parse, it stays a text, and the schema refuses it.
 * Python's clients write a boolean as `True`.
 */
const READERS: Readonly<Record<string, (text: string) => unknown>> = {
  integer: (text) => (/^-?\d{1,15}$/.test(text) ? Number(text) : text),
  number: (text) => (/^-?\d{1,15}(\.\d{1,15})?$/.test(text) ? Number(text) : text),
  boolean: (text) => BOOLEANS.get(text.toLowerCase()) ?? text,
};

/** Returns the properties of a schema's object. */
function propertiesOf(schema: TSchema): [string, TSchema][] {
  const properties: Record<string, TSchema> = schema.properties ?? {};
  return Object.entries(properties);
}

/**
 * Returns the query values that the schema names. If a name is given twice, the first value counts.
 * @throws AppError 422 with an issue for every value that does not fit
 */
export function readQuery(schema: TSchema | undefined, url: string): Record<string, unknown> {
  if (schema === undefined) return {};
  const start = url.indexOf("?");
  const given = new URLSearchParams(start < 0 ? "" : url.slice(start + 1));
  const query: Record<string, unknown> = {};
  for (const [name, property] of propertiesOf(schema)) {
    const text = given.get(name);
    if (text === null) continue;
    const type: unknown = property.type;
    const read = typeof type === "string" ? READERS[type] : undefined;
    query[name] = read === undefined ? text : read(text);
  }
  const issues = check(schema, query);
  if (issues.length > 0) throw validationError(issues);
  return query;
}
