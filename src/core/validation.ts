import type { TSchema } from "@sinclair/typebox";
import { type TypeCheck, TypeCompiler } from "@sinclair/typebox/compiler";
import { type ValueError, ValueErrorType } from "@sinclair/typebox/errors";
import type { Issue } from "./errors.ts";

/** Issues told of one request at most: a hostile body must not make a long answer. */
export const MAX_ISSUES = 50;

/** `/to/0/email` as `to[0].email`. */
function paramOf(pointer: string): string {
  let out = "";
  for (const step of pointer.split("/").slice(1)) {
    const name = step.replaceAll("~1", "/").replaceAll("~0", "~");
    if (/^\d+$/.test(name)) out += `[${name}]`;
    else out += out === "" ? name : `.${name}`;
  }
  return out;
}

type Breach = Pick<ValueError, "path" | "message" | "type" | "schema" | "value" | "errors">;

/** What a value of another type than the schema's breaks, whatever else the schema says. */
const WRONG_TYPE: ReadonlySet<ValueErrorType> = new Set([
  ValueErrorType.Array,
  ValueErrorType.Boolean,
  ValueErrorType.Integer,
  ValueErrorType.Literal,
  ValueErrorType.Null,
  ValueErrorType.Number,
  ValueErrorType.Object,
  ValueErrorType.String,
]);

/**
 * Whether a text has more characters than that, as JSON Schema counts them (RFC 8259 §1): one beyond the basic plane is
 * one, though JavaScript has it as two.
 */
export function isLonger(text: string, maxChars: number): boolean {
  return text.length > maxChars && (text.length > 2 * maxChars || [...text].length > maxChars);
}

/** Whether the schema takes the text, whose length in JavaScript's units it was refused for. */
function isShortEnough({ value, schema: { maxLength } }: Breach): boolean {
  return typeof value === "string" && !isLonger(value, maxLength);
}

/** The breaches that count, with what is wrong in the variant of a union that the value was meant for in place of the union. */
function* breachesOf(errors: Iterable<Breach>): Generator<Breach> {
  for (const error of errors) {
    if (error.type === ValueErrorType.StringMaxLength && isShortEnough(error)) continue;
    if (error.type === ValueErrorType.Union) yield* breachOfUnion(error);
    else yield error;
  }
}

function* breachOfUnion(error: Breach): Generator<Breach> {
  const variants = error.errors.map((variant) => [...breachesOf(variant)]);
  if (variants.some((breaches) => breaches.length === 0)) return;
  const meant = variants.find(
    ([first]) => first !== undefined && (first.path !== error.path || !WRONG_TYPE.has(first.type)),
  );
  if (meant === undefined) yield { ...error, message: `Expected ${choicesOf(error.schema)}` };
  else yield* meant;
}

/** The variants of a union in words: `a, b or null`. */
function choicesOf({ anyOf }: TSchema): string {
  const names = (anyOf as TSchema[]).map(({ const: text, type }) => String(text ?? type));
  const last = names.pop();
  return names.length === 0 ? `${last}` : `${names.join(", ")} or ${last}`;
}

/** A schema's breaches as issues, one a place, at most `MAX_ISSUES`. */
function issuesOf(errors: Iterable<Breach>): Issue[] {
  const issues = new Map<string, Issue>();
  for (const error of breachesOf(errors)) {
    const param = paramOf(error.path);
    if (issues.has(param)) continue;
    if (issues.size >= MAX_ISSUES) break;
    const missing = error.type === ValueErrorType.ObjectRequiredProperty;
    issues.set(param, {
      message: missing ? "Required." : error.message,
      param,
      ...(missing ? { code: "missing_field" as const } : {}),
    });
  }
  return [...issues.values()];
}

const compiled = new WeakMap<TSchema, TypeCheck<TSchema>>();

/** Issues of a value against a schema, whose checker is compiled at its first use; empty where it fits. */
export function check(schema: TSchema, value: unknown): Issue[] {
  let checker = compiled.get(schema);
  if (checker === undefined) {
    checker = TypeCompiler.Compile(schema);
    compiled.set(schema, checker);
  }
  return checker.Check(value) ? [] : issuesOf(checker.Errors(value));
}

/** An issue's `param`: a field, and what is at fault in it: an entry of a list, a name in that entry, or any name. */
const PLACE = /^(\w+)(?:\[(\d+)\](?:\.(\w+))?|\.(.+))?$/s;

/**
 * The object without what issues of its shape name, for rules to look at all the rest: fields and names are gone, entries
 * of lists are holes, which `forEach` passes over. The value itself stays as it is.
 */
export function withoutFaults(value: object, issues: readonly Issue[]): Record<string, unknown> {
  const rest: Record<string, unknown> = { ...value };
  const copies = new Set<unknown>();
  const ownCopy = (holder: Record<string, unknown>, name: string): Record<string, unknown> => {
    const held = holder[name];
    if (!copies.has(held)) holder[name] = Array.isArray(held) ? held.slice() : { ...(held as object) };
    copies.add(holder[name]);
    return holder[name] as Record<string, unknown>;
  };
  for (const { param } of issues) {
    const [, field = param, index, part, name] = PLACE.exec(param) ?? [];
    const key = index ?? name;
    if (key === undefined) delete rest[field];
    else if (part === undefined) delete ownCopy(rest, field)[key];
    else delete ownCopy(ownCopy(rest, field), key)[part];
  }
  return rest;
}

/** Whether objects and lists lie in one another more than `depth` deep, the value itself counted. */
export function isDeeper(value: unknown, depth: number): boolean {
  if (typeof value !== "object" || value === null) return false;
  return depth === 0 || Object.values(value).some((item) => isDeeper(item, depth - 1));
}
