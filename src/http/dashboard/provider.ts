import { seal, unsealOrNull } from "../../core/crypto/secretbox.ts";
import { AppError } from "../../core/errors.ts";
import { networkOf } from "../../core/networks.ts";
import { MINUTE_MS } from "../../core/time/units.ts";
import {
  addressIn,
  type Checks,
  type Provider,
  signInByClaims,
} from "../../flows/account/provider-sign-in.ts";
import { log } from "../../log.ts";
import { isSecurePage } from "../access/own-page.ts";
import { requireAllowed } from "../access/rate.ts";
import { cookie, cookiesOf, sessionCookie } from "../access/session.ts";
import type { Answer } from "../routing/answer.ts";
import { openRoute, type Route } from "../routing/route.ts";
import { linkPage } from "../views/link-page.ts";
import type { SessionDeps } from "./session.ts";

const PATH = "/ui/provider";
const BACK_PATH = `${PATH}/back`;

/** Milliseconds that a person has at the provider. */
const AT_PROVIDER_MS = 10 * MINUTE_MS;

/** A browser takes the name with the prefix over https only, and only from this host. */
const SECURE_NAME = "__Host-postrider-provider";
const PLAIN_NAME = "postrider-provider";

type ProviderDeps = Omit<SessionDeps, "mailLinkTo">;

/** Returns the routes that send a browser to the OpenID provider, and take it back with a session. */
export function providerRoutes(deps: ProviderDeps, provider: Provider | null): Route[] {
  return provider === null ? [] : [beginRoute(deps, provider), backRoute(deps, provider)];
}

function beginRoute({ config, sessionKey, signIns }: ProviderDeps, { client }: Provider): Route {
  return openRoute({
    method: "GET",
    path: PATH,
    operationId: "beginProviderSignIn",
    summary: "Go to the OpenID provider to sign in",
    answers: { 302: null, 200: "text/html" },
    errors: ["rate_limited"],
    async handle({ request, ip, now }) {
      if (signIns !== null) requireAllowed(await signIns(ip === null ? "unknown" : networkOf(ip)));
      try {
        const { url, checks } = await client.begin(config.publicUrl + BACK_PATH);
        const value = seal(sessionKey, JSON.stringify({ checks, expiresAt: now + AT_PROVIDER_MS }));
        return {
          status: 302,
          body: undefined,
          headers: { location: url, "set-cookie": kept(request, value, AT_PROVIDER_MS / 1000) },
        };
      } catch (error) {
        log("members").warn("the OpenID provider does not answer", { error });
        return page("The provider does not answer. Try again in a minute, or use a link by mail.", {});
      }
    },
  });
}

function backRoute(
  { db, config, sessionKey, noteRefused: note }: ProviderDeps,
  { client, rules }: Provider,
): Route {
  return openRoute({
    method: "GET",
    path: BACK_PATH,
    operationId: "endProviderSignIn",
    summary: "Come back from the OpenID provider, which opens a session",
    answers: { 200: "text/html" },
    async handle({ request, requestId, ip, now }) {
      const used = { "set-cookie": kept(request, "", 0) };
      let email: string | null = null;
      const refuse = async (reason: string) => {
        await note({ how: "provider", reason, email, ip, requestId }, now);
        return page(reason, used);
      };
      const checks = keptChecks(request, sessionKey, now);
      // Without the cookie, another page has sent the browser here with its own answer (login CSRF).
      if (checks === null) return refuse("This sign-in was not begun in this browser, or took too long.");
      const { search } = new URL(request.url, "http://localhost");
      try {
        const claims = await client.claims(`${config.publicUrl}${BACK_PATH}${search}`, checks);
        email = addressIn(claims);
        const userAgent = request.headers.get("user-agent");
        const keyId = await signInByClaims(db, rules, claims, { ip, userAgent, requestId }, now);
        const session = { keyId, secure: isSecurePage(request) };
        // Browsers send a strict cookie only if a page of ours leads on, so this answer is no redirect.
        return page(null, { "set-cookie": sessionCookie(session, sessionKey, now) });
      } catch (error) {
        if (error instanceof AppError) return refuse(error.message);
        log("members").debug("sign-in by the OpenID provider failed", { error });
        return refuse("The provider refused the sign-in, or its answer is not valid.");
      }
    },
  });
}

/** Returns the `Set-Cookie` of a sign-in that has begun. The provider leads the browser back, so it is not strict. */
function kept(request: Request, value: string, seconds: number): string {
  const secure = isSecurePage(request);
  return cookie(secure ? SECURE_NAME : PLAIN_NAME, value, { secure, seconds, site: "Lax" });
}

function keptChecks(
  { headers }: Request,
  sessionKey: ProviderDeps["sessionKey"],
  now: number,
): Checks | null {
  const cookies = cookiesOf(headers);
  const value = cookies.get(SECURE_NAME) ?? cookies.get(PLAIN_NAME);
  const opened = value === undefined ? null : unsealOrNull(sessionKey, value);
  if (opened === null) return null;
  const { checks, expiresAt }: { checks?: Checks; expiresAt?: number } = JSON.parse(opened);
  return checks !== undefined && expiresAt !== undefined && expiresAt > now ? checks : null;
}

/** Returns the page after a sign-in. @param refusal why there is no session. Null: the page leads to the dashboard */
function page(refusal: string | null, headers: Readonly<Record<string, string>>): Answer {
  const next = refusal === null ? "/" : "/sign-in";
  const lead = refusal === null ? `<meta http-equiv="refresh" content="0;url=${next}">` : "";
  const words = refusal === null ? "You are signed in." : Bun.escapeHTML(refusal);
  const content = `<p>${words}</p><p><a href="${next}">Go on</a></p>`;
  const own = { "cache-control": "no-store", "referrer-policy": "no-referrer", ...headers };
  return linkPage("Sign in", content, { head: lead, headers: own });
}
