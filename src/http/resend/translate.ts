import { type TSchema, Type } from "@sinclair/typebox";
import { invalid, validationError } from "../../core/errors.ts";
import { check } from "../../core/validation.ts";
import type { Answer } from "../routing/answer.ts";
import { bodyOf } from "../body/check-body.ts";
import type { Page, PageBody } from "../routing/paging.ts";
import type { CheckedRequest, Method, Route } from "../routing/route.ts";

/** Path before the paths of Resend's API. */
export const RESEND_PATH = "/resend";

/** The routes of `/v1` by operation id. */
export type Operations = ReadonlyMap<string, Route>;

/** A request to an operation of `/v1`. */
export interface OperationRequest {
  params?: Record<string, string>;
  query?: Record<string, unknown>;
  body?: unknown;
  page?: Page;
}

/** How one route of Resend's API is served by an operation of `/v1`. */
export interface Translation<Body = unknown> {
  method: Method;
  /** Below `/resend`. */
  path: string;
  /** The operation that is called. It gives the scope, the limits and the idempotency of the route. */
  operation: string;
  summary: string;
  query?: TSchema;
  /** Returns what the operation is called with. If absent, the same path parameters and nothing else. */
  ask?: (context: CheckedRequest) => OperationRequest | Promise<OperationRequest>;
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
  { params = {}, query = {}, body, page }: OperationRequest,
): Promise<Answer> {
  const route = operationIn(operations, id);
  const issues = route.query === undefined ? [] : check(route.query, query);
  if (issues.length > 0) throw validationError(issues);
  const checked = body === undefined ? undefined : bodyOf(route, body, context.now);
  return route.handle({
    ...context,
    ...{ params, query, body: checked },
    ...(page === undefined ? {} : { page: () => page }),
  });
}

/** Returns the fields of a route that decide who may call it and what its requests may store. */
export function rightsOf(operations: Operations, id: string) {
  const { level, scope, stores, evenFull, secretAnswer, bodyLimit } = operationIn(operations, id);
  return {
    ...{ level, scope },
    ...(stores === undefined ? {} : { stores }),
    ...(evenFull === undefined ? {} : { evenFull }),
    ...(secretAnswer === undefined ? {} : { secretAnswer }),
    ...(bodyLimit === undefined ? {} : { bodyLimit }),
  };
}

/** Returns the route of a translation. */
export function translated<Body>(operations: Operations, translation: Translation<Body>): Route {
  const { operation, answer, ask = ({ params }) => ({ params }) } = translation;
  return resendRoute(operations, translation, async (context) => {
    // The stored answer must be Resend's, so what the operation records is translated, too.
    const show = ({ body }: Answer): Answer => ({ status: 200, body: answer(body as Body, context) });
    const record = (given: Answer) => context.record(show(given));
    return show(await callOperation(operations, operation, { ...context, record }, await ask(context)));
  });
}

/** Returns a route of Resend's API with a handler of its own and the rights of an operation. */
export function resendRoute(
  operations: Operations,
  { method, path, operation, summary, query }: Omit<Translation, "ask" | "answer">,
  handle: (context: CheckedRequest) => Answer | Promise<Answer>,
): Route {
  return {
    ...rightsOf(operations, operation),
    ...{ method, summary, path: `${RESEND_PATH}${path}`, operationId: `resend ${method} ${path}` },
    ...(query === undefined ? {} : { query }),
    // The operation checks the body after its translation.
    ...(method === "GET" || method === "DELETE" ? {} : ANY_BODY),
    ...{ answers: { 200: Type.Any() }, undocumented: true, handle },
  };
}

const ANY_BODY = { body: Type.Any(), bodyCheckedBy: "handler", bodyOptional: true } as const;

/** Returns the fields of a body, or of the value of `param`. None counts as one without fields. Throws 422 if it is not an object. */
export function fieldsOf(value: unknown, param = ""): Record<string, unknown> {
  if (value === undefined || value === null) return {};
  if (typeof value !== "object" || Array.isArray(value)) throw invalid(param, "must be an object.");
  return value as Record<string, unknown>;
}

