import { isIPv4 } from "node:net";
import { inTime } from "../../core/time/clock.ts";
import { dkimRecord } from "../../mail/auth/dkim.ts";
import { createTtlCache } from "../../net/dns/cache.ts";
import { createTaskLimit } from "../../core/concurrency/admission.ts";
import type { DynamicNames, Zone } from "../../net/zone/answer.ts";
import type { RecordData, ZoneRecord } from "../../net/zone/records.ts";
import { zoneLine } from "../../net/zone/zone-file.ts";
import {
  findPublishedKey,
  type PublicDkimKey,
  publicInstallationKey,
  publishedKeys,
} from "../../store/domains/dkim-keys.ts";
import { serviceCertificate } from "../certificates/wanted.ts";
import { allChallenges } from "../../store/domains/certificates.ts";
import { hostsDomains, MAX_DOMAIN_CERTIFICATES } from "../certificates/domain-hosts.ts";
import { CHALLENGE_TTL_SECONDS, changingRecords, challenges } from "./changing-records.ts";
import {
  bounceDomain,
  challengeParent,
  dkimParent,
  dkimTarget,
  linksHost,
  mxHost,
  nsHost,
  onboardingDomain,
  simulatorDomain,
  spfInclude,
  TLS_REPORT_MAILBOX,
} from "../../core/own-names.ts";
import { dkimName, dmarcName, dmarcRecord, MX_PREFERENCE } from "../records/records.ts";
import type { ZoneSettings } from "./zone-settings.ts";
import { ownStartOfAuthority, startOfAuthority } from "./start-of-authority.ts";
import type { Store } from "../../store/engine/client.ts";

/** TTL of the NS records and the addresses of the name server. */
const DELEGATION_TTL_SECONDS = 86_400;
/** TTL of other addresses, MX, SPF and DMARC: the time after which a change of PUBLIC_IPS is seen everywhere. */
export const POLICY_TTL_SECONDS = 3600;
/** TTL of a DKIM key. It is shorter if the key retires soon, so that no cache keeps it longer. */
export const KEY_TTL_SECONDS = 3600;

/** Time for which a key is cached. After that, the key of a deleted domain is gone. */
export const KEY_CACHE_SECONDS = 30;
/** Maximum number of cached keys, each about half a kilobyte. */
export const MAX_CACHED_KEYS = 10_000;
/** Database lookups at a time, and those that may wait. Further ones fail at once. */
export const LOOKUPS = 32;
export const MAX_WAITING_LOOKUPS = 1000;
/** Timeout of a lookup, about as long as a resolver waits for an answer. */
export const LOOKUP_TIMEOUT_MS = 3000;
/** The form of our tokens. Other labels are not looked up. */
const TOKEN = /^[0-9a-z]{26}$/;
/** Keys read at a time for the whole zone. */
const KEYS_AT_ONCE = 500;

/** Opens the service's zone. Hosts and policies come from the settings, keys from the database. */
export async function openZone(deps: Store, settings: ZoneSettings): Promise<Zone> {
  const { serviceDomain } = settings;
  const installation = await publicInstallationKey(deps.db);
  return {
    origin: serviceDomain,
    soa: ownStartOfAuthority(deps, settings),
    records: [
      ...hostRecords(settings),
      ...policyRecords(settings),
      ...installationKeys(installation, serviceDomain),
    ],
    changing: changingRecords(deps, settings),
    dynamic: [
      { parent: dkimParent(serviceDomain), find: keyFinder(deps, serviceDomain) },
      { parent: challengeParent(serviceDomain), find: challengeFinder(deps, serviceDomain) },
    ],
  };
}

function policy(name: string, data: RecordData): ZoneRecord {
  return { name, ttl: POLICY_TTL_SECONDS, ...data };
}

function text(name: string, data: string): ZoneRecord {
  return policy(name, { type: "TXT", data });
}

