import { type Clock, within } from "../../core/time/clock.ts";
import { bounceDomain, mxHost } from "../../core/own-names.ts";
import { createTtlCache } from "../../net/dns/cache.ts";
import { resolveMx } from "../../net/dns/lookups.ts";
import type { Resolver } from "../../net/dns/resolver.ts";
import type { WaitingRecipient } from "../../store/messages/recipients.ts";

/** Time for which a lookup of a domain's return path counts. */
const FRESH_SECONDS = 10;
/** Domains whose last lookup is kept. */
const MAX_KEPT = 10_000;
/** Longest wait of a message for that lookup. After it, the service's own return path is used. */
const LOOKUP_TIMEOUT_MS = 2000;

/** Returns the domain of the return path of a recipient's copy. */
export type ReturnDomain = (
  due: Pick<WaitingRecipient, "receivingDomain" | "returnPathDomain">,
) => Promise<string>;

export interface ReturnDomainDeps {
  clock: Clock;
  resolver: Resolver;
  serviceDomain: string;
  /** True if no message leaves this machine. */
  capture: boolean;
}

/**
 * Makes the choice of the return path's domain: `bounce.` of the From domain, else the From domain if it receives here,
 * else our own. Many receivers refuse a sender whose domain does not resolve, so an alias found by a check is resolved
 * again before use. If the DNS does not answer in time, ours is used, which costs SPF's alignment alone.
 */
export function returnDomains({ clock, resolver, serviceDomain, capture }: ReturnDomainDeps): ReturnDomain {
  const known = createTtlCache<boolean>(clock, MAX_KEPT);
  const mx = mxHost(serviceDomain);
  const leadsHere = async (name: string): Promise<boolean> => {
    const found = await resolveMx(resolver, name, { fresh: true });
    return found.status === "ok" && found.records.some(({ exchange }) => exchange === mx);
  };
  const mayUse = async (name: string): Promise<boolean> => {
    const kept = known.get(name);
    if (kept !== undefined) return kept;
    const leads = await within(clock, LOOKUP_TIMEOUT_MS, leadsHere(name), false);
    known.set(name, leads, FRESH_SECONDS);
    return leads;
  };
  return async ({ receivingDomain, returnPathDomain }) => {
    const own = returnPathDomain === null || capture ? null : bounceDomain(returnPathDomain);
    if (own !== null && (await mayUse(own))) return own;
    return receivingDomain ?? bounceDomain(serviceDomain);
  };
}
