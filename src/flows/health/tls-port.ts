import type { Clock } from "../../core/time/clock.ts";
import type { Resolver } from "../../net/dns/resolver.ts";
import { fetchStsPolicy } from "../../net/mta-sts-fetch.ts";
import type { Db } from "../../store/engine/client.ts";
import type { HostSettings } from "../certificates/domain-hosts.ts";
import { ownPolicy } from "../certificates/own-policy.ts";
import { mtaStsHost } from "../../core/own-names.ts";
import { type Check, type Finding, ok, warn } from "./check.ts";

/** Port at which senders ask for policies and browsers follow links. */
const HTTPS_PORT = 443;
const FIX =
  "Forward port 443 of PUBLIC_IPS to TLS_PORT, without a proxy that ends TLS. If this machine cannot reach its own public address, ask for the URL from another one.";

export interface TlsPortParts {
  db: () => Db;
  clock: Clock;
  resolver: Resolver;
  settings: HostSettings;
  /** Another port, and the trusted authorities in PEM, for tests. */
  port?: number;
  ca?: string;
}

/**
 * Returns the check that the public port 443 leads to TLS_PORT; none if that is off. It requests a policy as a
 * sender does, since links in messages and policies name no port.
 */
export function tlsPortChecks(parts: TlsPortParts): Check[] {
  if (parts.settings.tlsPort === null) return [];
  return [{ name: "tls port", run: () => look(parts), fix: FIX, needsDatabase: true }];
}

async function look(parts: TlsPortParts): Promise<Finding> {
  const { db, clock, resolver, settings, port = HTTPS_PORT, ca } = parts;
  const { serviceDomain } = settings;
  if ((await ownPolicy({ db: db(), clock }, settings)) === null)
    return ok("No MTA-STS policy is served yet, so port 443 was not tried.");
  const deps = { clock, resolver, mayReach: () => true, ...(ca === undefined ? {} : { ca }) };
  const found = await fetchStsPolicy(deps, serviceDomain, { port, allowPrivate: true });
  const host = mtaStsHost(serviceDomain);
  if (found.kind === "policy") return ok(`Port 443 of ${host} leads to TLS_PORT.`);
  return warn(`The policy at ${host} cannot be read as senders read it: ${found.reason}.`, FIX);
}
