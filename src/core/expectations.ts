import type { TSchema } from "@sinclair/typebox";

/**
 * Words for what a schema expects. They come from its type, limits, choices and examples. Two keywords of ours add to them;
 * the API document leaves both out.
 *
 * - `expected` replaces the words for the type: `an address`.
 * - `meaning` says in words what `pattern` says: `without line breaks`. A schema with a pattern needs one or the other, because
 *   no message shows a regular expression.
 */
export const MESSAGE_KEYWORDS: readonly string[] = ["expected", "meaning"];

/** Longest example that a message shows, characters of JSON. */
const MAX_EXAMPLE_CHARS = 120;
/** Maximum number of examples in one message. */
const MAX_EXAMPLES = 2;

/** Returns what the schema expects, with an example: `an address, such as {"email":"ana@example.com"}`. */
export function expectationOf(schema: TSchema): string {
  const examples = isChoice(schema) ? [] : examplesOf(schema).map((example) => JSON.stringify(example));
  const shown = examples.filter(({ length }) => length <= MAX_EXAMPLE_CHARS).slice(0, MAX_EXAMPLES);
  return shown.length === 0 ? wordsOf(schema) : `${wordsOf(schema)}, such as ${shown.join(" or ")}`;
}

function wordsOf(schema: TSchema): string {
  if (typeof schema.expected === "string") return schema.expected;
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.anyOf !== undefined) return joined(variantsOf(schema).map(wordsOf));
  const words = WORDS[schema.type as string];
  return words === undefined ? "a value" : words(schema);
}

const WORDS: Readonly<Record<string, (schema: TSchema) => string>> = {
  string: (schema) => {
    const length = range(schema.minLength, schema.maxLength, "character");
    const meaning = schema.meaning === undefined ? "" : ` ${schema.meaning}`;
    return `a string${length}${meaning}`;
  },
  integer: (schema) => `a whole number${bounds(schema)}`,
  number: (schema) => `a number${bounds(schema)}`,
  boolean: () => "true or false",
  null: () => "null",
  array: (schema) => `a list${range(schema.minItems, schema.maxItems, "item")}`,
  object: ({ minProperties, maxProperties }) => `an object${range(minProperties, maxProperties, "key")}`,
};

function range(least: number | undefined, most: number | undefined, unit: string): string {
  const units = (count: number) => `${count} ${unit}${count === 1 ? "" : "s"}`;
  if (most === undefined) return least === undefined ? "" : ` of at least ${units(least)}`;
  return least === undefined || least === 0 ? ` of at most ${units(most)}` : ` of ${least} to ${units(most)}`;
}

function bounds({ minimum, maximum }: TSchema): string {
  if (maximum === undefined) return minimum === undefined ? "" : ` of at least ${minimum}`;
  return minimum === undefined ? ` of at most ${maximum}` : ` from ${minimum} to ${maximum}`;
}

function variantsOf({ anyOf }: TSchema): TSchema[] {
  return anyOf as TSchema[];
}

/** Joins words as `a, b or c`. */
function joined(words: readonly string[]): string {
  const last = words.at(-1) ?? "";
  return words.length < 2 ? last : `${words.slice(0, -1).join(", ")} or ${last}`;
}

/** Returns whether the words already list every value that the schema takes. */
function isChoice(schema: TSchema): boolean {
  if (schema.anyOf !== undefined) return variantsOf(schema).every(isChoice);
  return schema.const !== undefined || schema.type === "boolean" || schema.type === "null";
}

/** Returns example values: the schema's own, else one that is put together from its parts. Empty if a part has none. */
function examplesOf(schema: TSchema): unknown[] {
  if (Array.isArray(schema.examples)) return schema.examples;
  if (schema.default !== undefined) return [schema.default];
  if (schema.const !== undefined) return [schema.const];
  if (schema.anyOf !== undefined) return variantsOf(schema).flatMap(examplesOf).slice(0, 1);
  const example = EXAMPLES[schema.type as string]?.(schema);
  return example === undefined ? [] : [example];
}

const EXAMPLES: Readonly<Record<string, (schema: TSchema) => unknown>> = {
  integer: ({ minimum = 1, maximum = minimum }) => Math.min(Math.max(1, minimum), maximum),
  number: ({ minimum = 1, maximum = minimum }) => Math.min(Math.max(1, minimum), maximum),
  boolean: () => true,
  array: ({ items }) => {
    const item = examplesOf(items)[0];
    return item === undefined ? undefined : [item];
  },
  object: exampleObject,
};

/** Returns an object of the required fields, or of the first field if none is required. */
function exampleObject({ properties = {}, required }: TSchema): unknown {
  const names: string[] = required ?? Object.keys(properties).slice(0, 1);
  const entries = names.map((name) => [name, examplesOf(properties[name] ?? {})[0]] as const);
  return entries.length === 0 || entries.some(([, example]) => example === undefined)
    ? undefined
    : Object.fromEntries(entries);
}
