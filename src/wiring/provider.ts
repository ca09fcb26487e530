import type { Config } from "../config.ts";
import { cacheFor, type Clock } from "../core/time/clock.ts";
import type { Provider } from "../flows/account/provider-sign-in.ts";
import { openIdClient } from "../net/openid.ts";

/** Time for which the configuration of an OpenID provider is kept, milliseconds. A failure is, too. */
const PROVIDER_FRESH_MS = 10_000;

/** Returns the OpenID provider that signs members in; null if there is none. */
export function providerOf({ config, clock }: { config: Config; clock: Clock }): Provider | null {
  const { oidcIssuer: issuer, oidcClientId: clientId, oidcClientSecret: clientSecret } = config;
  if (issuer === null || clientId === null) return null;
  const keep = <Value>(make: () => Promise<Value>) => cacheFor(clock, PROVIDER_FRESH_MS, make);
  return {
    client: openIdClient({ issuer, clientId, clientSecret }, keep),
    rules: { allow: config.oidcAllow, roleClaim: config.oidcRoleClaim },
  };
}

/** Returns the host of the OpenID provider as the sign-in page names it; null if there is none. */
export function providerHost({ oidcIssuer: issuer }: Config): string | null {
  return issuer === null ? null : new URL(issuer).host;
}
