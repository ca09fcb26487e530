import { within } from "../../../core/time/clock.ts";
import type { PublicDkimKey } from "../../../store/domains/dkim-keys.ts";
import type { Domain } from "../../../store/domains/domains.ts";
import type { Checking } from "../../domains/checking.ts";
import { shownLookups } from "../../domains/diagnose.ts";
import type { SpfCheck } from "../../domains/spf-check.ts";
import { CHECK_LIMIT_MS, type Finding } from "../check.ts";
import { keyWeakness, lengthFault } from "./dkim-keys.ts";
import { spfWeakness } from "./domains.ts";
import { bimiWeakness, dmarcWeakness, parentWeakness } from "./policies.ts";

/**
 * Returns sentences about what some receivers mind in the records of a domain, each with its fix, as `doctor` finds them. If the
 * DNS is slow, there are none.
 */
export async function domainWarnings(
  deps: Checking,
  domain: Domain,
  { keys, spf }: { keys: readonly PublicDkimKey[]; spf: SpfCheck },
): Promise<string[]> {
  if (deps.isCaptureDomain(domain.name)) return [];
  return within(deps.clock, CHECK_LIMIT_MS, found(deps, domain, keys, spf), []);
}

async function found(
  deps: Checking,
  domain: Domain,
  all: readonly PublicDkimKey[],
  spf: SpfCheck,
): Promise<string[]> {
  const { lookups } = await shownLookups(deps, domain);
  const keys = all.filter(({ status }) => status === "active");
  const findings: (Finding | null)[] = await Promise.all([
    lengthFault(domain, keys),
    spfWeakness(spf),
    dmarcWeakness(lookups, domain.name, deps.serviceDomain),
    // Our own zone has no records of the domain above.
    parentWeakness(deps.lookups, domain.name),
    bimiWeakness(lookups, domain.name),
    keyWeakness(lookups, domain, { keys, now: deps.clock.now() }),
  ]);
  return findings.flatMap((one) => (one === null ? [] : [`${one.message} ${one.fix ?? ""}`.trim()]));
}
