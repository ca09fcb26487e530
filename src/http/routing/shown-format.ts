import { MESSAGE_KEYWORDS } from "../../core/expectations.ts";

/**
 * The keyword for a string's format in the API document only. Under the name `format`, the checker would enforce
 * it. Our rules differ slightly from the format: a time needs no seconds.
 */
const SHOWN_FORMAT = "shownFormat";

/** The format of a field in requests, by what its schema says is `expected`. Addresses may have letters beyond ASCII. */
const EXPECTED_FORMATS: ReadonlyMap<unknown, string> = new Map([
  ["an email address", "idn-email"],
  ["an ISO 8601 date-time with a zone", "date-time"],
  ["an https:// URL", "uri"],
]);

/** The keyword for the type of a value in the API document only. The route itself refuses values of other types. */
const SHOWN_TYPE = "shownType";

/** Options of a schema for a date-time. */
export const DATE_TIME = { [SHOWN_FORMAT]: "date-time" };
/** Options of a schema for a URI. */
export const URI = { [SHOWN_FORMAT]: "uri" };

const ANY_JSON = { $ref: "#/components/schemas/JsonValue" };
const SIMPLE_JSON = [
  { type: "string" },
  { type: "number" },
  { type: "boolean" },
  { type: "null" },
  { type: "object", additionalProperties: ANY_JSON },
];
/**
 * Any JSON value. Without a name for it, generated clients would have `unknown`. It contains itself in objects only, because a type
 * of TypeScript that openapi-typescript makes cannot be a list of itself.
 */
export const JSON_VALUE = {
  description: "Any JSON value. Lists may be nested deeper than the schema shows.",
  anyOf: [...SIMPLE_JSON, listOf([...SIMPLE_JSON, listOf([...SIMPLE_JSON, listOf(SIMPLE_JSON)])])],
};

function listOf(anyOf: readonly object[]): object {
  return { type: "array", items: { anyOf } };
}

/**
 * Returns a document of schemas as readers expect it: with `format`, and with a choice of strings as one `enum`.
 * Client generators make one type from an `enum`, but one type per string from `anyOf`.
 */
export function asShown<Part>(part: Part): Part {
  if (typeof part !== "object" || part === null) return part;
  if (Array.isArray(part)) return part.map(asShown) as Part;
  const entries = Object.entries(part).flatMap(([key, value]): [string, unknown][] => {
    const format = key === "expected" ? EXPECTED_FORMATS.get(value) : undefined;
    if (format !== undefined) return [["format", format]];
    if (MESSAGE_KEYWORDS.includes(key)) return [];
    if (key === SHOWN_TYPE) return [["type", value]];
    if (key === SHOWN_FORMAT && typeof value === "string") return [["format", value]];
    if (key === "patternProperties") return [["additionalProperties", valuesOf(value)]];
    if (key === "anyOf" && "discriminator" in part) return [["oneOf", asShown(value)]];
    const texts = key === "anyOf" ? textsOf(value) : null;
    if (texts !== null)
      return [
        ["type", "string"],
        ["enum", texts],
      ];
    return [[key, asShown(value)]];
  });
  return Object.fromEntries(entries) as Part;
}

/** Returns the strings of a union, or null if it has other variants. */
function textsOf(variants: unknown): string[] | null {
  if (!Array.isArray(variants)) return null;
  const texts = variants.map((variant: { const?: unknown }) => variant.const);
  return texts.every((text) => typeof text === "string") ? texts : null;
}

/** Returns the schema of a record's values. Records have strings as keys, so they have one pattern. */
function valuesOf(patterns: unknown): unknown {
  const [values = {}] = Object.values(patterns as object);
  return Object.keys(values).length === 0 ? ANY_JSON : asShown(values);
}
