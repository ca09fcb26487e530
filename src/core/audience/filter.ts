import { invalid } from "../errors.ts";
import { DAY_MS } from "../time/units.ts";
import { DAY_OR_TIME_EXPECTED, parseDay, parseTime } from "../time/date-times.ts";
import { isObject } from "../validation.ts";
import {
  MAX_STRING_CHARS,
  type PropertyShape,
  type PropertyType,
  type PropertyValue,
  readValue,
} from "./properties.ts";
import { CHOICE_NAMES, type TopicShape } from "./topics.ts";

/*
 * The language of segments. A team that writes to some of its contacts would miss it: `q` and `subscribed` of the list find
 * strings, not who pays and joined this month. Simpler is one list of conditions, which cannot say "this, but none of those".
 */

/** Maximum depth and number of conditions of a filter. */
export const MAX_DEPTH = 5;
export const MAX_CONDITIONS = 50;
/** Maximum number of segments in a project. */
export const MAX_SEGMENTS = 200;
/** Largest number of days that a filter counts back from now. */
const MAX_DAYS = 36_500;

/** A filter as a client gives it. `readFilter` checks it. */
export type Filter = Readonly<Record<string, unknown>>;

/** How a value is compared. Strings are compared without regard to the case of ASCII letters, but by `eq` and `ne`. */
export type Operator =
  | ("eq" | "ne" | "set" | "unset")
  | ("contains" | "startsWith" | "endsWith")
  | ("gt" | "gte" | "lt" | "lte")
  | ("withinDays" | "olderThanDays");

/** The subject of a condition: a property by its name, a topic by its id, or a field of the contact. */
export type Subject =
  | { kind: "property"; name: string; type: PropertyType }
  | { kind: "topic"; id: string; defaultSubscribed: boolean }
  | { kind: (typeof FIELDS)[number] };

/** A checked filter. Times are milliseconds for fields, and ISO 8601 for properties. */
export type Condition =
  | { join: "all" | "any" | "not"; of: readonly Condition[] }
  | { subject: Subject; op: Operator; value: PropertyValue | null };

/** The properties and topics that a filter may name, and the time of the question, milliseconds. */
export interface FilterContext {
  shapes: readonly PropertyShape[];
  topics: readonly TopicShape[];
  now: number;
}

const PRESENCE: readonly Operator[] = ["set", "unset"];
const EQUALITY: readonly Operator[] = ["eq", "ne"];
const TEXT: readonly Operator[] = [...EQUALITY, "contains", "startsWith", "endsWith"];
const ORDER: readonly Operator[] = ["gt", "gte", "lt", "lte"];
const TIME: readonly Operator[] = [...ORDER, "withinDays", "olderThanDays"];
const OPERATORS: Readonly<Record<PropertyType, readonly Operator[]>> = {
  string: [...TEXT, ...PRESENCE],
  number: [...EQUALITY, ...ORDER, ...PRESENCE],
  boolean: [...EQUALITY, ...PRESENCE],
  date: [...EQUALITY, ...TIME, ...PRESENCE],
};
const TIMES = ["createdAt", "lastSentAt", "lastOpenedAt", "lastClickedAt"] as const;
/** Fields of a contact that a filter may name. */
export const FIELDS = ["email", "subscribed", ...TIMES] as const;

/**
 * Checks a filter: `all`, `any` or `not` of a list of filters, or a condition on a `property`, a `topic` or a `field`.
 * @param param the path of the filter in the request
 * @throws AppError 422 at the first fault, with what to write instead
 */
export function readFilter(filter: Filter, context: FilterContext, param = "filter"): Condition {
  const counted = { left: MAX_CONDITIONS };
  return read(filter, { ...context, counted }, param, 1);
}

type Reading = FilterContext & { counted: { left: number } };

function read(filter: unknown, reading: Reading, param: string, depth: number): Condition {
  if (!isObject(filter))
    throw invalid(param, 'must be an object, such as {"property": "plan", "op": "eq", "value": "pro"}.');
  const join = (["all", "any", "not"] as const).find((name) => name in filter);
  if (join === undefined) return readCondition(filter, reading, param);
  const of = filter[join];
  if (Object.keys(filter).length > 1) throw invalid(param, `must have nothing but "${join}".`);
  if (depth > MAX_DEPTH) throw invalid(param, `must be nested at most ${MAX_DEPTH} deep.`);
  if (!Array.isArray(of) || of.length === 0 || of.length > MAX_CONDITIONS)
    throw invalid(`${param}.${join}`, `must be a list of 1 to ${MAX_CONDITIONS} filters.`);
  return { join, of: of.map((one, at) => read(one, reading, `${param}.${join}[${at}]`, depth + 1)) };
}

