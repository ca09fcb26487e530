import type { Key } from "../../core/crypto/key-ring.ts";
import { type Static, Type } from "@sinclair/typebox";
import { AppError, invalid } from "../../core/errors.ts";
import { networkOf } from "../../core/networks.ts";
import { useStartToken } from "../../flows/account/start-link.ts";
import type { Db } from "../../store/engine/client.ts";
import { keyOfSecret } from "../access/auth.ts";
import { isSecurePage, requireOwnPage } from "../access/own-page.ts";
import { requireAllowed, type SignInLimiter } from "../access/rate.ts";
import { endedCookie, sessionCookie } from "../access/session.ts";
import { meRoute } from "../routes/projects/account.ts";
import { noContent } from "../routing/answer.ts";
import { openRoute, type Route } from "../routing/route.ts";
import type { Configured } from "../routing/parts.ts";

export interface SessionDeps extends Configured {
  /** Seals the cookies. */
  sessionKey: Key;
  /** Null: attempts are not limited. */
  signIns: SignInLimiter | null;
}

const PATH = "/ui/session";

/** Largest body of a sign-in, bytes. */
const MAX_SIGN_IN_BYTES = 4096;

const SignIn = Type.Object({
  key: Type.Optional(Type.String({ description: "An API key." })),
  token: Type.Optional(Type.String({ description: "The token of a start link, instead of a key." })),
});

/** Returns the routes with which the dashboard signs in and out, and asks who it is. */
export function sessionRoutes(deps: SessionDeps): Route[] {
  const me = meRoute(deps);
  return [
    signInRoute(deps),
    signOutRoute(deps),
    { ...me, path: PATH, operationId: "getSession", summary: "Get the session's key", browserLoads: true },
  ];
}

function signInRoute({ db, config, sessionKey, signIns }: SessionDeps): Route {
  return openRoute({
    method: "POST",
    path: PATH,
    operationId: "signIn",
    summary: "Open a session of the dashboard",
    body: SignIn,
    bodyLimit: MAX_SIGN_IN_BYTES,
    answers: { 204: null },
    errors: ["authentication_error", "permission_error", "rate_limited"],
    async handle({ request, body, ip, now }) {
      // Otherwise another page could sign the browser in with its own key (login CSRF).
      requireOwnPage(request, {}, config.publicUrl);
      if (signIns !== null) requireAllowed(await signIns(ip === null ? "unknown" : networkOf(ip)));
      const keyId = await keyOf(db, body, now);
      const session = { keyId, secure: isSecurePage(request) };
      return { ...noContent(), headers: { "set-cookie": sessionCookie(session, sessionKey, now) } };
    },
  });
}

/**
 * Returns the id of the key that the session gets.
 * @throws AppError 401 if key or token are not valid; 422 unless there is one of them
 */
async function keyOf(db: Db, { key, token }: Static<typeof SignIn>, now: number): Promise<string> {
  if ((key === undefined) === (token === undefined))
    throw invalid("key", "must be an API key, or left out if there is a token.", "missing_field");
  if (key !== undefined) return (await keyOfSecret(db, key)).key.id;
  const keyId = await useStartToken(db, token ?? "", now);
  if (keyId !== null) return keyId;
  throw new AppError(
    "authentication_error",
    "This link has been used, or is older than 15 minutes. The command postrider open makes another one.",
  );
}

function signOutRoute({ config }: SessionDeps): Route {
  return openRoute({
    method: "DELETE",
    path: PATH,
    operationId: "signOut",
    summary: "End the session of this browser",
    answers: { 204: null },
    errors: ["permission_error"],
    handle({ request }) {
      requireOwnPage(request, {}, config.publicUrl);
      return { ...noContent(), headers: { "set-cookie": endedCookie(isSecurePage(request)) } };
    },
  });
}
