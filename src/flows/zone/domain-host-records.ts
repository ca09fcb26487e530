import type { ZoneRecord } from "../../net/zone/records.ts";
import { challengesOf } from "../../store/domains/certificates.ts";
import type { Domain } from "../../store/domains/domains.ts";
import { domainHosts, hostsDomains } from "../certificates/domain-hosts.ts";
import { domainPolicy } from "../certificates/own-policy.ts";
import { announcementOf, CERTIFICATE_TTL_SECONDS, CHALLENGE_TTL_SECONDS } from "./changing-records.ts";
import { challengeName, stsRecordName } from "../../core/own-names.ts";
import { addresses, POLICY_TTL_SECONDS } from "./service-zone.ts";
import type { ZoneSettings } from "./zone-settings.ts";
import type { Store } from "../../store/engine/client.ts";

/**
 * Returns the names of a delegated domain that belong to its hosts. Its owner has no records there, whether or not the
 * installation serves hosts now.
 */
export function namesOfHosts(domain: string): string[] {
  const hosts = domainHosts(domain);
  return [...hosts, ...hosts.map(challengeName), stsRecordName(domain)];
}

/**
 * Returns the records of a delegated domain's hosts: their addresses and the answers to challenges of the pending
 * order. While the MTA-STS policy is served, they also announce it.
 */
export async function domainHostRecords(
  deps: Store,
  settings: ZoneSettings,
  domain: Domain,
): Promise<ZoneRecord[]> {
  if (!hostsDomains(settings)) return [];
  const [challenges, policy] = await Promise.all([
    challengesOf(deps.db, domain.id),
    domainPolicy(deps, settings, domain),
  ]);
  const text = (name: string, ttl: number, data: string): ZoneRecord => ({ name, ttl, type: "TXT", data });
  return [
    ...domainHosts(domain.name).flatMap((host) => addresses(host, settings.publicIps, POLICY_TTL_SECONDS)),
    ...challenges.map(({ name, value }) => text(name, CHALLENGE_TTL_SECONDS, value)),
    ...(policy === null
      ? []
      : [text(stsRecordName(domain.name), CERTIFICATE_TTL_SECONDS, announcementOf(policy))]),
  ];
}
