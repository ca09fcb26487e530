import type { Key } from "../../core/crypto/key-ring.ts";
import { AppError } from "../../core/errors.ts";
import { hashSecret } from "../../flows/account/api-keys.ts";
import { presentKey } from "../../flows/account/present-key.ts";
import type { Db, Statement, Store } from "../../store/engine/client.ts";
import { isBroken, requireGuard } from "../../store/engine/guards.ts";
import { findSession } from "../../store/projects/member-sessions.ts";
import { findKeyById, type PresentedKey, unrevokedGuard } from "../../store/projects/keys.ts";
import type { Principal, Route } from "../routing/route.ts";
import { requireOwnOrigin, requireOwnPage } from "./own-page.ts";
import { memberKey } from "./member-key.ts";
import { isMemberSession, readSession, renewedCookie } from "./session.ts";

export interface AuthDeps extends Store {
  /** Seals the cookies of sessions. */
  sessionKey: Key;
  config: { publicUrl: string };
}

/** The key of a request. */
export interface Authenticated {
  presented: PresentedKey;
  /** Set if the request has no key itself, but the cookie of a session. */
  session: { renewal: string | null } | null;
}

/** Longest secret that is checked against the database. */
const MAX_SECRET_CHARS = 512;

function refuse(message: string): AppError {
  return new AppError("authentication_error", message);
}

/** Returns the 401 for a key that is unknown or revoked. The answer does not tell which. */
export function invalidKey(): AppError {
  return refuse("This API key is not valid. It is misspelt or revoked, or belongs to another service.");
}

/**
 * Runs a write that gives or takes rights. Its guard holds while the caller's key or session does: one who is being removed must not
 * make others, or remove them, at the same time.
 * @throws AppError 401 if the key was revoked or the session has ended
 */
export async function whileGranted<Result>(
  { grant }: Pick<Principal, "grant">,
  write: (guard: Statement[]) => Promise<Result>,
): Promise<Result> {
  try {
    return await write(grant === null ? [] : [requireGuard("key_revoked", unrevokedGuard(grant))]);
  } catch (error) {
    throw isBroken(error, "key_revoked") ? invalidKey() : error;
  }
}

/** Returns the secret of an `Authorization: Bearer` header (RFC 6750 §2.1). Throws 401 if there is none. */
function bearer(header: string | null): string {
  if (header === null) throw refuse("No API key: send Authorization: Bearer <API key>.");
  const secret = /^Bearer +([\x21-\x7e]+) *$/i.exec(header)?.[1];
  if (secret === undefined || secret.length > MAX_SECRET_CHARS)
    throw refuse("The Authorization header must be Bearer, followed by an API key.");
  return secret;
}

/**
 * Returns the key of the request: of its header, or else of its session. It is read for every request, so a
 * revocation holds from the next one on.
 * @param name returns the project that the request names
 * @throws AppError 401 if the key is missing, unknown or revoked, or if the session has ended; 403 if another page
 * uses the session or a route for our pages alone
 */
export async function authenticate(
  deps: AuthDeps,
  route: Route,
  request: Request,
  name: (isSession: boolean) => string | null,
): Promise<Authenticated> {
  if (route.ownOrigin === true) requireOwnOrigin(request, deps.config.publicUrl);
  const header = request.headers.get("authorization");
  const now = deps.clock.now();
  const session = header === null ? readSession(request.headers, deps.sessionKey, now) : null;
  if (session === null) return { presented: await keyOfSecret(deps.db, bearer(header)), session: null };
  requireOwnPage(request, route, deps.config.publicUrl);
  const presented =
    session === "ended" ? null : await keyOfSession(deps.db, session.keyId, () => name(true), now);
  if (session === "ended" || presented === null) throw endedSession();
  return { presented, session: { renewal: renewedCookie(session, deps.sessionKey, now) } };
}

/** Returns the key that a session was opened with, or the one made for its member; null if the session has ended. */
async function keyOfSession(
  db: Db,
  keyId: string,
  name: () => string | null,
  now: number,
): Promise<PresentedKey | null> {
  if (!isMemberSession(keyId)) {
    const presented = await findKeyById(db, keyId);
    return presented?.key.revokedAt === null ? presented : null;
  }
  const found = await findSession(db, keyId);
  if (found === null || found.member.status !== "active" || found.session.expiresAt <= now) return null;
  return memberKey(found, name());
}

/** Returns the 401 for a session that is too old, whose key is revoked, or whose member has lost access. */
function endedSession(): AppError {
  return refuse("This session has ended. Sign in again.");
}

/**
 * Returns the key with that secret.
 * @throws AppError 401 if the key is unknown or revoked
 */
export async function keyOfSecret(db: Db, secret: string): Promise<PresentedKey> {
  const presented = await presentKey(db, hashSecret(secret));
  if (presented === null) throw invalidKey();
  return presented;
}