/** Makes the records of the name server, and of every host that our certificate names. */
function hostRecords(settings: ZoneSettings): ZoneRecord[] {
  const { serviceDomain, publicIps } = settings;
  const ns = nsHost(serviceDomain);
  // Domains that are not delegated have an alias of our host of links.
  const linked = hostsDomains(settings) ? [linksHost(serviceDomain)] : [];
  const named = new Set([...serviceCertificate(settings).names, ...linked]);
  const hosts = [...named].filter((host) => host !== ns);
  return [
    ...[ns, ...settings.dnsSecondaryNames].map((host) => nameServerRecord(serviceDomain, host)),
    // Each registration of a delegated domain has its own name for our name server.
    ...[ns, `*.${ns}`].flatMap((name) => addresses(name, publicIps, DELEGATION_TTL_SECONDS)),
    ...hosts.flatMap((host) => addresses(host, publicIps, POLICY_TTL_SECONDS)),
  ];
}

/** Makes an NS record at the top of a zone. */
export function nameServerRecord(zone: string, host: string): ZoneRecord {
  return { name: zone, ttl: DELEGATION_TTL_SECONDS, type: "NS", data: host };
}

/** Makes the records of a host that is at our addresses. */
export function addresses(name: string, ips: readonly string[], ttl: number): ZoneRecord[] {
  return ips.map((data) => ({ name, ttl, type: isIPv4(data) ? "A" : "AAAA", data }));
}

/** Makes the SPF, MX and DMARC records of our names. */
function policyRecords({ serviceDomain, publicIps }: ZoneSettings): ZoneRecord[] {
  const [mx, spf] = [mxHost(serviceDomain), spfInclude(serviceDomain)];
  const [bounce, onboarding] = [bounceDomain(serviceDomain), onboardingDomain(serviceDomain)];
  const simulator = simulatorDomain(serviceDomain);
  const all = publicIps.length === 0 ? "?all" : "~all";
  const ours = `v=spf1 include:${spf} ${all}`;
  const noSender = "v=spf1 -all";
  // All messages from our own names are signed, so receivers can reject others.
  const dmarc = dmarcRecord("reject", serviceDomain);
  return [
    text(spf, ["v=spf1", ...publicIps.map((ip) => `${isIPv4(ip) ? "ip4" : "ip6"}:${ip}`), all].join(" ")),
    ...[serviceDomain, bounce, onboarding].map((name) =>
      policy(name, { type: "MX", data: { preference: MX_PREFERENCE, exchange: mx } }),
    ),
    text(bounce, ours),
    text(onboarding, ours),
    // Bounces have no sender, so receivers check the name in EHLO (RFC 7208 §2.4).
    text(mx, ours),
    // No messages come from these names, so any that do are forged.
    text(serviceDomain, noSender),
    text(simulator, noSender),
    // A null MX (RFC 7505), because simulated recipients get no mail from outside.
    policy(simulator, { type: "MX", data: { preference: 0, exchange: "" } }),
    ...[serviceDomain, bounce, onboarding].map((name) => text(dmarcName(name), dmarc)),
    text(`_smtp._tls.${serviceDomain}`, `v=TLSRPTv1; rua=mailto:${TLS_REPORT_MAILBOX}@${serviceDomain}`),
    // Allows receivers to send us the reports that our customers' records ask for (RFC 7489 §7.1).
    text(`*._report._dmarc.${serviceDomain}`, "v=DMARC1"),
  ];
}

function installationKeys(key: PublicDkimKey | null, serviceDomain: string): ZoneRecord[] {
  if (key === null) return [];
  // The service's own name has it too, so that SERVICE_SIGNATURE needs no wait for the DNS.
  return [serviceDomain, onboardingDomain(serviceDomain)].map((domain) => ({
    name: dkimName(key.selector, domain),
    ttl: KEY_TTL_SECONDS,
    type: "TXT",
    data: dkimRecord(key.publicKey),
  }));
}

