import { type Actor, actingAs } from "../../core/actor.ts";
import type { Key } from "../../core/crypto/key-ring.ts";
import type { Quotas } from "../../core/quotas.ts";
import { lowDisk } from "../../flows/free-space.ts";
import { NO_LIMIT } from "../../store/projects/holdings.ts";
import type { PresentedKey } from "../../store/projects/keys.ts";
import type { Statement } from "../../store/engine/client.ts";
import type { Answer } from "../routing/answer.ts";
import {
  type Caller,
  countRequest,
  type Identity,
  identify,
  NOBODY,
  stillAllowed,
} from "../access/identity.ts";
import type { AuthDeps } from "../access/auth.ts";
import { inSteps, parseJson, readBody, requireConnection } from "../body/body.ts";
import {
  type BeginReservation,
  LARGE_BODY_OCTETS,
  type Reservation,
  type RunForBody,
  yieldAround,
} from "../body/budget.ts";
import { requireInbox } from "../access/key-inboxes.ts";
import { requireRights } from "../access/key-rights.ts";
import { freeMemory } from "../body/pieces.ts";
import { openUpload } from "../body/upload.ts";
import type { BeginAnswer } from "./download.ts";
import {
  type Fingerprint,
  readIdempotencyKey,
  runOnce,
  type IdempotencyDeps,
} from "../access/idempotency.ts";
import { fingerprint } from "../json/fingerprint.ts";
import type { RunSteps } from "../json/steps.ts";
import type { KeyUse } from "../access/key-use.ts";
import { networkOf } from "../../core/networks.ts";
import { bodyReading } from "./body-limits.ts";
import { limitsFor } from "./limits.ts";
import { shownTo } from "../routing/shown.ts";
import { openPage } from "../routing/paging.ts";
import { pathOf, readQuery } from "../routing/query.ts";
import { ACCOUNT_PLAN, type KeyLimiter, type RateLimiter, takeKey, takeRate } from "../access/rate.ts";
import type { RunCostly } from "../../core/concurrency/costly-work.ts";
import type { CheckedRequest, Method, Route } from "../routing/route.ts";
import { warner } from "./warnings.ts";
import type { RightOfWay } from "../../core/concurrency/right-of-way.ts";
import { type Issue, readAll, validationError } from "../../core/errors.ts";
import { check, MAX_ISSUES, namedFields, withoutFaults } from "../../core/validation.ts";

export interface DispatchDeps extends AuthDeps, IdempotencyDeps {
  /** Authenticates cursors. */
  cursorKey: Key;
  maxBodyBytes: number;
  /** Token buckets. Null: there is no rate limit. */
  limiter: RateLimiter | null;
  keyUse: KeyUse;
  reserveBody: BeginReservation;
  runForBody: RunForBody;
  runCostly: RunCostly;
  rightOfWay: RightOfWay;
  /** Counts the DKIM keys of a project; null if there is no limit. */
  keyLimiter: KeyLimiter | null;
  /** Reads large bodies in steps. */
  runSteps: RunSteps;
  answers: BeginAnswer;
  /** The limits of each plan. */
  quotas: Quotas;
}

export interface RoutedRequest {
  request: Request;
  params: Readonly<Record<string, string>>;
  requestId: string;
  ip: string | null;
  /** Headers of the answer, also if the request fails. */
  headers: Record<string, string | number>;
}

const NO_BYTES = new Uint8Array();
/** Reserves nothing, for answers without a limit. */
const UNBOUNDED = (): void => undefined;

/** Methods whose requests may have a body. If another method has one, it is not read. */
const WITH_BODY: ReadonlySet<Method> = new Set(["POST", "PATCH", "PUT"]);

