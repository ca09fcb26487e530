import type { TSchema } from "@sinclair/typebox";
import { type Answer, isRaw, type Warning } from "../routing/answer.ts";
import { nearField } from "../../core/field-names.ts";

type JsonObject = Record<string, unknown>;

/**
 * Returns a function that adds to an answer its own warnings and those of unknown fields in the body. If there are
 * none, the answer stays as it is. Equal bodies always get equal warnings, so a repeated request does too.
 */
export function warner(schema: TSchema | undefined, body: unknown): (answer: Answer) => Answer {
  let unknown: UnknownField[] | null = null;
  return ({ warnings: own = [], ...answer }) => {
    const shown = answer.body;
    if (answer.status >= 300 || typeof shown !== "object" || shown === null || isRaw(shown)) return answer;
    unknown ??= schema === undefined ? [] : unknownFields(schema, body);
    const fields = answer.status === 207 ? unknown.filter(({ param }) => !IN_ITEM.test(param)) : unknown;
    const results = answer.status === 207 ? withItemWarnings(shown as JsonObject, unknown) : shown;
    return { ...answer, body: withWarnings(results, [...own, ...fields.map(toWarning)]) };
  };
}

/** The path of a field in an item of a batch. */
const IN_ITEM = /^\w+\[(\d+)\]\.(.+)$/s;

/** Puts the warnings of each item of a batch into its result. */
function withItemWarnings(body: JsonObject, unknown: readonly UnknownField[]): JsonObject {
  const ofItem = new Map<number, Warning[]>();
  for (const { param, meant } of unknown) {
    const [, index, name = ""] = IN_ITEM.exec(param) ?? [];
    if (index === undefined) continue;
    const at = Number(index);
    ofItem.set(at, [...(ofItem.get(at) ?? []), toWarning({ param: name, meant })]);
  }
  if (ofItem.size === 0 || !Array.isArray(body.data)) return body;
  return { ...body, data: body.data.map((result, at) => withWarnings(result, ofItem.get(at) ?? [])) };
}

/** Returns a body, or the result of a batch item, with warnings in addition to its own. */
export function withWarnings(body: object, warnings: readonly Warning[]): JsonObject {
  const own = "warnings" in body ? (body.warnings as Warning[]) : [];
  return warnings.length === 0 ? { ...body } : { ...body, warnings: [...own, ...warnings] };
}

function toWarning({ param, meant }: UnknownField): Warning {
  return {
    param,
    message: `"${param}" is not a field, so it was ignored. Did you mean "${meant}"?`,
  };
}

/** A field of a body that the schema does not have, and the field that it resembles. */
export interface UnknownField {
  /** JSON path such as `emails[0].scheduled_at`. */
  param: string;
  meant: string;
}

/** Maximum number of unknown fields in one answer. */
export const MAX_UNKNOWN_FIELDS = 50;
/** Maximum number of objects and unknown names checked in one body. */
export const MAX_STEPS = 2_000;

/**
 * Returns the fields that the schema ignores and that resemble one of its fields: in another case, with `_` or `-`,
 * or with one typing error. `scheduled_at` must not send at once in silence.
 */
export function unknownFields(schema: TSchema, body: unknown): UnknownField[] {
  const found: UnknownField[] = [];
  let steps = MAX_STEPS;
  const walk = (part: TSchema, value: unknown, path: string): void => {
    if (typeof value !== "object" || value === null) return;
    const isList = Array.isArray(value);
    const { items, properties } = variantOf(part, isList ? "array" : "object");
    // A value of another kind than the schema's is refused elsewhere, or is one item of a batch.
    if ((isList ? items : properties) === undefined) return;
    for (const name of isList ? value.keys() : Object.keys(value)) {
      if (found.length >= MAX_UNKNOWN_FIELDS || steps-- <= 0) return;
      const field = (value as Record<string | number, unknown>)[name];
      if (isList) walk(items, field, `${path}[${name}]`);
      else visit(properties, String(name), field, path === "" ? String(name) : `${path}.${name}`);
    }
  };
  const visit = (fields: Record<string, TSchema>, name: string, value: unknown, param: string): void => {
    const field = Object.hasOwn(fields, name) ? fields[name] : undefined;
    const meant = field === undefined ? nearField(name, Object.keys(fields)) : null;
    if (field !== undefined) walk(field, value, param);
    else if (meant !== null) found.push({ param, meant });
  };
  walk(schema, body, "");
  return found;
}

/** Returns the variant of a schema for a list or an object. A schema that takes anything names no fields. */
function variantOf(schema: TSchema, type: "array" | "object"): TSchema {
  const variants: readonly TSchema[] = schema.anyOf ?? [schema];
  return variants.find((variant) => variant.type === type) ?? schema;
}
