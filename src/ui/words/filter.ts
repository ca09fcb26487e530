import type { ContactProperty, Topic } from "../api/types.ts";
import { capitalized } from "./case.ts";
import { parseData } from "./sample-data.ts";

/** A filter of contacts, as the API takes it. */
export type Filter = Readonly<Record<string, unknown>>;

/** How the conditions of a list are joined. `not`: none of them holds. */
export type Join = "all" | "any" | "not";
export const JOINS: readonly Join[] = ["all", "any", "not"];

/** What contacts can be filtered by: a property, a topic or a field, each as `kind:name`, and the type of its values. */
export interface Subject {
  id: string;
  /** As a sentence has it. */
  name: string;
  type: "string" | "number" | "boolean" | "date" | "topic" | "email" | "time" | "moment" | "subscribed";
}

/** The properties and topics of a project, oldest first. */
export interface Audience {
  properties: readonly ContactProperty[];
  topics: readonly Topic[];
}

const FIELDS: readonly Subject[] = [
  { id: "field:email", name: "address", type: "email" },
  { id: "field:createdAt", name: "created", type: "time" },
  { id: "field:subscribed", name: "subscribed", type: "subscribed" },
  { id: "field:lastSentAt", name: "last mailed", type: "moment" },
  { id: "field:lastOpenedAt", name: "last opened", type: "moment" },
  { id: "field:lastClickedAt", name: "last clicked", type: "moment" },
];

/** Returns what contacts can be filtered by: their fields, and the properties and topics of the project. */
export function subjectsOf({ properties, topics }: Audience): readonly Subject[] {
  return [
    ...FIELDS,
    ...properties.map(({ name, type }) => ({ id: `property:${name}`, name, type })),
    ...topics.map(({ id, name }) => ({ id: `topic:${id}`, name: `“${name}”`, type: "topic" as const })),
  ];
}

/** A condition as a form has it. The value is a string, whatever its type. */
export interface FormCondition {
  subject: string;
  op: string;
  value: string;
}

/** A row of a form: a condition, or a filter that the form does not take apart. */
export type FormRow = FormCondition | { kept: Filter };

/** A filter as a form has it: one list of conditions. */
export interface FilterForm {
  join: Join;
  rows: readonly FormRow[];
}

export const EMPTY_FORM: FilterForm = { join: "all", rows: [] };

const EQUALITY = ["eq", "ne"];
const PRESENCE = ["set", "unset"];
const TEXT = [...EQUALITY, "contains", "startsWith", "endsWith"];
const ORDER = ["gt", "gte", "lt", "lte"];
const TIME = ["withinDays", "olderThanDays", "gte", "lt", "gt", "lte"];

/** The operators of each type, the usual one first. A test compares them with those of the API. */
export const OPERATORS: Readonly<Record<Subject["type"], readonly string[]>> = {
  string: [...TEXT, ...PRESENCE],
  number: [...EQUALITY, ...ORDER, ...PRESENCE],
  boolean: [...EQUALITY, ...PRESENCE],
  date: [...TIME, ...EQUALITY, ...PRESENCE],
  topic: EQUALITY,
  email: ["contains", "startsWith", "endsWith", ...EQUALITY],
  time: TIME,
  moment: [...TIME, ...PRESENCE],
  subscribed: EQUALITY,
};

const WORDS: Readonly<Record<string, string>> = {
  eq: "is",
  ne: "is not",
  set: "has a value",
  unset: "has no value",
  contains: "contains",
  startsWith: "starts with",
  endsWith: "ends with",
  gt: "is more than",
  gte: "is at least",
  lt: "is less than",
  lte: "is at most",
};
const TIME_WORDS: Readonly<Record<string, string>> = {
  withinDays: "in the last days:",
  olderThanDays: "more than days ago:",
  gt: "after the start of",
  gte: "on or after",
  lt: "before",
  lte: "until the start of",
};

/** A moment is a time that may not have come. */
const MOMENT_WORDS: Readonly<Record<string, string>> = { set: "at least once", unset: "never" };

/** Returns the words of an operator in a form. */
export function operatorText(op: string, type: Subject["type"]): string {
  const ofTime = type === "date" || isTime(type) ? TIME_WORDS[op] : undefined;
  const ofMoment = type === "moment" ? MOMENT_WORDS[op] : undefined;
  return ofMoment ?? ofTime ?? WORDS[op] ?? op;
}

/** Returns whether values of the type are times of the contact. */
function isTime(type: Subject["type"]): boolean {
  return type === "time" || type === "moment";
}

/** The operators whose condition has no value, and those that count days. */
const VALUELESS: ReadonlySet<string> = new Set(PRESENCE);
export const DAYS: ReadonlySet<string> = new Set(["withinDays", "olderThanDays"]);

/** Returns whether a condition with the operator has a value. */
export function takesValue(op: string): boolean {
  return !VALUELESS.has(op);
}

/** The values that a type has, with their words; null if they are free. */
export function valuesOf(type: Subject["type"]): readonly { value: string; text: string }[] | null {
  switch (type) {
    case "topic":
      return [
        { value: "subscribed", text: "subscribed" },
        { value: "unsubscribed", text: "unsubscribed" },
      ];
    case "boolean":
    case "subscribed":
      return [
        { value: "true", text: "yes" },
        { value: "false", text: "no" },
      ];
    default:
      return null;
  }
}