/** Runs one request: checks key, project, rate, rights and values, and then calls the handler. */
export async function dispatch(deps: DispatchDeps, route: Route, routed: RoutedRequest): Promise<Answer> {
  const { request } = routed;
  if (route.level === "open") return runOpen(deps, route, routed);
  const arrived = await identify(deps, route, request);
  const { key, session } = arrived.presented;
  deps.keyUse.note({ id: session?.id ?? key.id, lastUsedAt: key.lastUsedAt }, arrived.at);
  const renewal = arrived.session?.renewal ?? null;
  if (renewal !== null) routed.headers["set-cookie"] = renewal;
  await countRequest(deps.limiter, arrived, routed.headers);
  if (arrived.refusal !== null) throw arrived.refusal;
  requireRights(route, arrived.presented.key);
  const { principal } = arrived.caller;
  if (principal !== null) await requireInbox(deps.db, route, principal, routed.params);
  if (route.stores !== undefined && deps.space.low()) throw lowDisk();
  const query = readQuery(route.query, request.url);
  const { owner } = arrived.caller;
  const reservation = deps.reserveBody(owner);
  // The answer to a change confirms what was done, so it is never refused for its size.
  const readsOnly = route.method === "GET" || route.readsOnly === true;
  const answers = deps.answers(owner, readsOnly);
  try {
    const reading = { ...bodyReading(deps, route), reservation };
    const upload = route.uploads === undefined ? null : openUpload(request, route.uploads, reading);
    const bytes =
      upload === null && WITH_BODY.has(route.method) ? await readBody(request, reading) : NO_BYTES;
    if (!readsOnly) await requireConnection(request);
    const expectAnswer = readsOnly ? answers.expect : UNBOUNDED;
    const incoming = { arrived, query, bytes, upload, expectAnswer };
    const run = () => deps.runForBody(owner, bytes.length, () => answerTo(deps, route, routed, incoming));
    const isFirst = route.stores !== undefined && route.costly === undefined;
    const answer = await (isFirst ? deps.rightOfWay.first(run) : deps.runCostly(route.costly, owner, run));
    const shown = shownTo(route, arrived.presented.key.scopes, answer);
    return shown.later === undefined ? answers.send(shown) : shown;
  } catch (error) {
    answers.leave();
    throw error;
  } finally {
    reservation.leave();
  }
}

/** The content of a request that is allowed. */
interface Incoming {
  arrived: Identity;
  query: Record<string, unknown>;
  /** The body, until it is parsed. A large body must not be in memory twice. */
  bytes: Uint8Array;
  /** The body of a route that takes uploads. */
  upload: ReturnType<typeof openUpload> | null;
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
  if (route.costly === "keys") await takeKey(deps.keyLimiter, owner);
  const key = route.method === "POST" ? readIdempotencyKey(request.headers) : null;
  const { own, growing, within, refuse } = limitsFor(deps.quotas, route, caller.project, key);
  const value = await parseJson(incoming.bytes, request.headers, deps.runSteps, route.byteLists);
  if (length >= LARGE_BODY_OCTETS) freeMemory(incoming.bytes);
  incoming.bytes = NO_BYTES;
  const run = async (record: (answer: Answer) => Statement[]): Promise<Answer> => {
    const body = bodyOf(route, value, now);
    // An answer in another product's dialect has no field for warnings.
    const warned = warner(route.undocumented === true ? undefined : route.body, value);
    const limited = (answer: Answer) => [...record(warned(answer)), ...own];
    const upload = incoming.upload?.upload ?? null;
    const context = { now, query, body, upload, record: limited, growing, expectAnswer };
    const handle = async () =>
      actingAs(actorOf(presented, routed), () =>
        route.handle(contextOf(deps, route, routed, caller, context)),
      );
    return warned(await (length < LARGE_BODY_OCTETS ? handle() : yieldAround(handle)).catch(refuse));
  };
  if (key === null) return run(() => []);
  const at = { scope: owner, endpoint: `POST ${namedPath(request)}`, key };
  const secretFor = route.secretAnswer === true ? presented.key.id : null;
  const print = incoming.upload?.fingerprint ?? (await printOf(value, length, deps.runSteps));
  return runOnce(deps, { at, body: print, secretFor, now, within }, run).catch(refuse);
}

async function printOf(value: unknown, octets: number, runSteps: RunSteps): Promise<Fingerprint> {
  const print = await inSteps(octets, fingerprint(value), runSteps);
  return { soFar: () => print, whole: async () => print };
}

function actorOf({ key: { id, name }, session }: PresentedKey, { ip, requestId }: RoutedRequest): Actor {
  return { type: session === undefined ? "key" : "member", id, name, ip, requestId };
}