/** Returns the fields that are given under the names of `/v1`. A field whose value is undefined is left out. */
export function renamed(
  fields: Record<string, unknown>,
  names: Readonly<Record<string, string>>,
): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(names).flatMap(([theirs, ours]) =>
      fields[theirs] === undefined ? [] : [[ours, fields[theirs]]],
    ),
  );
}

/** Throws 422 if a field is given that Postrider has no counterpart for, because ignoring it would mislead. */
export function refuseFields(
  fields: Record<string, unknown>,
  refused: Readonly<Record<string, string>>,
): void {
  for (const [name, advice] of Object.entries(refused))
    if (fields[name] !== undefined && fields[name] !== null)
      throw invalid(name, `is not supported. ${advice}`);
}

/** Query of every list: a page begins after or before an id. */
export const ID_PAGE = {
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 100 })),
  after: Type.Optional(Type.String({ maxLength: 64, expected: "an id of the list" })),
  before: Type.Optional(Type.String({ maxLength: 64, expected: "an id of the list" })),
};

/** Items of a list if the request names no limit. */
const DEFAULT_LIMIT = 20;
/** Pages of `/v1` that one page of Resend's may take, because filtered pages may be short. */
const MAX_PAGES = 100;
const PAGE_ITEMS = 100;

/** Items of a list, and true if more follow. */
export interface Listed<Item> {
  items: Item[];
  more: boolean;
}

/**
 * Returns the items of a list after or before an id, newest first.
 * @param keep the items that Resend's list has
 */
export async function listItems<Item extends { id: string }>(
  operations: Operations,
  operation: string,
  context: CheckedRequest,
  request: OperationRequest,
  keep: (item: Item) => boolean = () => true,
): Promise<Listed<Item>> {
  const {
    limit = DEFAULT_LIMIT,
    after,
    before,
  } = context.query as {
    limit?: number;
    after?: string;
    before?: string;
  };
  if (after !== undefined && before !== undefined)
    throw invalid("before", "cannot be given together with after.");
  const items: Item[] = [];
  let from = after ?? null;
  for (let pages = 0; pages < MAX_PAGES; pages++) {
    const page = idPage(from, PAGE_ITEMS);
    const { body } = await callOperation(operations, operation, context, { ...request, page });
    const { data, nextCursor } = body as PageBody<Item>;
    const own = data.filter(keep);
    if (before !== undefined) {
      items.push(...own.filter(({ id }) => id > before));
      if (own.length !== own.filter(({ id }) => id > before).length || nextCursor === null)
        return { items: items.slice(-limit), more: items.length > limit };
    } else {
      items.push(...own);
      if (items.length > limit || nextCursor === null)
        return { items: items.slice(0, limit), more: items.length > limit };
    }
    from = nextCursor;
  }
  if (before !== undefined)
    throw invalid("before", "names an item that is too far from the newest. Use after.");
  return { items: items.slice(0, limit), more: true };
}

/** Returns a page whose cursor is the position itself. Ids are public, so nothing needs to be authenticated. */
function idPage(after: string | null, limit: number): Page {
  return {
    after,
    take: limit + 1,
    answer(rows, show, position, stoppedAt = null) {
      const shown = rows.slice(0, limit);
      const last = rows.length > limit ? shown.at(-1) : undefined;
      return { data: shown.map(show), nextCursor: last === undefined ? stoppedAt : position(last) };
    },
  };
}

/** Returns the body of a list. */
export function listBody(items: readonly unknown[], more: boolean): Record<string, unknown> {
  return { object: "list", has_more: more, data: items };
}

/** Returns a route that lists the items of an operation. */
export function translatedList<Item extends { id: string }>(
  operations: Operations,
  translation: Omit<Translation, "method" | "answer"> & {
    keep?: (item: Item) => boolean;
    show: (item: Item, context: CheckedRequest) => unknown;
  },
): Route {
  const { operation, keep, show, query, ask = ({ params }) => ({ params }) } = translation;
  const route = { ...translation, method: "GET", query: query ?? Type.Object(ID_PAGE) } as const;
  return resendRoute(operations, route, async (context) => {
    const { items, more } = await listItems<Item>(operations, operation, context, await ask(context), keep);
    const shown = await Promise.all(items.map((item) => show(item, context)));
    return { status: 200, body: listBody(shown, more) };
  });
}
