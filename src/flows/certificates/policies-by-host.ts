import { createTaskLimit } from "../../core/concurrency/admission.ts";
import { AppError } from "../../core/errors.ts";
import { cacheFor } from "../../core/time/clock.ts";
import { createTtlCache } from "../../net/dns/cache.ts";
import { findServedDomain } from "../../store/domains/domains.ts";
import { mtaStsHost } from "../../core/own-names.ts";
import type { HostSettings } from "./domain-hosts.ts";
import { domainPolicy, type OwnPolicy, ownPolicy } from "./own-policy.ts";
import type { Store } from "../../store/engine/client.ts";

/** Time for which a policy is kept. Any number of requests for it read the database once in it. */
const FRESH_SECONDS = 1;
/** Maximum number of policies that are kept, each a hundred octets. */
const MAX_KEPT = 1000;
/** Reads of the database at a time for hosts that are not kept, and those that may wait. Further ones fail at once. */
const LOOKUPS = 8;
const MAX_WAITING = 100;
const PREFIX = "mta-sts.";

/**
 * Makes the search for the policy that a host serves: that of the service domain or of a delegated domain; null if there is
 * none. The host may be any text. The function throws AppError 503 if too many lookups wait.
 */
export function policiesByHost(
  deps: Store,
  settings: HostSettings,
): (host: string) => Promise<OwnPolicy | null> {
  const { db, clock } = deps;
  const own = cacheFor(clock, FRESH_SECONDS * 1000, () => ownPolicy(deps, settings));
  const known = createTtlCache<OwnPolicy>(clock, MAX_KEPT);
  const runLookup = createTaskLimit(LOOKUPS, MAX_WAITING);
  const look = async (name: string): Promise<OwnPolicy | null> => {
    const domain = await findServedDomain(db, [name]);
    return domain === null ? null : domainPolicy(deps, settings, domain);
  };
  return async (host) => {
    if (host === mtaStsHost(settings.serviceDomain)) return own();
    if (!host.startsWith(PREFIX)) return null;
    const kept = known.get(host);
    if (kept !== undefined) return kept;
    const found = await runLookup(async () => ({ policy: await look(host.slice(PREFIX.length)) }));
    if (found === null)
      throw new AppError("service_unavailable", "Too many requests for policies wait. Try again.");
    // Unknown hosts are not kept, because they would evict real ones.
    if (found.policy !== null) known.set(host, found.policy, FRESH_SECONDS);
    return found.policy;
  };
}