async function runOpen(deps: DispatchDeps, route: Route, routed: RoutedRequest): Promise<Answer> {
  if (route.signedBody !== true) return answerOpen(deps, route, routed, null);
  // Signed bodies are large, and anyone may send them: each network has a rate, and together they have the memory of one
  // project. Before the body is read, so that one too many costs neither memory nor time.
  const network = routed.ip === null ? "unknown" : networkOf(routed.ip);
  await takeRate(deps.limiter, `${route.operationId}:${network}`, ACCOUNT_PLAN, routed.headers);
  const reservation = deps.reserveBody(NOBODY.owner);
  try {
    return await answerOpen(deps, route, routed, reservation);
  } finally {
    reservation.leave();
  }
}

async function answerOpen(
  deps: DispatchDeps,
  route: Route,
  routed: RoutedRequest,
  reservation: Reservation | null,
): Promise<Answer> {
  const { request } = routed;
  const query = readQuery(route.query, request.url);
  const bytes =
    route.body === undefined
      ? NO_BYTES
      : await readBody(request, { ...bodyReading(deps, route), reservation });
  if (route.method !== "GET") await requireConnection(request);
  const now = deps.clock.now();
  const isSigned = route.signedBody === true;
  const headers = isSigned ? new Headers({ "content-type": "application/json" }) : request.headers;
  const body = bodyOf(route, await parseJson(bytes, headers, deps.runSteps), now);
  const answer = await route.handle(
    contextOf(deps, route, routed, NOBODY, {
      now,
      query,
      body,
      bytes: isSigned ? bytes : NO_BYTES,
      record: () => [],
      expectAnswer: UNBOUNDED,
      growing: NO_LIMIT,
    }),
  );
  return deps.answers(NOBODY.owner).send(answer);
}

/** Returns the path of a list. Of the request's own, a waiting list would keep the whole URL in memory. */
function pageOf({ path }: Route, request: Request): string {
  return path.includes(":") ? namedPath(request) : path;
}

/** Returns the path of the request, without a slash at its end. */
function namedPath(request: Request): string {
  return pathOf(request.url).replace(/\/$/, "");
}

type Parts = Pick<CheckedRequest, "now" | "record" | "growing" | "expectAnswer"> & {
  query: Record<string, unknown>;
  body: unknown;
  bytes?: Uint8Array;
  upload?: CheckedRequest["upload"];
};

function contextOf(
  deps: DispatchDeps,
  route: Route,
  { request, params, requestId, ip }: RoutedRequest,
  { principal, project, owner }: Caller,
  { now, query, body, bytes = NO_BYTES, upload = null, record, growing, expectAnswer }: Parts,
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
    bytes,
    upload,
    record,
    growing,
    expectAnswer,
    senderId: project === null ? null : project.id,
    project,
    page: () => openPage({ key: deps.cursorKey, path: pageOf(route, request), owner, query }),
  };
}

/** Returns the fields of the body that the route's schema names, or all for `seesAllFields`. Throws 422 if they do not fit. */
export function bodyOf(route: Route, body: unknown, now: number): unknown {
  if (route.body === undefined || route.bodyCheckedBy === "handler") return body;
  if (body === undefined && route.bodyOptional === true) return {};
  const issues = check(route.body, body);
  const refuse = () => {
    throw validationError(issues);
  };
  if (issues.length > 0) readAll(refuse, () => checkTheRest(route, body, issues, now));
  return route.seesAllFields === true ? body : namedFields(route.body, body);
}

/** Checks the route's own rules for the fields that fit the schema. Throws 422. */
function checkTheRest({ rules }: Route, body: unknown, issues: readonly Issue[], now: number): void {
  const fields = issues.map(({ message, param }) => ({ message, param: /^[^.[]*/.exec(param)?.[0] ?? "" }));
  // Either the body is not an object, or the list of issues is full, so the shape of other fields is not known.
  if (rules === undefined || fields[0]?.param === "" || fields.length >= MAX_ISSUES) return;
  rules(withoutFaults(body as object, fields) as never, now);
}
