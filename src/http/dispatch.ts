import type { Clock } from "../core/clock.ts";
import { AppError, type Issue, readAll, validationError } from "../core/errors.ts";
import { turn } from "../core/turn.ts";
import { check, MAX_ISSUES, withoutFaults } from "../core/validation.ts";
import type { Db, Statement } from "../store/engine/client.ts";
import type { ApiKey, PresentedKey } from "../store/keys.ts";
import type { Sender } from "../store/senders.ts";
import type { Answer } from "./answer.ts";
import { authenticate } from "./auth.ts";
import { parseJson, readBody } from "./body.ts";
import type { BodyRoom } from "./body-room.ts";
import { type BodyTurns, LARGE_BODY_OCTETS } from "./body-turns.ts";
import type { EnterAnswer } from "./download.ts";
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
  room: BodyRoom;
  turns: BodyTurns;
  answers: EnterAnswer;
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
/** What an answer takes that is not bounded. */
const UNBOUNDED = (): void => undefined;

interface Caller {
  principal: Principal | null;
  project: Sender | null;
  /** Whose lists, cursors and idempotency keys these are, and whose room and turn a body takes. */
  owner: string;
}

const NOBODY: Caller = { principal: null, project: null, owner: "" };

/** Methods whose requests may carry a body. That of another is left unread. */
const WITH_BODY: ReadonlySet<Method> = new Set(["POST", "PATCH", "PUT"]);

/** Runs one request through its route: who asks, for which project, how often, with what rights and values; then the handler. */
export async function dispatch(deps: DispatchDeps, route: Route, routed: RoutedRequest): Promise<Answer> {
  const { request } = routed;
  if (route.level === "open") return runOpen(deps, route, routed);
  const arrived = await identify(deps, route, request);
  deps.keyUse.note(arrived.presented.key, arrived.at);
  await countRequest(deps, arrived, routed.headers);
  if (arrived.refusal !== null) throw arrived.refusal;
  requireRights(route, arrived.presented.key);
  const query = readQuery(route.query, request.url);
  const { owner } = arrived.caller;
  const place = deps.room.enter(owner);
  // What a change is answered stands for what has been done: it is never refused for its size.
  const answers = route.method === "GET" ? deps.answers(owner) : null;
  try {
    const bytes = WITH_BODY.has(route.method)
      ? await readBody(request, { clock: deps.clock, maxBytes: maxBytesOf(deps, route), place })
      : NO_BYTES;
    const incoming = { arrived, query, bytes, expectAnswer: answers?.expect ?? UNBOUNDED };
    const answer = await deps.turns.run(owner, bytes.length, () => answerTo(deps, route, routed, incoming));
    return answers === null ? answer : answers.send(answer);
  } catch (error) {
    answers?.leave();
    throw error;
  } finally {
    place.leave();
  }
}

/**
 * Bytes of a body at most. A route that describes none has no use for a large one, and may wait long, as for a name server:
 * nobody's turn is to be taken up meanwhile.
 */
function maxBytesOf({ maxBodyBytes }: DispatchDeps, { body }: Route): number {
  return body === undefined ? Math.min(maxBodyBytes, LARGE_BODY_OCTETS - 1) : maxBodyBytes;
}

/** What a request that is allowed has brought. */
interface Incoming {
  arrived: Identity;
  query: Record<string, unknown>;
  /** The body, until it is read: a large one is not to be there twice. */
  bytes: Uint8Array;
  expectAnswer: (octets: number) => void;
}

async function answerTo(
  deps: DispatchDeps,
  route: Route,
  routed: RoutedRequest,
  incoming: Incoming,
): Promise<Answer> {
  const { request } = routed;
  const {
    arrived,
    query,
    bytes: { length },
    expectAnswer,
  } = incoming;
  const { caller, at: now, presented } = await stillAllowed(deps, route, request, arrived);
  const { owner } = caller;
  const run = async (record: (answer: Answer) => Statement[]): Promise<Answer> => {
    const body = bodyOf(route, incoming.bytes, request, now);
    incoming.bytes = NO_BYTES;
    const handle = () =>
      route.handle(contextOf(deps, routed, caller, { now, query, body, record, expectAnswer }));
    return length < LARGE_BODY_OCTETS ? handle() : inTurnsOfItsOwn(handle);
  };
  const key = route.method === "POST" ? readIdempotencyKey(request.headers) : null;
  if (key === null) return run(() => []);
  const at = { scope: owner, endpoint: `POST ${pathOf(request)}`, key };
  const secretFor = route.secretAnswer === true ? presented.key.id : null;
  return runOnce(deps, { at, body: incoming.bytes, secretFor, now }, run);
}

