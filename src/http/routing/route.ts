import type { Static, TSchema } from "@sinclair/typebox";
import type { ErrorType } from "../../core/errors.ts";
import type { KeyBounds } from "../../core/key-bounds.ts";
import type { Resource } from "../../core/quotas.ts";
import type { Statement } from "../../store/engine/client.ts";
import type { ChangeLimit } from "../../store/projects/holdings.ts";
import type { Project } from "../../store/projects/projects.ts";
import type { Answer } from "./answer.ts";
import type { CostlyWork } from "../../core/concurrency/costly-work.ts";
import type { Page } from "./paging.ts";
import type { Scope } from "./scopes.ts";

/** The key of a request and its rights. */
export interface Principal {
  /** Id of the key, or of the member who has signed in. Null: the command line, which needs no key. */
  keyId: string | null;
  /** The right that a long request checks again with `validGrants`. Null: the command line. */
  grant: string | null;
  accountId: string;
  /** The project of a project-scoped key. Null: the key is account-wide. */
  senderId: string | null;
  /** Empty: every scope. */
  scopes: readonly string[];
  /** How far the sends of the key may go. */
  bounds: KeyBounds;
}

export type Method = "GET" | "POST" | "PATCH" | "PUT" | "DELETE";

/** A body that a handler reads while it arrives. */
export interface Upload {
  /** Its content type, one of the route's, in lower case and without parameters. */
  type: string;
  /** Its pieces, once. Throws 413 over the limit, 408 if it comes too slowly, 400 if the client broke off. */
  pieces: AsyncIterable<Uint8Array>;
}

/** `open`: no key is needed. `account`: any key. `project`: a key and the project for which it acts. */
export type Level = "open" | "account" | "project";

/** Names of the `:name` segments of a path. */
type ParamNames<Path extends string> = Path extends `${string}:${infer Name}/${infer Rest}`
  ? Name | ParamNames<`/${Rest}`>
  : Path extends `${string}:${infer Name}`
    ? Name
    : never;

/** Context of every handler. */
export interface OpenContext<Path extends string, Query extends TSchema, Body extends TSchema> {
  request: Request;
  requestId: string;
  /** Milliseconds at which the request was received. */
  now: number;
  /** The peer's IP address. Null if the request did not come over a socket. */
  ip: string | null;
  /** Path segments, percent-decoded. They may contain anything. */
  params: Record<ParamNames<Path>, string>;
  query: Static<Query>;
  body: Static<Body>;
  /** The body as it came, if the route has a signed one; else nothing. */
  bytes: Uint8Array;
  /** The body as it arrives, if the route takes uploads. It must be read to its end before an answer is recorded. */
  upload: Upload | null;
}

export interface AccountContext<Path extends string, Query extends TSchema, Body extends TSchema>
  extends OpenContext<Path, Query, Body> {
  principal: Principal;
  /** Returns the page that `limit` and `cursor` name. Throws 400 if the cursor belongs to another query. */
  page(): Page;
  /**
   * Returns the statements that record this answer under the request's Idempotency-Key. They belong in the same write
   * as the effect of the request, so that a crash can neither lose nor double it. If the request has no key, there
   * are none. If a handler does not call this, its answer is stored afterwards. If it does, it must return that same
   * answer.
   */
  record(answer: Answer): Statement[];
  /**
   * Reserves memory for an answer to GET of about this size, before its content is read. Throws 503 if there is none.
   * A handler that reads megabytes must call it first.
   */
  expectAnswer(octets: number): void;
}

export interface ProjectContext<Path extends string, Query extends TSchema, Body extends TSchema>
  extends AccountContext<Path, Query, Body> {
  /** The project's id: first argument of every store function. */
  senderId: string;
  project: Project;
  /** Makes a change of rows fail with 403 if it adds to the project's stored octets beyond the limit. */
  growing: ChangeLimit;
}

