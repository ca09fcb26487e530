import { createTaskLimit } from "../../core/concurrency/admission.ts";
import { inTime } from "../../core/time/clock.ts";
import { SECOND_MS } from "../../core/time/units.ts";
import { createTtlCache } from "../../net/dns/cache.ts";
import { indexZone, type Zone, type ZoneIndex, type Zones } from "../../net/zone/answer.ts";
import type { ZoneRecord } from "../../net/zone/records.ts";
import { listDkimKeys } from "../../store/domains/dkim-keys.ts";
import { allOwnRecords } from "../../store/domains/domain-records.ts";
import { type Domain, findServedDomain } from "../../store/domains/domains.ts";
import type { Store } from "../../store/engine/client.ts";
import {
  dkimName,
  dmarcName,
  receivingRecords,
  recommendedRecords,
  sendingRecords,
} from "../records/records.ts";
import { CERTIFICATE_TTL_SECONDS, issuers } from "./changing-records.ts";
import { domainHostRecords } from "./domain-host-records.ts";
import { delegationHost, TLS_REPORT_MAILBOX } from "../../core/own-names.ts";
import { recordData } from "./own-records.ts";
import {
  keyRecord,
  LOOKUPS,
  LOOKUP_TIMEOUT_MS,
  MAX_WAITING_LOOKUPS,
  nameServerRecord,
  POLICY_TTL_SECONDS,
} from "./service-zone.ts";
import { startOfAuthority } from "./start-of-authority.ts";
import type { ZoneSettings } from "./zone-settings.ts";

/** TTL of a DMARC record that reports move: the time after which all receivers know that a policy was taken back. */
export const MOVING_POLICY_TTL_SECONDS = 300;
/** Maximum labels of a delegated domain. Only the last labels of a longer name count. */
export const MAX_DELEGATED_LABELS = 10;
/** A public suffix has at least one label, and a domain at least one more. */
const MIN_LABELS = 2;
/** Time for which a zone is kept. Any number of queries for its names cost one read of the database in it. */
const ZONE_FRESH_SECONDS = 1;
/**
 * Maximum number of zones that are kept. One has at most 200 records of its owner, half a megabyte in all.
 */
const MAX_CACHED_ZONES = 200;

/**
 * Makes the search for zones of customers. It rejects if the database does not answer or too many lookups wait, because a
 * false "no such zone" would fail messages. A name of no zone costs one indexed lookup, as an unknown DKIM key does.
 */
export function delegatedZones(deps: Store, settings: ZoneSettings): Zones["find"] {
  const cache = createTtlCache<ZoneIndex>(deps.clock, MAX_CACHED_ZONES);
  const runLookup = createTaskLimit(LOOKUPS, MAX_WAITING_LOOKUPS);
  const load = async (names: readonly string[]): Promise<ZoneIndex | null> => {
    const begunAt = deps.clock.elapsed();
    const domain = await findServedDomain(deps.db, names);
    if (domain === null) return null;
    const index = indexZone(await delegatedZone(deps, settings, domain));
    // A zone is as old as the begin of its read. Else the CA could miss the answer to its challenge after a slow one.
    const left = ZONE_FRESH_SECONDS - (deps.clock.elapsed() - begunAt) / SECOND_MS;
    if (left > 0) cache.set(domain.name, index, left);
    return index;
  };
  return async (name) => {
    const names = zoneNames(name);
    if (names.length === 0) return null;
    for (const known of names) {
      const kept = cache.get(known);
      if (kept !== undefined) return kept;
    }
    const found = await runLookup(async () => ({
      zone: await inTime(deps.clock, LOOKUP_TIMEOUT_MS, load(names), "the database does not answer"),
    }));
    if (found === null) throw new Error("too many lookups of zones wait already");
    return found.zone;
  };
}

/** Returns the names of the zones that may hold a name, longest first. */
export function zoneNames(name: string): string[] {
  const labels = name.split(".");
  const names: string[] = [];
  for (let count = Math.min(labels.length, MAX_DELEGATED_LABELS); count >= MIN_LABELS; count--)
    names.push(labels.slice(-count).join("."));
  return names;
}