/** Makes the record of a key at a name. */
export function keyRecord(key: PublicDkimKey, name: string, now: number): ZoneRecord {
  const left = key.retireAt === null ? Number.POSITIVE_INFINITY : Math.floor((key.retireAt - now) / 1000);
  return {
    name,
    ttl: Math.min(KEY_TTL_SECONDS, Math.max(0, left)),
    type: "TXT",
    data: dkimRecord(key.publicKey, key.algorithm),
  };
}

/** Finds keys by token. Rejects if the database does not answer or too many lookups wait. */
function keyFinder({ db, clock }: Store, serviceDomain: string): DynamicNames["find"] {
  const cache = createTtlCache<PublicDkimKey>(clock, MAX_CACHED_KEYS);
  const runLookup = createTaskLimit(LOOKUPS, MAX_WAITING_LOOKUPS);
  const find = async (token: string): Promise<PublicDkimKey | null> => {
    const lookUp = async () => {
      const query = findPublishedKey(db, token, clock.now());
      // If the database hangs, a lookup must not keep its permit for good.
      return { key: await inTime(clock, LOOKUP_TIMEOUT_MS, query, "the database does not answer") };
    };
    const found = await runLookup(lookUp);
    if (found === null) throw new Error("too many lookups of keys wait already");
    // Unknown tokens are not cached, because they would evict real ones.
    if (found.key !== null) cache.set(token, found.key, KEY_CACHE_SECONDS);
    return found.key;
  };
  const isPublished = (key: PublicDkimKey): boolean => key.retireAt === null || key.retireAt > clock.now();
  return async (label) => {
    if (!TOKEN.test(label)) return null;
    const cached = cache.get(label);
    // If the cached key has retired, there may be a new one.
    const key = cached !== undefined && isPublished(cached) ? cached : await find(label);
    return key === null ? null : [keyRecord(key, dkimTarget(label, serviceDomain), clock.now())];
  };
}

/** Finds the answers to challenges of domains with an alias. Every name exists, because the alias stays between two orders. */
function challengeFinder({ db, clock }: Store, serviceDomain: string): DynamicNames["find"] {
  const runLookup = createTaskLimit(LOOKUPS, MAX_WAITING_LOOKUPS);
  return async (label) => {
    if (!TOKEN.test(label)) return null;
    const name = `${label}.${challengeParent(serviceDomain)}`;
    const look = () => inTime(clock, LOOKUP_TIMEOUT_MS, challenges(db, name), "the database does not answer");
    const found = await runLookup(look);
    if (found === null) throw new Error("too many lookups of challenges wait already");
    return found.map((data): ZoneRecord => ({ name, ttl: CHALLENGE_TTL_SECONDS, ...data }));
  };
}

/** Yields all records of the zone as it is now except the SOA, piece by piece. */
export async function* serviceRecords(
  deps: Store,
  settings: ZoneSettings,
): AsyncGenerator<readonly ZoneRecord[]> {
  const { records, changing } = await openZone(deps, settings);
  const now = deps.clock.now();
  yield [...records, ...(await Promise.all(changing.map(({ find }) => find()))).flat()];
  const answers = await allChallenges(
    deps.db,
    challengeParent(settings.serviceDomain),
    MAX_DOMAIN_CERTIFICATES,
  );
  yield answers.map(({ name, value }) => ({
    name,
    ttl: CHALLENGE_TTL_SECONDS,
    type: "TXT",
    data: value,
  }));
  for (let after = ""; ; ) {
    const keys = await publishedKeys(deps.db, now, after, KEYS_AT_ONCE);
    const last = keys.at(-1);
    if (last === undefined) return;
    yield keys.map((key) => keyRecord(key, dkimTarget(key.token, settings.serviceDomain), now));
    after = last.token;
  }
}

/** Yields the whole zone as it is now as a zone file, piece by piece. The first line is the SOA (RFC 1035 §5.2). */
export async function* zoneFile(deps: Store, settings: ZoneSettings): AsyncGenerator<string> {
  yield zoneLine(await startOfAuthority(deps, settings, settings.serviceDomain));
  for await (const records of serviceRecords(deps, settings))
    if (records.length > 0) yield records.map(zoneLine).join("\n");
}
