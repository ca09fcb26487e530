import type { TSchema } from "@sinclair/typebox";
import { nearField } from "../../core/field-names.ts";

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