/** Returns a condition on a subject as a form adds it. */
export function firstCondition({ id, type }: Subject): FormCondition {
  return { subject: id, op: OPERATORS[type][0] ?? "eq", value: valuesOf(type)?.[0]?.value ?? "" };
}

function listOf(filter: Filter): { join: Join; of: readonly Filter[] } | null {
  for (const join of JOINS) {
    const of = filter[join];
    if (Array.isArray(of) && of.every(isFilter)) return { join, of };
  }
  return null;
}

function isFilter(value: unknown): value is Filter {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

const KINDS = ["property", "topic", "field"] as const;

function subjectId(filter: Filter): string | null {
  const kind = KINDS.find((name) => typeof filter[name] === "string");
  return kind === undefined ? null : `${kind}:${filter[kind]}`;
}

/** Returns the filter that a parameter of the URL holds; null if it holds none. */
export function filterInUrl(text: string | null): Filter | null {
  const data = parseData(text ?? "");
  return data === null || Object.keys(data).length === 0 ? null : data;
}

/** Returns a filter as a form. What is nested deeper, or names what is not known, is kept as it is. */
export function formOf(filter: Filter | null, subjects: readonly Subject[]): FilterForm {
  if (filter === null) return EMPTY_FORM;
  const list = listOf(filter) ?? { join: "all", of: [filter] };
  return { join: list.join, rows: list.of.map((one) => rowOf(one, subjects)) };
}

function rowOf(filter: Filter, subjects: readonly Subject[]): FormRow {
  const id = subjectId(filter);
  const subject = subjects.find((one) => one.id === id);
  const { op, value = "" } = filter;
  if (subject === undefined || typeof op !== "string" || !OPERATORS[subject.type].includes(op))
    return { kept: filter };
  return { subject: subject.id, op, value: String(value) };
}

/** Returns whether a row lacks the value that its operator needs. */
export function isIncomplete(row: FormRow): boolean {
  return !("kept" in row) && takesValue(row.op) && row.value.trim() === "";
}

/** Returns the filter of a form; null if it has no rows. */
export function filterOf({ join, rows }: FilterForm, subjects: readonly Subject[]): Filter | null {
  if (rows.length === 0) return null;
  return { [join]: rows.map((row) => ("kept" in row ? row.kept : conditionOf(row, subjects))) };
}

function conditionOf({ subject: id, op, value }: FormCondition, subjects: readonly Subject[]): Filter {
  const at = id.indexOf(":");
  const type = subjects.find((one) => one.id === id)?.type ?? "string";
  const named = { [id.slice(0, at)]: id.slice(at + 1), op };
  return takesValue(op) ? { ...named, value: typed(value, op, type) } : named;
}

/** Returns a value with its type. What is no number stays a string, so that the API says what is wrong with it. */
function typed(value: string, op: string, type: Subject["type"]): unknown {
  if (type === "boolean" || type === "subscribed") return value === "true";
  if (type !== "number" && !DAYS.has(op)) return value;
  const number = Number(value);
  return value.trim() === "" || Number.isNaN(number) ? value : number;
}

/** Returns a filter as a sentence without its first capital: `plan is “pro” and created in the last 30 days`. */
export function filterText(filter: Filter, subjects: readonly Subject[]): string {
  const list = listOf(filter);
  if (list === null) return conditionText(filter, subjects);
  const parts = list.of.map((one) => {
    const text = filterText(one, subjects);
    const inner = listOf(one);
    return inner !== null && (inner.of.length > 1 || inner.join === "not") ? `(${text})` : text;
  });
  if (list.join === "not") return `not ${parts.length === 1 ? parts[0] : `(${parts.join(" or ")})`}`;
  return parts.join(list.join === "all" ? " and " : " or ");
}

/** Returns a filter as a sentence. The name of a property keeps its letters. */
export function filterSentence(filter: Filter, subjects: readonly Subject[]): string {
  const text = filterText(filter, subjects);
  const isName = subjects.some(({ id, name }) => id.startsWith("property:") && text.startsWith(`${name} `));
  return isName ? text : capitalized(text);
}

function conditionText(filter: Filter, subjects: readonly Subject[]): string {
  const id = subjectId(filter);
  const { op, value } = filter;
  if (id === null || typeof op !== "string") return JSON.stringify(filter);
  const { name, type } = subjects.find((one) => one.id === id) ?? {
    name: id.slice(id.indexOf(":") + 1),
    type: "string",
  };
  if (type === "topic")
    return (value === "subscribed") === (op === "eq") ? `gets ${name}` : `does not get ${name}`;
  if (type === "subscribed") return (value === true) === (op === "eq") ? "subscribed" : "unsubscribed";
  const what = name.replace(/^last /, "");
  if (type === "moment" && op === "unset") return `never ${what}`;
  if (type === "moment" && op === "set") return `${what} at least once`;
  if (!takesValue(op)) return `${name} ${operatorText(op, type)}`;
  if (op === "withinDays") return `${name} in the last ${dayCount(value)}`;
  if (op === "olderThanDays") return `${name} more than ${dayCount(value)} ago`;
  const shown =
    typeof value === "string" && type !== "date" && !isTime(type) ? `“${value}”` : shownValue(value);
  return `${name} ${operatorText(op, type)} ${shown}`;
}

function dayCount(value: unknown): string {
  return value === 1 ? "day" : `${shownValue(value)} days`;
}

function shownValue(value: unknown): string {
  if (typeof value === "boolean") return value ? "yes" : "no";
  return typeof value === "string" ? value : JSON.stringify(value);
}