function readCondition(filter: Record<string, unknown>, reading: Reading, param: string): Condition {
  reading.counted.left--;
  if (reading.counted.left < 0)
    throw invalid(param, `is one more than the ${MAX_CONDITIONS} conditions of a filter.`);
  const subject = subjectOf(filter, reading, param);
  const allowed = operatorsOf(subject);
  const op = allowed.find((one) => one === filter.op);
  if (op === undefined)
    throw invalid(`${param}.op`, `must be one of ${allowed.map((one) => `"${one}"`).join(", ")}.`);
  const { property: _, topic: __, field: ___, op: ____, value: _____, ...others } = filter;
  const [other] = Object.keys(others);
  if (other !== undefined) throw invalid(`${param}.${other}`, "is not a part of a condition.");
  return { subject, op, value: comparedValue(subject, op, filter.value, reading.now, `${param}.value`) };
}

function subjectOf(
  { property, topic, field }: Record<string, unknown>,
  { shapes, topics }: Reading,
  param: string,
): Subject {
  const given = [property, topic, field].filter((one) => one !== undefined);
  if (given.length !== 1)
    throw invalid(param, 'must have one of "property", "topic" and "field", or "all", "any" or "not".');
  if (field !== undefined) {
    const kind = FIELDS.find((name) => name === field);
    if (kind === undefined)
      throw invalid(`${param}.field`, `must be one of ${FIELDS.map((name) => `"${name}"`).join(", ")}.`);
    return { kind };
  }
  if (topic !== undefined) {
    const found = topics.find(({ id }) => id === topic);
    if (found === undefined) throw invalid(`${param}.topic`, "must be the id of a topic of this project.");
    return { kind: "topic", id: found.id, defaultSubscribed: found.defaultSubscribed };
  }
  const found = shapes.find(({ name }) => name === property);
  if (found === undefined)
    throw invalid(`${param}.property`, "must be the name of a property. Define it first.");
  return { kind: "property", ...found };
}

function operatorsOf(subject: Subject): readonly Operator[] {
  switch (subject.kind) {
    case "property":
      return OPERATORS[subject.type];
    case "email":
      return TEXT;
    case "createdAt":
      return TIME;
    case "lastSentAt":
    case "lastOpenedAt":
    case "lastClickedAt":
      return [...TIME, ...PRESENCE];
    case "topic":
    case "subscribed":
      return EQUALITY;
  }
}

function comparedValue(
  subject: Subject,
  op: Operator,
  value: unknown,
  now: number,
  param: string,
): PropertyValue | null {
  if (PRESENCE.includes(op)) {
    if (value !== undefined) throw invalid(param, `must be left out with "${op}".`);
    return null;
  }
  if (op === "withinDays" || op === "olderThanDays") {
    if (typeof value !== "number" || !(value >= 0 && value <= MAX_DAYS))
      throw invalid(param, `must be a number of days from 0 to ${MAX_DAYS}.`);
    const since = now - value * DAY_MS;
    return subject.kind === "property" ? new Date(since).toISOString() : since;
  }
  switch (subject.kind) {
    case "property":
      return readValue(subject.type, value, param);
    case "subscribed":
      return readValue("boolean", value, param);
    case "topic": {
      const choice = CHOICE_NAMES.findIndex((name) => name === value);
      if (choice < 0) throw invalid(param, 'must be "subscribed" or "unsubscribed".');
      return choice;
    }
    case "createdAt":
    case "lastSentAt":
    case "lastOpenedAt":
    case "lastClickedAt": {
      const at = typeof value === "string" ? (parseDay(value) ?? parseTime(value)) : null;
      if (at === null) throw invalid(param, DAY_OR_TIME_EXPECTED);
      return at;
    }
    case "email": {
      const text = readValue("string", value, param);
      if (text === "") throw invalid(param, `must be a string of 1 to ${MAX_STRING_CHARS} characters.`);
      return String(text).toLowerCase();
    }
  }
}
