import { Type } from "@sinclair/typebox";
import { invalid } from "../../core/errors.ts";
import { networkOf } from "../../core/networks.ts";
import type { Db } from "../../store/engine/client.ts";
import { keyOfSecret } from "../access/auth.ts";
import { isSecurePage, requireOwnPage } from "../access/own-page.ts";
import { requireAllowed, type SignInLimiter } from "../access/rate.ts";
import { endedCookie, sessionCookie } from "../access/session.ts";
import { type AccountDeps, meRoute } from "../routes/account.ts";
import { noContent } from "../answer.ts";
import { openRoute, type Route } from "../route.ts";

export interface SessionDeps {
  db: Db;
  config: AccountDeps["config"] & { publicUrl: string };
  /** Seals the cookies. */
  sessionKey: Uint8Array;
  /** Null: attempts are not limited. */
  signIns: SignInLimiter | null;
}

const PATH = "/ui/session";

/** Largest body of a sign-in, bytes. */
const MAX_SIGN_IN_BYTES = 4096;

const SignIn = Type.Object({
  key: Type.Optional(Type.String({ description: "An API key." })),
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
      // Otherwise another page could sign the browser in with a key of its own (login CSRF).
      requireOwnPage(request, {}, config.publicUrl);
      if (signIns !== null) requireAllowed(await signIns(ip === null ? "unknown" : networkOf(ip)));
      if (body.key === undefined) throw invalid("key", "must be an API key.", "missing_field");
      const { key } = await keyOfSecret(db, body.key);
      const session = { keyId: key.id, secure: isSecurePage(request) };
      return { ...noContent(), headers: { "set-cookie": sessionCookie(session, sessionKey, now) } };
    },
  });
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
