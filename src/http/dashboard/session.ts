import type { Key } from "../../core/crypto/key-ring.ts";
import { type Static, Type } from "@sinclair/typebox";
import { AppError, invalid } from "../../core/errors.ts";
import { networkOf } from "../../core/networks.ts";
import type { NoteRefused } from "../../flows/account/refused-sign-ins.ts";
import { type Browser, useSignInLink } from "../../flows/account/sign-in.ts";
import { useStartToken } from "../../flows/account/start-link.ts";
import type { Db } from "../../store/engine/client.ts";
import { keyOfSecret } from "../access/auth.ts";
import { isSecurePage, requireOwnPage } from "../access/own-page.ts";
import { requireAllowed, type SignInLimiter } from "../access/rate.ts";
import { endSession } from "../../store/projects/member-sessions.ts";
import { log } from "../../log.ts";
import { endedCookie, isMemberSession, readSession, sessionCookie } from "../access/session.ts";
import { meRoute } from "../routes/projects/account.ts";
import { noContent } from "../routing/answer.ts";
import { openRoute, type Route } from "../routing/route.ts";
import type { Configured } from "../routing/parts.ts";

export interface SessionDeps extends Configured {
  /** Seals the cookies. */
  sessionKey: Key;
  /** Null: attempts are not limited. */
  signIns: SignInLimiter | null;
  /** Notes refused sign-ins, by key, link and provider together. */
  noteRefused: NoteRefused;
  /** Sends a link to the member with the address, if there is one. */
  mailLinkTo: (email: string) => Promise<void>;
}

const PATH = "/ui/session";

/** Largest body of a sign-in, bytes. */
const MAX_SIGN_IN_BYTES = 4096;

const SignIn = Type.Object({
  key: Type.Optional(Type.String({ description: "An API key." })),
  token: Type.Optional(Type.String({ description: "The token of a start link, instead of a key." })),
  email: Type.Optional(
    Type.String({
      description: "The address of a member, who gets a link by mail. It opens no session yet.",
    }),
  ),
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

function signInRoute({ db, config, sessionKey, signIns, noteRefused: note, mailLinkTo }: SessionDeps): Route {
  return openRoute({
    method: "POST",
    path: PATH,
    operationId: "signIn",
    summary: "Open a session of the dashboard",
    body: SignIn,
    bodyLimit: MAX_SIGN_IN_BYTES,
    answers: { 204: null },
    errors: ["authentication_error", "permission_error", "rate_limited"],
    async handle({ request, requestId, body, ip, now }) {
      // Otherwise another page could sign the browser in with its own key (login CSRF).
      requireOwnPage(request, {}, config.publicUrl);
      if (signIns !== null) requireAllowed(await signIns(ip === null ? "unknown" : networkOf(ip)));
      const given = oneOf(body);
      if (given.email !== undefined) {
        // The answer waits for nothing, so that its time does not tell whether the address has a member.
        void mailLinkTo(given.email).catch((error: unknown) =>
          log("members").warn("no link was mailed", { error }),
        );
        return noContent();
      }
      const userAgent = request.headers.get("user-agent");
      const keyId = await holderOf(db, given, { ip, userAgent, requestId }, now).catch(async (error) => {
        const how = given.key === undefined ? "link" : "key";
        if (error instanceof AppError)
          await note({ how, reason: error.message, email: null, ip, requestId }, now);
        throw error;
      });
      const session = { keyId, secure: isSecurePage(request) };
      return { ...noContent(), headers: { "set-cookie": sessionCookie(session, sessionKey, now) } };
    },
  });
}

/** Throws 422 unless the body has one of its fields. */
function oneOf(body: Static<typeof SignIn>): Static<typeof SignIn> {
  const { key, token, email } = body;
  if ([key, token, email].filter((field) => field !== undefined).length === 1) return body;
  throw invalid("key", "must be an API key, or left out if there is a token or an email.", "missing_field");
}

/**
 * Returns the id of the key, or of the member's session, that the cookie names.
 * @throws AppError 401 if key or token are not valid
 */
async function holderOf(
  db: Db,
  { key, token = "" }: Static<typeof SignIn>,
  browser: Browser,
  now: number,
): Promise<string> {
  if (key !== undefined) return (await keyOfSecret(db, key)).key.id;
  const id = (await useStartToken(db, token, now)) ?? (await useSignInLink(db, token, browser, now));
  if (id !== null) return id;
  throw new AppError(
    "authentication_error",
    "This link has been used, or is older than 15 minutes. The sign-in page mails another one to members, and the command postrider open makes one.",
  );
}

function signOutRoute({ db, config, sessionKey }: SessionDeps): Route {
  return openRoute({
    method: "DELETE",
    path: PATH,
    operationId: "signOut",
    summary: "End the session of this browser",
    answers: { 204: null },
    errors: ["permission_error"],
    async handle({ request, now }) {
      requireOwnPage(request, {}, config.publicUrl);
      const session = readSession(request.headers, sessionKey, now);
      if (session !== null && session !== "ended" && isMemberSession(session.keyId))
        await endSession(db, session.keyId);
      return { ...noContent(), headers: { "set-cookie": endedCookie(isSecurePage(request)) } };
    },
  });
}