/**
 * Reading a large body and checking it takes some ten milliseconds each, writing what it holds some forty, and an answer
 * that shows it twenty: others have a turn before the handler and behind it.
 */
async function inTurnsOfItsOwn(handle: () => Answer | Promise<Answer>): Promise<Answer> {
  await turn();
  const answer = await handle();
  await turn();
  return answer;
}

/** Who asks for what, as the database has it at a moment. */
interface Identity {
  presented: PresentedKey;
  caller: Caller;
  /** Why the key may not act for the project named; the request counts all the same. */
  refusal: AppError | null;
  /** Milliseconds. */
  at: number;
}

async function identify(deps: DispatchDeps, route: Route, request: Request): Promise<Identity> {
  const presented = await authenticate(deps.db, request.headers.get("authorization"));
  const at = deps.clock.now();
  try {
    const caller = await callerOf(deps, route, presented, request.headers);
    return { presented, caller, refusal: null, at };
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    return { presented, caller: NOBODY, refusal: error, at };
  }
}

/** Takes the request from its project's bucket, else from its key's: guessing at projects is no way around the limit. */
async function countRequest(
  { limiter }: DispatchDeps,
  { presented, caller: { project } }: Identity,
  headers: RoutedRequest["headers"],
): Promise<void> {
  await takeRate(limiter, project?.id ?? presented.key.id, project?.plan ?? ACCOUNT_PLAN, headers);
}

/** Milliseconds that a body may take to come before the key is looked at again. */
const FRESH_MS = 1000;

/**
 * The caller as known, or looked up anew where the body came slowly: whoever holds a request open must not get a key
 * that is revoked by then, or a project suspended, past that.
 */
async function stillAllowed(
  deps: DispatchDeps,
  route: Route,
  request: Request,
  arrived: Identity,
): Promise<Identity> {
  if (Math.abs(deps.clock.now() - arrived.at) <= FRESH_MS) return arrived;
  const again = await identify(deps, route, request);
  if (again.refusal !== null) throw again.refusal;
  requireRights(route, again.presented.key);
  return again;
}

/** Throws 403 where the key may not ask for the route. */
function requireRights({ scope, accountWide }: Route, key: ApiKey): void {
  if (scope !== null) requireScope(key.scopes, scope);
  if (accountWide === true && key.senderId !== null)
    throw new AppError("permission_error", "This takes an account-wide key.");
}

async function runOpen(deps: DispatchDeps, route: Route, routed: RoutedRequest): Promise<Answer> {
  const { request } = routed;
  const query = readQuery(route.query, request.url);
  const { clock, maxBodyBytes: maxBytes } = deps;
  const bytes =
    route.body === undefined ? NO_BYTES : await readBody(request, { clock, maxBytes, place: null });
  const now = deps.clock.now();
  const body = bodyOf(route, bytes, request, now);
  return route.handle(
    contextOf(deps, routed, NOBODY, { now, query, body, record: () => [], expectAnswer: UNBOUNDED }),
  );
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
function bodyOf(route: Route, bytes: Uint8Array, request: Request, now: number): unknown {
  const body = parseJson(bytes, request.headers);
  if (route.body === undefined || route.bodyCheckedBy === "handler") return body;
  if (body === undefined && route.bodyOptional === true) return {};
  const issues = check(route.body, body);
  const refuse = () => {
    throw validationError(issues);
  };
  if (issues.length > 0) readAll(refuse, () => checkTheRest(route, body, issues, now));
  return body;
}

/** Checks the route's own rules over the fields that the schema has nothing against. Throws 422. */
function checkTheRest({ rules }: Route, body: unknown, issues: readonly Issue[], now: number): void {
  const fields = issues.map(({ message, param }) => ({ message, param: /^[^.[]*/.exec(param)?.[0] ?? "" }));
  // It is no object, or which of its other fields have their shape is not known.
  if (rules === undefined || fields[0]?.param === "" || fields.length >= MAX_ISSUES) return;
  rules(withoutFaults(body as object, fields) as never, now);
}

/** The path as asked for; with and without a slash at its end it is the same. */
function pathOf(request: Request): string {
  return new URL(request.url, "http://localhost").pathname.replace(/\/$/, "");
}

type Parts = Pick<CheckedRequest, "now" | "record" | "expectAnswer"> & {
  query: Record<string, unknown>;
  body: unknown;
};

function contextOf(
  deps: DispatchDeps,
  { request, params, requestId, ip }: RoutedRequest,
  { principal, project, owner }: Caller,
  { now, query, body, record, expectAnswer }: Parts,
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
    expectAnswer,
    senderId: project === null ? null : project.id,
    project,
    page: () => openPage({ key: deps.cursorKey, path: pathOf(request), owner, query }),
  };
}
