import { typingErrors } from "./typing-errors.ts";

/** Maximum characters of a name that is compared. No field of ours is that long. */
const MAX_NAME_CHARS = 64;

/** Returns the field that a name resembles: in another case, with `_` or `-`, or with one typing error. Null if there is none. */
export function nearField(name: string, fields: readonly string[]): string | null {
  if (name.length > MAX_NAME_CHARS) return null;
  const plain = plainName(name);
  return (
    fields.find((field) => plainField(field) === plain) ??
    fields.find((field) => isOneErrorAway(plain, plainField(field))) ??
    null
  );
}

/** Returns a name without the marks and cases in which products write the same one differently. */
export function plainName(name: string): string {
  return name.replaceAll(/[_-]/g, "").toLowerCase();
}

/** The plain names of our fields. Each name in a body is compared with them. */
const plainFields = new Map<string, string>();

function plainField(field: string): string {
  const plain = plainFields.get(field) ?? plainName(field);
  plainFields.set(field, plain);
  return plain;
}

function isOneErrorAway(name: string, field: string): boolean {
  return Math.abs(name.length - field.length) <= 1 && typingErrors(name, field) <= 1;
}
