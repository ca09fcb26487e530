import * as openid from "openid-client";

/** An OpenID provider, and what it knows this service by. */
export interface OpenIdClient {
  /** Its URL. Plain http is taken, so the setting allows that at loopback hosts only. */
  issuer: string;
  clientId: string;
  /** Null: a public client, which PKCE alone protects. */
  clientSecret: string | null;
}

/** The values that a browser brings back to prove that it began the sign-in. */
export interface OpenIdChecks {
  state: string;
  nonce: string;
  /** The secret of PKCE (RFC 7636). */
  verifier: string;
}

/** Speaks to an OpenID provider: authorization code flow with PKCE (OpenID Connect Core §3.1). */
export interface OpenId {
  /** Begins a sign-in. Rejects if the provider does not answer. */
  begin(redirectUri: string): Promise<{ url: string; checks: OpenIdChecks }>;
  /** Returns the claims about the person. @param answerUrl the URL that the provider sent the browser to */
  claims(answerUrl: string, checks: OpenIdChecks): Promise<Readonly<Record<string, unknown>>>;
}

/** Seconds that a request to the provider may take. */
const TIMEOUT_SECONDS = 10;

/**
 * Returns a client of the provider. It reads the provider's configuration at the first sign-in, and again when that failed
 * or is an hour old. @param keep returns a function that makes its value at most once an hour
 */
export function openIdClient(
  { issuer, clientId, clientSecret }: OpenIdClient,
  keep: <Value>(make: () => Promise<Value>) => () => Promise<Value>,
): OpenId {
  const configuration = keep(() =>
    openid.discovery(
      new URL(issuer),
      clientId,
      undefined,
      clientSecret === null ? openid.None() : openid.ClientSecretPost(clientSecret),
      {
        timeout: TIMEOUT_SECONDS,
        execute: issuer.startsWith("http:") ? [openid.allowInsecureRequests] : [],
      },
    ),
  );
  return {
    async begin(redirectUri) {
      const checks = {
        state: openid.randomState(),
        nonce: openid.randomNonce(),
        verifier: openid.randomPKCECodeVerifier(),
      };
      const url = openid.buildAuthorizationUrl(await configuration(), {
        redirect_uri: redirectUri,
        scope: "openid email profile",
        state: checks.state,
        nonce: checks.nonce,
        code_challenge: await openid.calculatePKCECodeChallenge(checks.verifier),
        code_challenge_method: "S256",
      });
      return { url: url.href, checks };
    },
    async claims(answerUrl, { state, nonce, verifier }) {
      const config = await configuration();
      const tokens = await openid.authorizationCodeGrant(config, new URL(answerUrl), {
        expectedState: state,
        expectedNonce: nonce,
        pkceCodeVerifier: verifier,
        idTokenExpected: true,
      });
      const claims = tokens.claims();
      if (claims === undefined) throw new Error("the provider sent no ID token");
      // Many providers put the address into the answer of their userinfo endpoint only (OpenID Connect Core §5.4).
      if (claims.email !== undefined || config.serverMetadata().userinfo_endpoint === undefined)
        return claims;
      return { ...claims, ...(await openid.fetchUserInfo(config, tokens.access_token, claims.sub)) };
    },
  };
}
