import type { Stream } from "../../core/messages/send-item.ts";
import { IDEMPOTENCY_KEY } from "../../core/idempotency-key.ts";
import { isObject } from "../../core/validation.ts";
import { invalid, type Issue, validationError } from "../../core/errors.ts";
import { tagIssues } from "../../core/messages/send-rules.ts";
import { readSchedule } from "../../core/time/schedule.ts";
import { decodedText, MAX_HEADER_VALUE_CHARS } from "../../mail/reading/header-block.ts";
import { fieldValue, type RawField } from "../../mail/reading/raw-headers.ts";

/** The requests that the control fields of a submitted message make. */
export interface Controls {
  idempotencyKey: string | null;
  /** Id or external id of a project. */
  project: string | null;
  tags: { name: string; value: string }[];
  /** Id or slug of a template. */
  template: string | null;
  data: Record<string, unknown> | null;
  /** Milliseconds; null: send now. */
  scheduledAt: number | null;
  /** Null: as the project says. */
  track: boolean | null;
  unsubscribeLink: boolean;
  /** Null: as the message's own fields say. */
  stream: Stream | null;
}

export interface ControlLimits {
  maxScheduleDays: number;
}

/** Names of the control fields in lower case, as they are shown in errors. */
const NAMES = {
  "idempotency-key": "Idempotency-Key",
  "x-postrider-project": "X-Postrider-Project",
  "x-postrider-template": "X-Postrider-Template",
  "x-postrider-data": "X-Postrider-Data",
  "x-postrider-schedule": "X-Postrider-Schedule",
  "x-postrider-track": "X-Postrider-Track",
  "x-postrider-unsubscribe": "X-Postrider-Unsubscribe",
  "x-postrider-stream": "X-Postrider-Stream",
} as const;
type ControlName = keyof typeof NAMES;

const TAG_FIELD = "x-postrider-tag";
const MAX_NAME_CHARS = 64;
/** Maximum number of levels of nested values in X-Postrider-Data, as in a JSON body. */
const MAX_DATA_DEPTH = 32;

/**
 * Reads the control fields.
 * @param now milliseconds
 * @throws AppError 422 if one is malformed, or given twice
 */
export function readControls(fields: readonly RawField[], limits: ControlLimits, now: number): Controls {
  const values = valuesOf(fields);
  const text = (name: ControlName): string | null => values.get(name) ?? null;
  const template = bounded(text("x-postrider-template"), "x-postrider-template");
  return {
    idempotencyKey: idempotencyKey(text("idempotency-key")),
    project: bounded(text("x-postrider-project"), "x-postrider-project"),
    tags: tagsIn(fields),
    template,
    data: dataOf(text("x-postrider-data"), template),
    scheduledAt: scheduleOf(text("x-postrider-schedule"), limits, now),
    track: switchOf(text("x-postrider-track"), "x-postrider-track"),
    unsubscribeLink: switchOf(text("x-postrider-unsubscribe"), "x-postrider-unsubscribe") ?? false,
    stream: streamIn(text("x-postrider-stream")),
  };
}

function streamIn(value: string | null): Stream | null {
  if (value === null || value === "transactional" || value === "bulk") return value;
  return refuse("x-postrider-stream", "must be transactional or bulk.");
}

function refuse(name: ControlName, expected: string): never {
  throw invalid(NAMES[name], expected);
}

function valuesOf(fields: readonly RawField[]): Map<string, string> {
  const values = new Map<string, string>();
  for (const field of fields) {
    if (!Object.hasOwn(NAMES, field.name)) continue;
    const name = field.name as ControlName;
    if (values.has(name)) refuse(name, "must not be given twice.");
    values.set(name, textOf(field, name));
  }
  return values;
}

function textOf(field: RawField, name: ControlName | typeof TAG_FIELD): string {
  const value = fieldValue(field);
  if (value.length > MAX_HEADER_VALUE_CHARS)
    throw invalid(
      name === TAG_FIELD ? "X-Postrider-Tag" : NAMES[name],
      `must have at most ${MAX_HEADER_VALUE_CHARS} characters.`,
    );
  return decodedText(value).trim();
}

function idempotencyKey(value: string | null): string | null {
  if (value === null || IDEMPOTENCY_KEY.test(value)) return value;
  return refuse("idempotency-key", "must be 1 to 256 printable characters.");
}

function bounded(value: string | null, name: ControlName): string | null {
  if (value === null || (value !== "" && value.length <= MAX_NAME_CHARS)) return value;
  return refuse(name, `must have 1 to ${MAX_NAME_CHARS} characters.`);
}

function tagsIn(fields: readonly RawField[]): Controls["tags"] {
  const issues: Issue[] = [];
  const tags = fields
    .filter(({ name }) => name === TAG_FIELD)
    .map((field) => {
      const value = textOf(field, TAG_FIELD);
      const equals = value.indexOf("=");
      return { name: value.slice(0, Math.max(0, equals)).trim(), value: value.slice(equals + 1).trim() };
    });
  issues.push(...tagIssues(tags));
  if (issues.length > 0)
    throw invalid(
      "X-Postrider-Tag",
      "must be name=value, at most 20 times, each of 1 to 256 letters, digits and _ . -",
    );
  return tags;
}

function dataOf(value: string | null, template: string | null): Record<string, unknown> | null {
  if (value === null) return null;
  if (template === null) refuse("x-postrider-data", "needs X-Postrider-Template.");
  if (depthOf(value) > MAX_DATA_DEPTH)
    refuse("x-postrider-data", `must have at most ${MAX_DATA_DEPTH} levels.`);
  const data = parsed(value);
  if (!isObject(data)) refuse("x-postrider-data", 'must be a JSON object, such as {"name":"Ana"}.');
  return data;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Returns the deepest level of brackets outside of strings. */
function depthOf(json: string): number {
  let depth = 0;
  let most = 0;
  for (const [sign] of json.replace(/"(?:[^"\\]|\\.)*"/g, "").matchAll(/[[\]{}]/g)) {
    depth += sign === "[" || sign === "{" ? 1 : -1;
    most = Math.max(most, depth);
  }
  return most;
}

function scheduleOf(value: string | null, { maxScheduleDays }: ControlLimits, now: number): number | null {
  if (value === null) return null;
  const at = readSchedule(value, maxScheduleDays, now);
  if (typeof at !== "number") throw validationError([{ ...at, param: NAMES["x-postrider-schedule"] }]);
  return at > now ? at : null;
}

function switchOf(value: string | null, name: ControlName): boolean | null {
  if (value === null) return null;
  const word = value.toLowerCase();
  if (word !== "on" && word !== "off") refuse(name, "must be on or off.");
  return word === "on";
}
