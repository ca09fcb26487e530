import { within } from "../../../core/time/clock.ts";
import type { Resolver } from "../../../net/dns/resolver.ts";
import type { PublicDkimKey } from "../../../store/domains/dkim-keys.ts";
import type { Domain } from "../../../store/domains/domains.ts";
import type { Checking } from "../../domains/checking.ts";
import { shownLookups } from "../../domains/diagnose.ts";
import type { SpfCheck } from "../../domains/spf-check.ts";
import { CHECK_LIMIT_MS, type Finding } from "../check.ts";
import { alignmentFault, type AlignmentParts } from "./alignment.ts";
import { keyWeakness, lengthFault } from "./dkim-keys.ts";
import { type LinkFaultOf, ownHostFault, spfWeakness } from "./domains.ts";
import { bimiWeakness, dmarcWeakness, parentWeakness, zoneWeakness } from "./policies.ts";

/** The services that look at a domain's mail as receivers do. */
export interface ReceiverView extends Pick<AlignmentParts, "signersOf"> {
  resolver: Resolver;
  linkFaultOf: LinkFaultOf | null;
}

export interface WarningDeps extends Checking {
  /** Null if no mail leaves. */
  receivers: ReceiverView | null;
}

/**
 * Returns sentences about what some receivers mind in the records and the mail of a domain, each with its fix, as `doctor` finds them.
 * A finding is left out if the DNS is too slow.
 */
export async function domainWarnings(
  deps: WarningDeps,
  domain: Domain,
  { keys: all, spf }: { keys: readonly PublicDkimKey[]; spf: SpfCheck },
): Promise<string[]> {
  const { clock, lookups: outside, serviceDomain } = deps;
  if (deps.isCaptureDomain(domain.name)) return [];
  const { lookups } = await shownLookups(deps, domain);
  const keys = all.filter(({ status }) => status === "active");
  const looked: (Finding | null | Promise<Finding | null>)[] = [
    lengthFault(domain, keys),
    spfWeakness(spf),
    dmarcWeakness(lookups, domain.name, serviceDomain),
    // Our own zone has no records of the domain above.
    parentWeakness(outside, domain.name),
    bimiWeakness(lookups, domain.name),
    keyWeakness(lookups, domain, { keys, now: clock.now() }),
    ...(deps.receivers === null ? [] : seenByReceivers(deps, deps.receivers, domain)),
  ];
  const findings = await Promise.all(
    looked.map((finding) => within(clock, CHECK_LIMIT_MS, Promise.resolve(finding), null)),
  );
  return findings.flatMap((one) => (one === null ? [] : [`${one.message} ${one.fix ?? ""}`.trim()]));
}

/** A message is tried once the DKIM records are found: before, they are what is wrong. */
function seenByReceivers(deps: Checking, receivers: ReceiverView, domain: Domain): Promise<Finding | null>[] {
  const { resolver, linkFaultOf } = receivers;
  return [
    ...(domain.verified.dkim ? [alignmentFault({ ...deps, ...receivers }, domain)] : []),
    zoneWeakness(resolver, domain.name),
    ownHostFault(domain, linkFaultOf),
  ];
}
