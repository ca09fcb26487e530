import type { TSchema } from "@sinclair/typebox";
import { ADDRESS_EXPECTED, normalizeAddress } from "../../core/addresses.ts";
import { type Issue, validationError } from "../../core/errors.ts";
import { check } from "../../core/validation.ts";
import { DAY_OR_TIME, EMAIL, TIME } from "./schemas.ts";

const BOOLEANS: ReadonlyMap<string, boolean> = new Map([
  ["true", true],
  ["false", false],
]);

/**
 * Parsers of query values by schema type. If a value does not parse, it stays a string, and the schema refuses it.
 * Python's clients write a boolean as `True`.
 */
const READERS: Readonly<Record<string, (text: string) => unknown>> = {
  integer: (text) => (/^-?\d{1,15}$/.test(text) ? Number(text) : text),
  number: (text) => (/^-?\d{1,15}(\.\d{1,15})?$/.test(text) ? Number(text) : text),
  boolean: (text) => BOOLEANS.get(text.toLowerCase()) ?? text,
};

function propertiesOf(schema: TSchema): [string, TSchema][] {
  const properties: Record<string, TSchema> = schema.properties ?? {};
  return Object.entries(properties);
}

function isAddress({ expected }: TSchema): boolean {
  return expected === EMAIL.expected;
}

/** Kinds of values that have no space but may have a plus: an address has one, and a time's zone begins with one. */
const WITH_PLUS: ReadonlySet<unknown> = new Set([EMAIL.expected, TIME.expected, DAY_OR_TIME.expected]);

/** Returns the value in which a bare `+` is a plus if it must be one, else the value as forms encode it. */
function readText({ expected }: TSchema, asForm: string | null, withPlus: string | null): string | null {
  const isPlus = withPlus !== null && (WITH_PLUS.has(expected) || normalizeAddress(withPlus) !== null);
  return isPlus ? withPlus : asForm;
}

/** Returns an issue for each value that cannot be an address: a filter would find nothing, a removal remove nothing. */
function addressIssues(schema: TSchema, query: Record<string, unknown>): Issue[] {
  return propertiesOf(schema).flatMap(([param, property]) => {
    const text = query[param];
    if (!isAddress(property) || typeof text !== "string" || normalizeAddress(text) !== null) return [];
    return [{ param, message: ADDRESS_EXPECTED, code: "invalid_email" as const }];
  });
}

/**
 * Returns the query values that the schema names. If a name is given twice, the first value counts. In an address
 * or a time, a bare `+` is a plus, because neither has a space.
 * @throws AppError 422 with an issue for every value that does not fit
 */
export function readQuery(schema: TSchema | undefined, url: string): Record<string, unknown> {
  if (schema === undefined) return {};
  const start = url.indexOf("?");
  const written = start < 0 ? "" : url.slice(start + 1);
  const given = new URLSearchParams(written);
  const withPlus = new URLSearchParams(written.replaceAll("+", "%2B"));
  const query: Record<string, unknown> = {};
  for (const [name, property] of propertiesOf(schema)) {
    const text = readText(property, given.get(name), withPlus.get(name));
    if (text === null) continue;
    const type: unknown = property.type;
    const read = typeof type === "string" ? READERS[type] : undefined;
    query[name] = read === undefined ? text : read(text);
  }
  const issues = check(schema, query);
  if (issues.length === 0) issues.push(...addressIssues(schema, query));
  if (issues.length > 0) throw validationError(issues);
  return query;
}

/** Returns the path of a URL, which may lack its origin. */
export function pathOf(url: string): string {
  return new URL(url, "http://localhost").pathname;
}
