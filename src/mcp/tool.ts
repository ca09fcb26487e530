import { type TSchema, Type } from "@sinclair/typebox";
import { validationError } from "../core/errors.ts";
import { check } from "../core/validation.ts";

/** A request to the API, in a tool's words. */
export interface ToolRequest {
  method: "GET" | "POST" | "PATCH";
  /** Below the service's address, with its query. */
  path: string;
  body?: Record<string, unknown>;
}

export interface ToolAnswer {
  status: number;
  body: Record<string, unknown>;
}

/** Sends a request as the agent's key. */
export type CallApi = (request: ToolRequest) => Promise<ToolAnswer>;

/** Arguments of a tool. They have been checked against its schema. */
export type Args = Readonly<Record<string, unknown>>;

/** An action of an agent: one or two requests to the API. */
export interface Tool {
  name: string;
  title: string;
  description: string;
  /** The scopes that the key needs. */
  scopes: readonly string[];
  input: Readonly<Record<string, TSchema>>;
  required?: readonly string[];
  /** True if it changes nothing. */
  readOnly: boolean;
  /** Strangers' words that the answer may hold, as a noun: `email written by other people`. Null: nothing. */
  strangersWords: string | null;
  run(call: CallApi, args: Args): Promise<ToolAnswer>;
}

export function inputSchema({ input, required = [] }: Tool): TSchema {
  const fields = Object.entries(input).map(([name, schema]): [string, TSchema] => [
    name,
    required.includes(name) ? schema : Type.Optional(schema),
  ]);
  return Type.Object(Object.fromEntries(fields), { additionalProperties: false });
}

/** Returns the arguments with numbers and booleans for those that were given as strings: models often write `"10"`. */
export function readArgs({ input }: Tool, given: unknown): unknown {
  if (typeof given !== "object" || given === null) return given;
  return Object.fromEntries(
    Object.entries(given).map(([name, value]) => [
      name,
      Object.hasOwn(input, name) ? unquoted(input[name]?.type, value) : value,
    ]),
  );
}

function unquoted(type: unknown, value: unknown): unknown {
  if (typeof value !== "string") return value;
  if (type === "integer" && /^\d{1,9}$/.test(value)) return Number(value);
  if (type === "boolean" && /^(?:true|false)$/.test(value)) return value === "true";
  return value;
}

/** Maximum number of unknown arguments that an answer names. */
const MAX_UNKNOWN = 20;

/** Returns what is wrong with the arguments of a call, in sentences that tell the agent what to give; "" if nothing is. */
export function faultsOf({ name, input }: Tool, schema: TSchema, args: unknown): string {
  const given = typeof args === "object" && args !== null ? Object.keys(args) : [];
  const unknown = new Set(given.filter((one) => !Object.hasOwn(input, one)));
  const issues = check(schema, args).filter(({ param }) => !unknown.has(param));
  const takes = `${name} takes ${Object.keys(input).join(", ")}.`;
  return [
    ...[...unknown].slice(0, MAX_UNKNOWN).map((one) => `"${one}" is no argument: ${takes}`),
    ...(issues.length === 0 ? [] : (validationError(issues).details.issues ?? [])).map(
      ({ message }) => message,
    ),
  ].join(" ");
}

/** Thrown for an argument that a schema cannot check. Its message tells the agent what to give. */
export class ArgumentError extends Error {}

/** The tools or calls that return each kind of id. */
const SOURCES = {
  msg: "send_email, search_emails and get_thread return it",
  thr: "list_threads and get_email return it",
  drf: "list_drafts and create_draft return it",
  dom: "the dashboard and GET /v1/domains show it",
} as const;

/**
 * Returns an id as one segment of a path. Other strings, such as `..` or an empty one, could name another path.
 */
export function idIn(args: Args, name: string, kind: keyof typeof SOURCES): string {
  const id = String(args[name] ?? "");
  if (/^[a-z]{3}_[0-9A-Za-z]+$/.test(id) && id.startsWith(`${kind}_`)) return id;
  throw new ArgumentError(`"${name}" must be an id that begins with "${kind}_", as ${SOURCES[kind]}.`);
}

/** Returns the path with the arguments as its query. */
export function withQuery(path: string, args: Args): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(args)) if (value !== undefined) query.set(name, String(value));
  return query.size === 0 ? path : `${path}?${query}`;
}
