import { AppError } from "../../core/errors.ts";
import type { PresentedKey } from "../../store/projects/keys.ts";
import type { Project } from "../../store/projects/projects.ts";
import type { Principal, Route } from "../routing/route.ts";
import { type AuthDeps, type Authenticated, authenticate } from "./auth.ts";
import { namedProject, PROJECT_PARAM, resolveProject } from "./project.ts";
import { ACCOUNT_PLAN, type RateLimiter, takeRate } from "./rate.ts";
import { requireRights } from "./key-rights.ts";

export interface Caller {
  principal: Principal | null;
  project: Project | null;
  /** Owner of lists, cursors and idempotency keys. The memory and turn of a body count for it too. */
  owner: string;
}

/** The caller of an open route. */
export const NOBODY: Caller = { principal: null, project: null, owner: "" };

/** Key, project and rights of a request, as the database has them at one moment. */
export interface Identity extends Authenticated {
  caller: Caller;
  /** Why the key may not act for the named project. The request counts against the rate nevertheless. */
  refusal: AppError | null;
  /** Milliseconds. */
  at: number;
  /** When the key was read, milliseconds of `Clock.elapsed`. */
  readAt: number;
}

/**
 * Returns the caller of a request.
 * @throws AppError 401 or 403 if there is no key that the request may use
 */
export async function identify(deps: AuthDeps, route: Route, request: Request): Promise<Identity> {
  const name = (isSession: boolean) => nameIn(request, isSession && route.browserLoads === true);
  const authenticated = await authenticate(deps, route, request, name);
  const { presented, session } = authenticated;
  const times = { at: deps.clock.now(), readAt: deps.clock.elapsed() };
  try {
    const caller = await callerOf(deps, route, presented, () => name(session !== null));
    return { ...authenticated, caller, refusal: null, ...times };
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    return { ...authenticated, caller: NOBODY, refusal: error, ...times };
  }
}

/** Returns the project that a request names. A frame, a link and an EventSource can do so only in their URL. */
function nameIn({ headers, url }: Request, fromUrl: boolean): string | null {
  const inUrl = fromUrl ? new URL(url, "http://localhost").searchParams.get(PROJECT_PARAM) : null;
  return namedProject(headers) ?? inUrl;
}

async function callerOf(
  deps: AuthDeps,
  route: Route,
  presented: PresentedKey,
  name: () => string | null,
): Promise<Caller> {
  const { id, accountId, senderId, scopes, allowRecipients, approval, inboxIds } = presented.key;
  const grant = presented.session?.grant ?? id;
  const principal = {
    keyId: id,
    grant,
    accountId,
    senderId,
    scopes,
    bounds: { allowRecipients, approval, inboxIds },
  };
  if (route.level === "account") return { principal, project: null, owner: senderId ?? accountId };
  const project = await resolveProject(deps.db, presented, name());
  return { principal, project, owner: project.id };
}

/** Counts the request for its project, or for its key if there is none, so guessing project names counts too. */
export async function countRequest(
  limiter: RateLimiter | null,
  { presented, caller: { project } }: Identity,
  headers: Record<string, string | number>,
): Promise<void> {
  await takeRate(limiter, project?.id ?? presented.key.id, project?.plan ?? ACCOUNT_PLAN, headers);
}

/** Time for a body to arrive before the key is checked again, milliseconds. */
const FRESH_MS = 1000;

/**
 * Returns the caller. If the body came slowly, reads the caller again. A client that holds a request open must not
 * act after its key was revoked or its project suspended.
 */
export async function stillAllowed(
  deps: AuthDeps,
  route: Route,
  request: Request,
  arrived: Identity,
): Promise<Identity> {
  if (deps.clock.elapsed() - arrived.readAt <= FRESH_MS) return arrived;
  const again = await identify(deps, route, request);
  if (again.refusal !== null) throw again.refusal;
  requireRights(route, again.presented.key);
  return again;
}