/** Description of a route, for its checks and the API document. */
export interface RouteText<Path extends string, Query extends TSchema, Body extends TSchema> {
  method: Method;
  /** With `:name` segments. */
  path: Path;
  operationId: string;
  summary: string;
  description?: string;
  /** Object schema of the query. Values are parsed by the types in it. */
  query?: Query;
  /** Schema of the JSON body. The handler does not see other fields, unless it `seesAllFields`. */
  body?: Body;
  /**
   * Rules of single fields beyond the schema. `handle` checks them too. If the body does not fit the schema, they are
   * called with the fields that do, so that the client sees all faults at once. Throws 422.
   */
  rules?: (body: never, now: number) => unknown;
  /** `handler`: the schema is only for the API document, and the handler checks the body itself. */
  bodyCheckedBy?: "schema" | "handler";
  /** The handler refuses fields that `body` does not name. It must not copy the body into a row. */
  seesAllFields?: true;
  /** Largest body in bytes, or `message`: the limit of bodies with a message (`MAX_BODY_BYTES`). Default: 1 MiB. */
  bodyLimit?: number | "message";
  /**
   * Another service has signed the body, so the handler needs its bytes, too. Its JSON may come with any content type, as
   * that of Amazon SNS does.
   */
  signedBody?: true;
  /** Content types of a body that the handler reads while it arrives, up to `bodyLimit`: the context has it as `upload`. */
  uploads?: readonly string[];
  /** Set if a request may have no body. */
  bodyOptional?: boolean;
  /** The body may have files as lists of byte numbers, which count apart from other values. */
  byteLists?: true;
  /** Examples for the API document, in place of those that the schemas make. */
  examples?: { body?: unknown; answer?: unknown };
  /** Answers by status: the schema of the body, null for none, or a content type for bytes. */
  answers: Readonly<Record<number, TSchema | string | null>>;
  /** Error types in addition to those of every route of its kind. */
  errors?: readonly ErrorType[];
  /**
   * Content that the request stores. The request is refused while the disk is low. Its `record` compares stored
   * octets and what it `adds` with the plan's limits. If `limitedBy` is `handler`, the handler compares.
   */
  stores?: { adds?: readonly Resource[]; limitedBy?: "record" | "handler" };
  /**
   * The answer is stored under its Idempotency-Key even over the stored octets, because the request stops something.
   */
  evenFull?: true;
  /**
   * The scope that reads what the answer shows, if the route changes a resource with words of people. Without it, the
   * answer is a confirmation (`shownTo`).
   */
  shows?: Scope;
  /** The answer contains a secret, so it is stored encrypted. */
  secretAnswer?: boolean;
  /**
   * Browsers load it by themselves: in frames, links and EventSources, which send no headers of ours. With the
   * dashboard's session it needs none, and takes its project from `?project=`.
   */
  browserLoads?: true;
  /** Pages of other origins are refused with 403, whatever key they have. */
  ownOrigin?: true;
  /** The request changes nothing. Its answer may be refused if there is no memory for it, as one to GET may. */
  readsOnly?: true;
  /** The request starts work that takes a while, of which each project has a few at a time. */
  costly?: CostlyWork;
  /** The route is not in the API document, because it speaks another product's dialect. */
  undocumented?: true;
  /**
   * A key with `inboxIds` may use the route: what its path names must be in one of them, or `handler` shows no others. Left out: such
   * a key is refused.
   */
  inboxes?: "inbox" | "thread" | "message" | "handler";
  /** A second scope that a key needs, because the route also does what that scope is for. */
  alsoScope?: Scope;
  /** Only account-wide keys may use the route. A project's key is refused before anything in the request is checked. */
  accountWide?: boolean;
}

interface Scoped {
  /** The scope that a key needs. Null: any key. */
  scope: Scope | null;
}

/** A request that has passed all checks. If the route is open, it has no key and project. */
export interface CheckedRequest
  extends Omit<ProjectContext<string, TSchema, TSchema>, "params" | "principal" | "senderId" | "project"> {
  params: Readonly<Record<string, string>>;
  principal: Principal | null;
  senderId: string | null;
  project: Project | null;
}

/** A route as it is run. Only `openRoute`, `accountRoute` and `projectRoute` make one. */
export interface Route extends RouteText<string, TSchema, TSchema> {
  level: Level;
  scope: Scope | null;
  handle(context: CheckedRequest): Answer | Promise<Answer>;
}

type Handler<Context> = (context: Context) => Answer | Promise<Answer>;

// Query, body and params have been checked against the route's own schemas and path before `handle` is called. The
// cast from the route's context to the common one is therefore safe here.
function erase(handle: unknown): Handler<CheckedRequest> {
  return handle as Handler<CheckedRequest>;
}

/** Returns a route that needs no key. A body is only parsed if `body` is given. */
export function openRoute<Path extends string, Query extends TSchema, Body extends TSchema>(
  route: RouteText<Path, Query, Body> & { handle: Handler<OpenContext<Path, Query, Body>> },
): Route {
  return { ...route, level: "open", scope: null, handle: erase(route.handle) };
}

/** Returns a route of the whole account, without a project. */
export function accountRoute<Path extends string, Query extends TSchema, Body extends TSchema>(
  route: RouteText<Path, Query, Body> & Scoped & { handle: Handler<AccountContext<Path, Query, Body>> },
): Route {
  return { ...route, level: "account", handle: erase(route.handle) };
}

/** Returns a route of one project: the key's own, or the one that `X-Service-Product` names for an account-wide key. */
export function projectRoute<Path extends string, Query extends TSchema, Body extends TSchema>(
  route: RouteText<Path, Query, Body> & Scoped & { handle: Handler<ProjectContext<Path, Query, Body>> },
): Route {
  return { ...route, level: "project", handle: erase(route.handle) };
}
