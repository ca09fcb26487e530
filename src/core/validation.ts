import { type TSchema, TypeRegistry } from "@sinclair/typebox";
import { type TypeCheck, TypeCompiler } from "@sinclair/typebox/compiler";
import { type ValueError, ValueErrorType } from "@sinclair/typebox/errors";
import type { Issue } from "./errors.ts";
import { expectationOf } from "./expectations.ts";

/** Maximum number of issues in one answer. A limit keeps a hostile body from making a long answer. */
export const MAX_ISSUES = 50;

/** Turns `/to/0/email` into `to[0].email`. */
function paramOf(pointer: string): string {
  let out = "";
  for (const step of pointer.split("/").slice(1)) {
    const name = step.replaceAll("~1", "/").replaceAll("~0", "~");
    if (/^\d+$/.test(name)) out += `[${name}]`;
    else out += out === "" ? name : `.${name}`;
  }
  return out;
}

type Breach = Pick<ValueError, "path" | "type" | "schema" | "value" | "errors">;

/**
 * Returns whether a string has more than `maxChars` characters, as JSON Schema counts them (RFC 8259 §1). A
 * character beyond the basic plane counts as one, although JavaScript counts two.
 */
export function isLonger(text: string, maxChars: number): boolean {
  return text.length > maxChars && (text.length > 2 * maxChars || [...text].length > maxChars);
}

/** Returns whether the text fits, although it was refused for its length in UTF-16 units. */
function isShortEnough({ value, schema: { maxLength } }: Breach): boolean {
  return typeof value === "string" && !isLonger(value, maxLength);
}

/**
 * Yields the errors that count. If a value has the type of one variant of a union, such as an object, yields the errors within
 * it, not the union's.
 */
function* breachesOf(errors: Iterable<Breach>): Generator<Breach> {
  for (const error of errors) {
    if (error.type === ValueErrorType.StringMaxLength && isShortEnough(error)) continue;
    if (error.type === ValueErrorType.Union) yield* breachOfUnion(error);
    else yield error;
  }
}

function* breachOfUnion(error: Breach): Generator<Breach> {
  const variants = error.errors.map((variant) => firstOf(breachesOf(variant)));
  if (variants.some((breaches) => breaches.length === 0)) return;
  const [within, ...others] = variants.filter(([first]) => first !== undefined && first.path !== error.path);
  if (within === undefined || others.length > 0) yield error;
  else yield* within;
}

/**
 * Maximum number of errors read from one variant of a union. A place has at most two, so they fill the list of
 * issues.
 */
const MAX_BREACHES = 2 * MAX_ISSUES;

/** Returns the first errors of a variant, because a list in it may have two hundred thousand. */
function firstOf(breaches: Iterable<Breach>): Breach[] {
  const first: Breach[] = [];
  for (const breach of breaches) {
    first.push(breach);
    if (first.length >= MAX_BREACHES) break;
  }
  return first;
}

/** Returns the errors as issues, one per place, at most `MAX_ISSUES`. */
function issuesOf(errors: Iterable<Breach>): Issue[] {
  const issues = new Map<string, Issue>();
  for (const { path, type, schema } of breachesOf(errors)) {
    const param = paramOf(path);
    if (issues.has(param)) continue;
    if (issues.size >= MAX_ISSUES) break;
    const expected = expectationOf(schema);
    issues.set(
      param,
      type === ValueErrorType.ObjectRequiredProperty
        ? { message: `is required: ${expected}.`, param, code: "missing_field" }
        : { message: `must be ${expected}.`, param },
    );
  }
  return [...issues.values()];
}

/** Kind of a schema for bytes as a list of numbers. It is checked in one loop, and has one error, however many bytes there are. */
export const BYTE_LIST = "ByteList";

function isByteList({ maxItems }: { maxItems: number }, value: unknown): boolean {
  if (!Array.isArray(value) || value.length > maxItems) return false;
  return value.every((byte) => Number.isInteger(byte) && byte >= 0 && byte <= 255);
}

