import { type Static, type TSchema, Type } from "@sinclair/typebox";
import { invalid, validationError } from "../../../core/errors.ts";
import { check } from "../../../core/validation.ts";
import type { Answer } from "../../routing/answer.ts";
import { requireRights } from "../../access/key-rights.ts";
import { bodyOf } from "../../pipeline/pipeline.ts";
import type { Place } from "../../../store/engine/place.ts";
import type { CheckedRequest, Method, Route } from "../../routing/route.ts";
import { MAX_NAME_CHARS } from "../../routing/schemas.ts";
import { NO_FIELDS } from "./given.ts";

/** Path before the paths of Resend's API. */
export const RESEND_PATH = "/resend";

export type Operations = ReadonlyMap<string, Route>;

export interface OperationRequest {
  params?: Record<string, string>;
  query?: Record<string, unknown>;
  body?: unknown;
}

/** A request whose body fits a schema. */
export type RequestWith<Given extends TSchema> = CheckedRequest & { body: Static<Given> };

/** A route of Resend's API, and the operation of `/v1` that gives its scope, limits and idempotency. */
export interface ResendRoute<Given extends TSchema = typeof NO_FIELDS> {
  method: Method;
  /** Below `/resend`. */
  path: string;
  operation: string;
  summary: string;
  query?: TSchema;
  /** The fields that are read of the body, each with a limit (`given`). If absent, none is. */
  body?: Given;
  /** See `RouteText`. */
  byteLists?: true;
}

/** How one route of Resend's API is served by an operation of `/v1`. */
export interface Translation<Given extends TSchema, Body> extends ResendRoute<Given> {
  /** Returns what the operation is called with. If absent, the same path parameters and nothing else. */
  ask?: (context: RequestWith<Given>) => OperationRequest | Promise<OperationRequest>;
  /** Returns the answer to 200 for the operation's body. It depends on its arguments alone, because it may be stored. */
  answer: (body: Body, context: CheckedRequest) => unknown;
}

/** Returns the operation. Throws if there is none, which is a fault of the code. */
function operationIn(operations: Operations, id: string): Route {
  const route = operations.get(id);
  if (route === undefined) throw new Error(`no operation ${id}`);
  return route;
}

/** Calls an operation of `/v1` after the checks that a client's request to it would get. */
export async function callOperation(
  operations: Operations,
  id: string,
  context: CheckedRequest,
  { params = {}, query = {}, body }: OperationRequest,
): Promise<Answer> {
  const route = operationIn(operations, id);
  const { principal } = context;
  if (principal !== null) requireRights(route, { ...principal, ...principal.bounds });
  const issues = route.query === undefined ? [] : check(route.query, query);
  if (issues.length > 0) throw validationError(issues);
  const checked = body === undefined ? undefined : bodyOf(route, body, context.now);
  return route.handle({ ...context, params, query, body: checked });
}

/** Returns the fields of a route that decide who may call it and what its requests may store. */
export function rightsOf(operations: Operations, id: string) {
  const { level, scope, alsoScope, ...rest } = operationIn(operations, id);
  const { stores, evenFull, secretAnswer, bodyLimit, costly } = rest;
  return {
    level,
    scope,
    ...(alsoScope === undefined ? {} : { alsoScope }),
    ...(stores === undefined ? {} : { stores }),
    ...(evenFull === undefined ? {} : { evenFull }),
    ...(secretAnswer === undefined ? {} : { secretAnswer }),
    ...(bodyLimit === undefined ? {} : { bodyLimit }),
    ...(costly === undefined ? {} : { costly }),
  };
}

/** Returns the route of a translation. */
export function translated<Body, Given extends TSchema = typeof NO_FIELDS>(
  operations: Operations,
  translation: Translation<Given, Body>,
): Route {
  const { operation, answer, ask = ({ params }) => ({ params }) } = translation;
  return resendRoute(operations, translation, async (context) => {
    const request = await ask(context);
    return answeredBy<Body>(operations, operation, context, request, (body) => answer(body, context));
  });
}

/** Calls the operation whose answer is that of a route. `show` returns the answer to 200 for its body. */
export async function answeredBy<Body>(
  operations: Operations,
  id: string,
  context: CheckedRequest,
  request: OperationRequest,
  show: (body: Body) => unknown,
): Promise<Answer> {
  // The stored answer must be Resend's, so what the operation records is translated, too.
  const shown = ({ body }: Answer): Answer => ({ status: 200, body: show(body as Body) });
  const record = (given: Answer) => context.record(shown(given));
  return shown(await callOperation(operations, id, { ...context, record }, request));
}

/** Calls an operation before the one of `answeredBy`, whose answer alone is recorded. Returns its body. */
export async function calledBefore<Body>(
  operations: Operations,
  id: string,
  context: CheckedRequest,
  request: OperationRequest,
): Promise<Body> {
  const { body } = await callOperation(operations, id, { ...context, record: () => [] }, request);
  return body as Body;
}

