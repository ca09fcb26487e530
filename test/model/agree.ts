/** An answer, or a row, differs from the model. */
export function differ(sentence: string): never {
  throw new Error(sentence);
}

/** A condition that a value must meet, in place of the value itself. */
export type Condition = (actual: unknown) => boolean;

const NO_MEMBERS: Readonly<Record<string, unknown>> = {};

/** An object of unknown members, empty if it is not an object. */
export function membersOf(value: unknown): Readonly<Record<string, unknown>> {
  return isObject(value) ? value : NO_MEMBERS;
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null;
}

/** The items of an array, none if it is not an array. */
export function itemsOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

export function textOf(value: unknown): string {
  return typeof value === "string" ? value : differ(`${JSON.stringify(value)} is no text`);
}

/** Compares an answer with the model. Members that the model does not name may have any value. */
export function agree(actual: unknown, expected: unknown, where: string): void {
  if (isCondition(expected)) {
    if (!expected(actual)) differ(`${where}: ${show(actual)} does not fit`);
  } else if (Array.isArray(expected)) {
    if (!Array.isArray(actual) || actual.length !== expected.length)
      differ(`${where}: ${show(actual)}, the model says ${show(expected)}`);
    expected.forEach((item, at) => {
      agree(actual[at], item, `${where}[${at}]`);
    });
  } else if (typeof expected === "object" && expected !== null) {
    if (typeof actual !== "object" || actual === null) differ(`${where}: ${show(actual)} is no object`);
    for (const [name, value] of Object.entries(expected))
      agree(membersOf(actual)[name], value, `${where}.${name}`);
  } else if (!Object.is(actual, expected))
    differ(`${where}: ${show(actual)}, the model says ${show(expected)}`);
}

function isCondition(value: unknown): value is Condition {
  return typeof value === "function";
}

export function show(value: unknown): string {
  return JSON.stringify(value) ?? "nothing";
}

export const isText: Condition = (value) => typeof value === "string" && value !== "";

/** An id of that prefix. */
export function isIdOf(prefix: string): Condition {
  return (value) => typeof value === "string" && value.startsWith(`${prefix}_`);
}

/** A time in the API's format. */
export function shownTime(ms: number): string {
  return new Date(ms).toISOString();
}

export function shownTimeOrNull(ms: number | null): string | null {
  return ms === null ? null : shownTime(ms);
}
