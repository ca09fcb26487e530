import { faultsOf } from "./json-schema.ts";
import { choicesOf, type Document, type Operation, resolve, type Schema } from "./openapi-document.ts";

/** A source of numbers in [0, 1) that repeats for the same seed. */
export type Random = () => number;

/** Marsaglia's xorshift over 32 bits: small, and random enough to pick among choices. */
export function seeded(seed: number): Random {
  let state = seed | 1;
  return () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) / 2 ** 32;
  };
}

function pick<Item>(random: Random, items: readonly Item[]): Item {
  const item = items[Math.floor(random() * items.length)];
  if (item === undefined) throw new Error("nothing to pick from");
  return item;
}

/** Depth below which optional fields are left out, because a schema may contain itself. */
const MAX_DEPTH = 6;
/** Longest generated text and list, unless the schema requires more. */
const MAX_CHARS = 40;
const MAX_ITEMS = 3;

const HOUR_MS = 3_600_000;

/** Strings that fields of a name usually need, so that not every request fails at its first rule. */
const PLAUSIBLE: Readonly<Record<string, readonly string[]>> = {
  email: ["ada@example.com", "Grace.Hopper+nav@sub.example.org", "ü@example.com"],
  url: ["https://hooks.example.com/x", "https://example.com:8443/?a=b"],
  scheduledAt: ["2020-01-01T00:00:00Z"],
  content: ["", "aGVsbG8="],
  contentType: ["text/plain", "image/png"],
};
const WORDS = [
  "",
  "a",
  "Hello, world",
  "0",
  "日本語",
  "🙂🙂",
  "a:b",
  "name:value",
  "x@y",
  "<b>",
  "{{ a }}",
  "null",
];

/** Returns a value that fits the schema. `name` is the field's name, used to choose a sensible value. */
export function generate(document: Document, schema: Schema, random: Random, name = "", depth = 0): unknown {
  const whole = resolve(document, schema);
  if (whole.const !== undefined) return whole.const;
  if (whole.enum !== undefined) return pick(random, whole.enum);
  const choices = choicesOf(whole);
  if (choices.length > 0) return generate(document, pick(random, choices), random, name, depth);
  const make = GENERATORS[whole.type ?? "anything"];
  if (make === undefined) throw new Error(`no generator for ${whole.type}`);
  return make({ document, schema: whole, random, name, depth });
}

interface Generation {
  document: Document;
  schema: Schema;
  random: Random;
  name: string;
  depth: number;
}

const GENERATORS: Readonly<Record<string, (generation: Generation) => unknown>> = {
  null: () => null,
  boolean: ({ random }) => random() < 0.5,
  integer: ({ schema, random }) => {
    const { minimum = -1000, maximum = 1000 } = schema;
    return pick(random, [minimum, maximum, Math.floor(minimum + random() * (maximum - minimum))]);
  },
  number: ({ schema, random }) => (schema.minimum ?? 0) + random(),
  string: text,
  array({ document, schema, random, name, depth }) {
    const { minItems = 0, maxItems = MAX_ITEMS, items = {} } = schema;
    const length =
      minItems + Math.floor(random() * (Math.min(maxItems, minItems + MAX_ITEMS) - minItems + 1));
    return Array.from({ length }, () => generate(document, items, random, name, depth + 1));
  },
  object({ document, schema, random, depth }) {
    const required = new Set(schema.required ?? []);
    const fields = Object.entries(schema.properties ?? {})
      .filter(([name]) => required.has(name) || (depth < MAX_DEPTH && random() < 0.5))
      .map(([name, property]) => [name, generate(document, property, random, name, depth + 1)]);
    const { additionalProperties: values } = schema;
    const extra =
      typeof values === "object" && depth < MAX_DEPTH && random() < 0.5
        ? [["X-Own", generate(document, values, random, "", depth + 1)]]
        : [];
    return Object.fromEntries([...fields, ...extra]);
  },
  anything: ({ random }) => pick(random, [null, true, 1, "text", [], {}, { a: [1, { b: null }] }]),
};

function text({ document, schema, random, name }: Generation): string {
  const { minLength = 0, maxLength = MAX_CHARS } = schema;
  const soon = new Date(Date.now() + random() * HOUR_MS).toISOString();
  const plausible = /At$|^after$|^before$/.test(name) ? [soon, ...(PLAUSIBLE[name] ?? [])] : PLAUSIBLE[name];
  const long = "x".repeat(Math.min(maxLength, 2 * MAX_CHARS + minLength));
  const candidates =
    plausible !== undefined && random() < 0.8 ? plausible : [...WORDS, long, "a".repeat(minLength)];
  const fitting = candidates.filter((candidate) => faultsOf(document, schema, candidate).length === 0);
  if (fitting.length > 0) return pick(random, fitting);
  const last = [...WORDS, long, soon, ...Object.values(PLAUSIBLE).flat()].filter(
    (candidate) => faultsOf(document, schema, candidate).length === 0,
  );
  return pick(random, last);
}

/** Left out: a cursor would have to be one of ours, and a wait would take up to a minute. */
const NOT_GENERATED: readonly string[] = ["cursor", "wait"];

/** Returns a valid query for the operation, which may be empty. */
export function generateQuery(document: Document, { query }: Operation, random: Random): string {
  const values = query
    .filter(({ required, name }) => required || (!NOT_GENERATED.includes(name) && random() < 0.4))
    .map(({ name, schema }): [string, string] => [name, String(generate(document, schema, random, name))]);
  return values.length === 0 ? "" : `?${new URLSearchParams(values)}`;
}