/** Returns a route of Resend's API with a separate handler and the rights of an operation. */
export function resendRoute<Given extends TSchema = typeof NO_FIELDS>(
  operations: Operations,
  { method, path, operation, summary, query, body, byteLists }: ResendRoute<Given>,
  handle: (context: RequestWith<Given>) => Answer | Promise<Answer>,
): Route {
  return {
    ...rightsOf(operations, operation),
    method,
    summary,
    path: `${RESEND_PATH}${path}`,
    operationId: `resend ${method} ${path}`,
    ...(query === undefined ? {} : { query }),
    ...(byteLists === undefined ? {} : { byteLists }),
    ...(method === "GET" || method === "DELETE"
      ? {}
      : { body: body ?? NO_FIELDS, seesAllFields: true, bodyOptional: body?.type !== "array" }),
    // `bodyOf` has checked the body against the route's own schema.
    answers: { 200: Type.Any() },
    undocumented: true,
    handle: handle as Route["handle"],
  };
}

const COPY_SUFFIX = " (copy)";

/** Returns the name of a copy. */
export function copyName(name: string): string {
  return `${name.slice(0, MAX_NAME_CHARS - COPY_SUFFIX.length)}${COPY_SUFFIX}`;
}

/** Returns the fields that are not null. */
export function withoutNulls<Fields extends object>(
  fields: Fields,
): { [Name in keyof Fields]?: Exclude<Fields[Name], null> } {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== null)) as never;
}

/** Returns the fields that are given under the names of `/v1`. A field whose value is undefined is left out. */
export function renamed<Fields extends object>(
  fields: Fields,
  names: Readonly<Partial<Record<keyof Fields, string>>>,
): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(names).flatMap(([theirs, ours]) => {
      const value = fields[theirs as keyof Fields];
      return value === undefined ? [] : [[String(ours), value]];
    }),
  );
}

/** Throws 422 for a field that the dialect does not take, because ignoring it would mislead. */
export function refuseFields(fields: object, refused: Readonly<Record<string, string>>): void {
  const given = new Map<string, unknown>(Object.entries(fields));
  for (const [name, advice] of Object.entries(refused))
    if (given.get(name) != null) throw invalid(name, `is not supported. ${advice}`);
}

/** Query of every list: a page begins after or before an id. */
export const ID_PAGE = {
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 100 })),
  after: Type.Optional(Type.String({ maxLength: 64, expected: "an id of the list" })),
  before: Type.Optional(Type.String({ maxLength: 64, expected: "an id of the list" })),
};

/** Maximum number of scans for a page without a row: those of a list with a million rows. */
const MAX_SCANS = 10;

/** Items of a list if the request names no limit. */
const DEFAULT_LIMIT = 20;

/** The rows of a list at a place. A scan may stop early: then more follow. */
type Rows<Row> = readonly Row[] | { rows: readonly Row[]; stoppedAt: string | null };

/** A list of Resend's API. Its pages are read by id, after or before one. */
export interface ResendList<Row> extends Omit<ResendRoute, "method" | "body"> {
  /** Returns at most `take` rows, newest first. */
  read: (context: CheckedRequest & { senderId: string }, place: Place, take: number) => Promise<Rows<Row>>;
  /** Returns the rows of a page as Resend shows them. */
  show: (rows: readonly Row[], context: CheckedRequest) => unknown[] | Promise<unknown[]>;
}

/** Returns the route of a list. */
export function listRoute<Row>(operations: Operations, list: ResendList<Row>): Route {
  const { read, show, query } = list;
  const route = { ...list, method: "GET", query: query ?? Type.Object(ID_PAGE) } as const;
  return resendRoute(operations, route, async (context) => {
    const { limit = DEFAULT_LIMIT, after, before } = context.query as IdPage;
    if (after !== undefined && before !== undefined)
      throw invalid("before", "cannot be given together with after.");
    const place = before === undefined ? (after ?? null) : { above: before };
    const owner = { ...context, senderId: context.senderId ?? "" };
    const scan = async (from: Place) => {
      // One more than the page has shows whether more follow.
      const found = await read(owner, from, limit + 1);
      return "rows" in found ? found : { rows: found, stoppedAt: null };
    };
    let { rows, stoppedAt } = await scan(place);
    // A client asks for the next page by the last id of this one, so an empty page would end the list.
    for (let scans = 1; rows.length === 0 && stoppedAt !== null && scans < MAX_SCANS; scans++)
      ({ rows, stoppedAt } = await scan(before === undefined ? stoppedAt : { above: stoppedAt }));
    const page = before === undefined ? rows.slice(0, limit) : rows.slice(-limit);
    const more = rows.length > limit || stoppedAt !== null;
    return { status: 200, body: listBody(await show(page, context), more) };
  });
}

interface IdPage {
  limit?: number;
  after?: string;
  before?: string;
}

/** Returns the body of a list. */
export function listBody(items: readonly unknown[], more: boolean): Record<string, unknown> {
  return { object: "list", has_more: more, data: items };
}
