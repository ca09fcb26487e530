import type { Static, TSchema } from "@sinclair/typebox";
import type { ErrorType } from "../core/errors.ts";
import type { Statement } from "../store/engine/client.ts";
import type { Sender } from "../store/senders.ts";
import type { Answer } from "./answer.ts";
import type { Page } from "./paging.ts";
import type { Scope } from "./scopes.ts";

/** Who asks: the key presented and what it stands for. */
export interface Principal {
  /** Null: the command line, which needs no key. */
  keyId: string | null;
  accountId: string;
  /** The project of a project-scoped key; null for an account-wide one. */
  senderId: string | null;
  /** Empty: every scope. */
  scopes: readonly string[];
}

export type Method = "GET" | "POST" | "PATCH" | "PUT" | "DELETE";

/** `open`: no key asked for. `account`: any key. `project`: a key together with the project it acts for. */
export type Level = "open" | "account" | "project";

/** Names of the `:name` segments of a path. */
type ParamNames<Path extends string> = Path extends `${string}:${infer Name}/${infer Rest}`
  ? Name | ParamNames<`/${Rest}`>
  : Path extends `${string}:${infer Name}`
    ? Name
    : never;

/** What every handler is given. */
export interface OpenContext<Path extends string, Query extends TSchema, Body extends TSchema> {
  request: Request;
  requestId: string;
  /** Milliseconds at which the request was taken up. */
  now: number;
  /** The peer's IP address; null where the request came by no socket. */
  ip: string | null;
  /** Path segments, percent-decoded; as hostile as the client likes. */
  params: Record<ParamNames<Path>, string>;
  query: Static<Query>;
  body: Static<Body>;
}

export interface AccountContext<Path extends string, Query extends TSchema, Body extends TSchema>
  extends OpenContext<Path, Query, Body> {
  principal: Principal;
  /** The page asked for by `limit` and `cursor`. Throws 400 for a cursor of another query. */
  page(): Page;
  /**
   * Statements that record this answer under the request's Idempotency-Key, for the very write that gives the request
   * its effect: so a crash can neither lose nor double it. Empty where the request has no key. An answer not
   * recorded so is stored after the handler is done. A handler that calls this must give that same answer.
   */
  record(answer: Answer): Statement[];
  /**
   * Makes room for an answer to GET of about so many octets, before what it is made of is read. Throws 503 where there is none:
   * a handler that reads megabytes calls it first.
   */
  expectAnswer(octets: number): void;
}

export interface ProjectContext<Path extends string, Query extends TSchema, Body extends TSchema>
  extends AccountContext<Path, Query, Body> {
  /** The project's id: first argument of every store function. */
  senderId: string;
  project: Sender;
}

/** What a route says of itself, for its checks and for the reference. */
export interface RouteText<Path extends string, Query extends TSchema, Body extends TSchema> {
  method: Method;
  /** With `:name` segments. */
  path: Path;
  operationId: string;
  summary: string;
  description?: string;
  /** Object schema of the query; values are read as the types it names. */
  query?: Query;
  /** Schema of the JSON body; its fields unknown to the schema are left as they are. */
  body?: Body;
  /**
   * The rules of single fields beyond the schema, which `handle` checks too: for a body that breaks the schema, so that its
   * client is told of everything at once. Given the fields that have their shape. Throws 422.
   */
  rules?: (body: never, now: number) => unknown;
  /** `handler`: the body is only shown in the reference; the handler checks it, and is given it as it came. */
  bodyCheckedBy?: "schema" | "handler";
  /** Set where a request may come without the body described. */
  bodyOptional?: boolean;
  /** Answers by status: the body's schema; null for none; a content type for bytes. */
  answers: Readonly<Record<number, TSchema | string | null>>;
  /** Error types beyond those that every route of its kind can answer with. */
  errors?: readonly ErrorType[];
  /** The answer holds a secret: it is stored sealed for a replay. */
  secretAnswer?: boolean;
  /** Only an account-wide key may ask: whoever has a project's is refused before anything it sent is looked at. */
  accountWide?: boolean;
}

interface Scoped {
  scope: Scope;
}

/** A request as the shell hands it to a route, every check passed; of an open route nobody is known. */
export interface CheckedRequest
  extends Omit<ProjectContext<string, TSchema, TSchema>, "params" | "principal" | "senderId" | "project"> {
  params: Readonly<Record<string, string>>;
  principal: Principal | null;
  senderId: string | null;
  project: Sender | null;
}

/** A route as the shell runs it. Made by `openRoute`, `accountRoute` and `projectRoute` alone. */
export interface Route extends RouteText<string, TSchema, TSchema> {
  level: Level;
  scope: Scope | null;
  handle(context: CheckedRequest): Answer | Promise<Answer>;
}

type Handler<Context> = (context: Context) => Answer | Promise<Answer>;

// The shell has checked query and body against the route's own schemas and params against its path before it calls
// `handle`: that is what makes this the place for the cast from the route's own context to the common one.
function erase(handle: unknown): Handler<CheckedRequest> {
  return handle as Handler<CheckedRequest>;
}

/** A route that asks for no key. A body is not parsed, unless `body` is given. */
export function openRoute<Path extends string, Query extends TSchema, Body extends TSchema>(
  route: RouteText<Path, Query, Body> & { handle: Handler<OpenContext<Path, Query, Body>> },
): Route {
  return { ...route, level: "open", scope: null, handle: erase(route.handle) };
}

/** A route of the account as a whole: no project is named. */
export function accountRoute<Path extends string, Query extends TSchema, Body extends TSchema>(
  route: RouteText<Path, Query, Body> & Scoped & { handle: Handler<AccountContext<Path, Query, Body>> },
): Route {
  return { ...route, level: "account", handle: erase(route.handle) };
}

/** A route of one project: the key's own, or the one an account-wide key names in `X-Service-Product`. */
export function projectRoute<Path extends string, Query extends TSchema, Body extends TSchema>(
  route: RouteText<Path, Query, Body> & Scoped & { handle: Handler<ProjectContext<Path, Query, Body>> },
): Route {
  return { ...route, level: "project", handle: erase(route.handle) };
}
