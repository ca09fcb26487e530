import { invalid, type Issue, validationError } from "../errors.ts";
import { DAY_OR_TIME_EXPECTED, parseDay, parseTime } from "../time/date-times.ts";
import { isLonger } from "../validation.ts";

/** Types of a contact's property. A `date` is a time, shown as ISO 8601. */
export const PROPERTY_TYPES = ["string", "number", "boolean", "date"] as const;
export type PropertyType = (typeof PROPERTY_TYPES)[number];

/** The value of a property, as it is stored and shown. */
export type PropertyValue = string | number | boolean;

/** A property that contacts may have. */
export interface PropertyShape {
  name: string;
  type: PropertyType;
}

/** Maximum number of properties in a project. */
export const MAX_PROPERTIES = 100;
/** Maximum characters of a string. */
export const MAX_STRING_CHARS = 1000;
/** Maximum bytes of a contact's properties, as JSON. */
export const MAX_PROPERTIES_BYTES = 8 * 1024;

const READERS: Readonly<Record<PropertyType, (value: unknown) => PropertyValue | null>> = {
  string: (value) =>
    typeof value === "string" && !value.includes("\0") && !isLonger(value, MAX_STRING_CHARS)
      ? value.toWellFormed()
      : null,
  number: (value) =>
    typeof value === "number" &&
    Number.isFinite(value) &&
    (!Number.isInteger(value) || Number.isSafeInteger(value))
      ? value
      : null,
  boolean: (value) => (typeof value === "boolean" ? value : null),
  date(value) {
    const at = typeof value === "string" ? (parseDay(value) ?? parseTime(value)) : null;
    return at === null ? null : new Date(at).toISOString();
  },
};

const EXPECTED: Readonly<Record<PropertyType, string>> = {
  string: `must be a string of at most ${MAX_STRING_CHARS} characters without NUL.`,
  number: "must be a number. Send whole numbers beyond 2^53 as strings.",
  boolean: "must be true or false.",
  date: DAY_OR_TIME_EXPECTED,
};

/** Returns a value of the type as it is stored. @throws AppError 422 at `param` if it has another type */
export function readValue(type: PropertyType, value: unknown, param: string): PropertyValue {
  const read = READERS[type](value);
  if (read === null) throw invalid(param, EXPECTED[type]);
  return read;
}

/** Values by the names of their properties. null removes a value. */
export type GivenValues = Readonly<Record<string, PropertyValue | null>>;

/**
 * Returns given values as they are stored.
 * @throws AppError 422 with all issues: a property that does not exist, a value of another type
 */
export function readValues(shapes: readonly PropertyShape[], given: GivenValues): GivenValues {
  const types = new Map(shapes.map(({ name, type }) => [name, type]));
  const issues: Issue[] = [];
  const values = Object.entries(given).map(([name, value]) => {
    const type = types.get(name);
    const param = `properties.${name}`;
    if (type === undefined)
      issues.push({
        param,
        message: "Contacts have no property of this name. Make it first.",
      });
    else if (value !== null && READERS[type](value) === null) issues.push({ param, message: EXPECTED[type] });
    return [name, type === undefined || value === null ? null : READERS[type](value)] as const;
  });
  if (issues.length > 0) throw validationError(issues);
  return Object.fromEntries(values);
}

/** Returns the values after a change. Values that are null go. */
export function changedValues(
  before: Readonly<Record<string, PropertyValue>>,
  given: GivenValues,
): Record<string, PropertyValue> {
  const all: [string, PropertyValue | null][] = Object.entries({ ...before, ...given });
  return Object.fromEntries(all.filter((entry): entry is [string, PropertyValue] => entry[1] !== null));
}

/** Error message for values that are too large. */
export const OVERSIZED = `must have at most ${MAX_PROPERTIES_BYTES} bytes as JSON, all values of the contact together.`;

/** Throws 422 if the values have more bytes than a contact may have. */
export function checkValuesSize(values: Readonly<Record<string, PropertyValue>>): void {
  if (Buffer.byteLength(JSON.stringify(values)) > MAX_PROPERTIES_BYTES)
    throw invalid("properties", OVERSIZED);
}