/** Returns the zone of a delegated domain as it is now. Its records are not older than its serial. */
export async function delegatedZone(deps: Store, settings: ZoneSettings, domain: Domain): Promise<Zone> {
  const soa = await startOfAuthority(deps, settings, domain.name);
  const [records, hosts, allowed] = await Promise.all([
    delegatedRecords(deps, settings.serviceDomain, domain),
    domainHostRecords(deps, settings, domain),
    issuers(deps.db, settings),
  ]);
  const caa = allowed.map(
    (data): ZoneRecord => ({ name: domain.name, ttl: CERTIFICATE_TTL_SECONDS, ...data }),
  );
  return {
    origin: domain.name,
    soa: async () => soa,
    records: withEqualTtls([
      ...records,
      ...hosts,
      ...settings.dnsSecondaryNames.map((host) => nameServerRecord(domain.name, host)),
      ...caa,
    ]),
    changing: [],
    dynamic: [],
  };
}

/** Returns our records of a delegated domain and its owner's. */
export async function delegatedRecords(
  { db, clock }: Store,
  serviceDomain: string,
  domain: Domain,
): Promise<ZoneRecord[]> {
  const { senderId, id, name } = domain;
  const [keys, own] = await Promise.all([listDkimKeys(db, senderId, id), allOwnRecords(db, senderId, id)]);
  const now = clock.now();
  const published = keys.filter(({ retireAt }) => retireAt === null || retireAt > now);
  const policies = [
    ...sendingRecords(domain, [], serviceDomain).map((record) => ({ ...record, type: "TXT" as const })),
    { type: "TXT" as const, name: `_smtp._tls.${name}`, value: tlsReports(serviceDomain) },
    ...(domain.receiving ? receivingRecords(domain, serviceDomain) : []),
    ...(domain.wildcard ? wildcardRecords(domain, serviceDomain) : []),
  ];
  // The host of links is not an alias here: the zone has its addresses.
  const aliases = recommendedRecords(domain, { serviceDomain, hostsDomains: false });
  return [
    nameServerRecord(name, delegationHost(domain.delegationToken, serviceDomain)),
    ...aliases.map(
      (alias): ZoneRecord => ({
        name: alias.name,
        ttl: POLICY_TTL_SECONDS,
        type: "CNAME",
        data: alias.value,
      }),
    ),
    ...published.map((key) => keyRecord(key, dkimName(key.selector, name), now)),
    ...policies.map(
      (record): ZoneRecord => ({
        name: record.name,
        ttl:
          domain.dmarcAuto && [dmarcName(name), `*.${name}`].includes(record.name)
            ? MOVING_POLICY_TTL_SECONDS
            : POLICY_TTL_SECONDS,
        ...(record.type === "TXT"
          ? { type: "TXT", data: record.value }
          : { type: "MX", data: { preference: record.priority ?? 0, exchange: record.value } }),
      }),
    ),
    ...own.map((record): ZoneRecord => ({ name: record.name, ttl: record.ttl, ...recordData(record) })),
  ];
}

/**
 * Returns our records at a domain's wildcard, for the names that inboxes may be at. DMARC asks for `_dmarc.` below such a name, which
 * the wildcard answers too, so mail from there passes by relaxed alignment whatever the organization's own record says.
 */
function wildcardRecords(domain: Domain, serviceDomain: string) {
  const name = `*.${domain.name}`;
  const mx = domain.receiving ? receivingRecords(domain, serviceDomain) : [];
  return [
    ...sendingRecords(domain, [], serviceDomain).map((record) => ({ ...record, type: "TXT" as const, name })),
    ...mx.map((record) => ({ ...record, name })),
  ];
}

function tlsReports(serviceDomain: string): string {
  return `v=TLSRPTv1; rua=mailto:${TLS_REPORT_MAILBOX}@${serviceDomain}`;
}

/** Gives the records of one type at one name the same TTL, the shortest of them (RFC 2181 §5.2). */
function withEqualTtls(records: readonly ZoneRecord[]): ZoneRecord[] {
  const shortest = new Map<string, number>();
  const keyOf = ({ type, name }: ZoneRecord) => `${type} ${name}`;
  for (const record of records) {
    const known = shortest.get(keyOf(record)) ?? record.ttl;
    shortest.set(keyOf(record), Math.min(known, record.ttl));
  }
  return records.map((record) => ({ ...record, ttl: shortest.get(keyOf(record)) ?? record.ttl }));
}