const compiled = new WeakMap<TSchema, TypeCheck<TSchema>>();

/** Returns the issues of a value, empty if it fits the schema. Compiles the schema's checker at the first use. */
export function check(schema: TSchema, value: unknown): Issue[] {
  let checker = compiled.get(schema);
  if (checker === undefined) {
    if (!TypeRegistry.Has(BYTE_LIST)) TypeRegistry.Set(BYTE_LIST, isByteList);
    checker = TypeCompiler.Compile(schema);
    compiled.set(schema, checker);
  }
  return checker.Check(value) ? [] : issuesOf(checker.Errors(value));
}

/** Parts of an issue's `param`: a field, then an entry of a list and a name in that entry, or any name. */
const PARAM = /^(\w+)(?:\[(\d+)\](?:\.(\w+))?|\.(.+))?$/s;

/**
 * Returns a copy of the object without the values that the issues name, so that rules can check the rest. Fields and names are
 * left out. Entries of lists become holes, which `forEach` skips. The value itself does not change.
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
    const [, field = param, index, part, name] = PARAM.exec(param) ?? [];
    const key = index ?? name;
    if (key === undefined) delete rest[field];
    else if (part === undefined) delete ownCopy(rest, field)[key];
    else delete ownCopy(ownCopy(rest, field), key)[part];
  }
  return rest;
}

/**
 * Returns the fields of a checked object that its schema names. Handlers copy bodies into rows, and another field could set the
 * column of the row's project.
 */
export function namedFields({ properties }: TSchema, value: unknown): unknown {
  if (properties === undefined || !isObject(value)) return value;
  const isNamed = (name: string) => Object.hasOwn(properties, name);
  if (Object.keys(value).every(isNamed)) return value;
  return Object.fromEntries(Object.entries(value).filter(([name]) => isNamed(name)));
}

/** Returns whether a value is a JSON object, which a list is not. */
export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Returns whether objects and lists are nested more than `depth` deep. The value itself counts. */
export function isDeeper(value: unknown, depth: number): boolean {
  if (typeof value !== "object" || value === null) return false;
  return depth === 0 || Object.values(value).some((item) => isDeeper(item, depth - 1));
}

/** Bytes counted for a value and its separator, besides its text. */
const VALUE_BYTES = 4;

/** Returns whether a JSON value takes more than about `bytes` as JSON without escapes. Stops reading once it does. */
export function isLarger(value: unknown, bytes: number): boolean {
  return bytesLeft(value, bytes) < 0;
}

function bytesLeft(value: unknown, bytes: number): number {
  let left = bytes - VALUE_BYTES;
  if (typeof value === "string")
    return left - (value.length > left ? value.length : Buffer.byteLength(value));
  if (Array.isArray(value)) {
    for (let at = 0; at < value.length && left >= 0; at++) left = bytesLeft(value[at], left);
    return left;
  }
  if (!isObject(value)) return left;
  for (const key in value) {
    if (left < 0) return left;
    left = bytesLeft(value[key], left - key.length - VALUE_BYTES);
  }
  return left;
}

/** Message for a number that JavaScript cannot keep as it was sent. */
export const INEXACT_NUMBER =
  'must be a finite number, and a whole number within 2^53. Send a larger one as a string, such as "12345678901234567890".';

/**
 * Returns the path of the first number that cannot be kept as the client sent it. Such a number is too large (`1e400`),
 * or a whole number that may have lost digits. Returns null if there is none.
 */
export function findInexactNumber(value: unknown, path: string): string | null {
  if (typeof value === "number")
    return Number.isSafeInteger(value) || (Number.isFinite(value) && !Number.isInteger(value)) ? null : path;
  if (typeof value !== "object" || value === null) return null;
  for (const [key, item] of Object.entries(value)) {
    const found = findInexactNumber(item, Array.isArray(value) ? `${path}[${key}]` : `${path}.${key}`);
    if (found !== null) return found;
  }
  return null;
}
