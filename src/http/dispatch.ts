import type { Clock } from "../core/clock.ts";
import { check, validationError } from "../core/validation.ts";
import type { Db, Statement } from "../store/client.ts";
import type { PresentedKey } from "../store/keys.ts";
import type { Sender } from "../store/senders.ts";
import type { Answer } from "./answer.ts";
import { authenticate } from "./auth.ts";
import { parseJson, readBody } from "./body.ts";
import { type InFlight, readIdempotencyKey, runOnce } from "./idempotency.ts";
import type { KeyUse } from "./key-use.ts";
import { openPage } from "./paging.ts";
import { resolveProject } from "./project.ts";
import { readQuery } from "./query.ts";
import { ACCOUNT_PLAN, type RateLimiter, takeRate } from "./rate.ts";
import type { CheckedRequest, Method, Principal, Route } from "./route.ts";
import { requireScope } from "./scopes.ts";

export interface DispatchDeps {
  db: Db;
  clock: Clock;
  cursorKey: Uint8Array;
  boxKey: Uint8Array;
  maxBodyBytes: number;
  limiter: RateLimiter | null;
  keyUse: KeyUse;
  inFlight: InFlight;
}

/** A request that has found its route. */
export interface RoutedRequest {
  request: Request;
  params: Readonly<Record<string, string>>;
  requestId: string;
  ip: string | null;
  /** Headers of the answer, whatever becomes of the request. */
  headers: Record<string, string | number>;
}

const NO_BYTES = new Uint8Array();

interface Caller {
  principal: Principal | null;
  project: Sender | null;
  /** Whose lists, cursors and idempotency keys these are. */
  owner: string;
}

/** Methods whose requests may carry a body. That of another is left unread. */
const WITH_BODY: ReadonlySet<Method> = new Set(["POST", "PATCH", "PUT"]);

/** Runs one request through its route: who, for which project, how often, allowed to, with what; then the handler. */
export async function dispatch(deps: DispatchDeps, route: Route, routed: RoutedRequest): Promise<Answer> {
  const { request } = routed;
  if (route.level === "open") return runOpen(deps, route, routed);
  const presented = await authenticate(deps.db, request.headers.get("authorization"));
  const now = deps.clock.now();
  deps.keyUse.note(presented.key, now);
  const caller = await callerOf(deps, route, presented, request.headers);
  const { project, owner } = caller;
  const { id: keyId, scopes } = presented.key;
  await takeRate(deps.limiter, project?.id ?? keyId, project?.plan ?? ACCOUNT_PLAN, routed.headers);
  if (route.scope !== null) requireScope(scopes, route.scope);
  const query = readQuery(route.query, request.url);
  const bytes = WITH_BODY.has(route.method) ? await readBody(request, deps.maxBodyBytes) : NO_BYTES;
  const run = async (record: (answer: Answer) => Statement[]): Promise<Answer> =>
    route.handle(
      contextOf(deps, routed, caller, { now, query, body: bodyOf(route, bytes, request), record }),
    );
  const key = route.method === "POST" ? readIdempotencyKey(request.headers) : null;
  if (key === null) return run(() => []);
  const at = { scope: owner, endpoint: `POST ${pathOf(request)}`, key };
  return runOnce(deps, { at, body: bytes, secretFor: route.secretAnswer === true ? keyId : null, now }, run);
}

async function runOpen(deps: DispatchDeps, route: Route, routed: RoutedRequest): Promise<Answer> {
  const { request } = routed;
  const query = readQuery(route.query, request.url);
  const bytes = route.body === undefined ? NO_BYTES : await readBody(request, deps.maxBodyBytes);
  const caller = { principal: null, project: null, owner: "" };
  const now = deps.clock.now();
  const body = bodyOf(route, bytes, request);
  return route.handle(contextOf(deps, routed, caller, { now, query, body, record: () => [] }));
}

async function callerOf(
  deps: DispatchDeps,
  route: Route,
  presented: PresentedKey,
  headers: Headers,
): Promise<Caller> {
  const { id, accountId, senderId, scopes } = presented.key;
  const principal = { keyId: id, accountId, senderId, scopes };
  if (route.level === "account") return { principal, project: null, owner: senderId ?? accountId };
  const project = await resolveProject(deps.db, presented, headers);
  return { principal, project, owner: project.id };
}

/** The body as the route's schema has it. Throws 400 for what is no JSON, 422 for what breaks the schema. */
function bodyOf(route: Route, bytes: Uint8Array, request: Request): unknown {
  const body = parseJson(bytes, request.headers.get("content-type"));
  if (route.body === undefined || route.bodyCheckedBy === "handler") return body;
  if (body === undefined && route.bodyOptional === true) return {};
  const issues = check(route.body, body);
  if (issues.length > 0) throw validationError(issues);
  return body;
}

/** The path as asked for; with and without a slash at its end it is the same. */
function pathOf(request: Request): string {
  return new URL(request.url, "http://localhost").pathname.replace(/\/$/, "");
}

type Parts = Pick<CheckedRequest, "now" | "record"> & { query: Record<string, unknown>; body: unknown };

function contextOf(
  deps: DispatchDeps,
  { request, params, requestId, ip }: RoutedRequest,
  { principal, project, owner }: Caller,
  { now, query, body, record }: Parts,
): CheckedRequest {
  return {
    request,
    requestId,
    ip,
    params,
    principal,
    now,
    query,
    body,
    record,
    senderId: project === null ? null : project.id,
    project,
    page: () => openPage({ key: deps.cursorKey, path: pathOf(request), owner, query }),
  };
}
