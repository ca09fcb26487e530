import { isIPv4 } from "node:net";
import type { Config } from "../config.ts";
import { isWithin, normalizeDomain } from "../core/addresses.ts";
import { type Clock, inTime } from "../core/clock.ts";
import { dkimRecord } from "../mail/dkim.ts";
import { createTtlCache } from "../net/dns/cache.ts";
import { createGate } from "../core/gate.ts";
import type { Zone } from "../net/zone/answer.ts";
import type { RecordData, SoaData, ZoneRecord } from "../net/zone/records.ts";
import { zoneLine } from "../net/zone/zone-file.ts";
import type { Db } from "../store/engine/client.ts";
import {
  findPublishedKey,
  type PublicDkimKey,
  publicInstallationKey,
  publishedKeys,
} from "../store/dkim-keys.ts";
import {
  bounceDomain,
  dkimParent,
  dkimTarget,
  mxHost,
  nsHost,
  onboardingDomain,
  simulatorDomain,
  SOA_MAILBOX,
  spfInclude,
} from "./own-names.ts";
import { dkimName, dmarcRecord, MX_PREFERENCE } from "./verify/records.ts";

/** Where the zone lives: NS records and the addresses behind them. */
const DELEGATION_TTL_SECONDS = 86_400;
/** Addresses, MX, SPF, DMARC: how long a change of PUBLIC_IPS takes to be seen everywhere. */
const POLICY_TTL_SECONDS = 3600;
/** A DKIM key; less where its time is nearly over, so that no cache has it after that. */
export const KEY_TTL_SECONDS = 3600;
/** How long "there is none" may be kept (RFC 2308 §5). */
const NEGATIVE_TTL_SECONDS = 300;
/** RFC 1912 §2.2: what secondaries of a printed zone go by. */
const REFRESH_SECONDS = 7200;
const RETRY_SECONDS = 900;
const EXPIRE_SECONDS = 1_209_600;

/** How long this process answers for a key without looking: a deleted domain's key is gone after that. */
export const KEY_CACHE_SECONDS = 30;
/** Keys remembered: each is about half a kilobyte. */
export const MAX_CACHED_KEYS = 10_000;
/** Lookups in the database at a time, and those that wait; one more fails at once. */
const LOOKUPS = 32;
const MAX_WAITING_LOOKUPS = 1000;
/** About as long as a resolver waits for an answer. */
const LOOKUP_TIMEOUT_MS = 3000;
/** Tokens as we make them: nothing else is looked up. */
const TOKEN = /^[0-9a-z]{26}$/;
/** Keys of the printed zone read at a time. */
const PRINTED_KEYS = 500;

export interface ZoneDeps {
  db: Db;
  clock: Clock;
}

export type ZoneSettings = Pick<Config, "serviceDomain" | "publicIps" | "publicUrl">;

/** The operator's zone as it stands: hosts and policies from the settings, keys live from the database. */
export async function openZone(deps: ZoneDeps, settings: ZoneSettings): Promise<Zone> {
  const { serviceDomain } = settings;
  const installation = await publicInstallationKey(deps.db);
  return {
    origin: serviceDomain,
    soa: () => startOfAuthority(serviceDomain, deps.clock.now()),
    records: [
      ...hostRecords(settings),
      ...policyRecords(settings),
      ...onboardingKey(installation, serviceDomain),
    ],
    liveParent: dkimParent(serviceDomain),
    findLive: keyFinder(deps, serviceDomain),
  };
}

/**
 * RFC 1035 §3.3.13. The serial is the time in seconds: it rises with every change, deletions of domains and changes of
 * settings among them, needs nothing stored, and is the same in all processes.
 */
function startOfAuthority(zone: string, now: number): ZoneRecord & { type: "SOA"; data: SoaData } {
  const data: SoaData = {
    mname: nsHost(zone),
    rname: `${SOA_MAILBOX}.${zone}`,
    serial: Math.floor(now / 1000) >>> 0,
    refresh: REFRESH_SECONDS,
    retry: RETRY_SECONDS,
    expire: EXPIRE_SECONDS,
    minimum: NEGATIVE_TTL_SECONDS,
  };
  return { name: zone, ttl: POLICY_TTL_SECONDS, type: "SOA", data };
}

function policy(name: string, data: RecordData): ZoneRecord {
  return { name, ttl: POLICY_TTL_SECONDS, ...data };
}

function text(name: string, data: string): ZoneRecord {
  return policy(name, { type: "TXT", data });
}

/** Name server, mail host, and the API where its name lies in this zone, which nobody else could publish. */
function hostRecords({ serviceDomain, publicIps, publicUrl }: ZoneSettings): ZoneRecord[] {
  const api = normalizeDomain(new URL(publicUrl).hostname) ?? "";
  const policyHosts = new Set([mxHost(serviceDomain), ...(isWithin(api, serviceDomain) ? [api] : [])]);
  const ns = nsHost(serviceDomain);
  policyHosts.delete(ns);
  return [
    { name: serviceDomain, ttl: DELEGATION_TTL_SECONDS, type: "NS", data: ns },
    ...addresses(ns, publicIps, DELEGATION_TTL_SECONDS),
    ...[...policyHosts].flatMap((host) => addresses(host, publicIps, POLICY_TTL_SECONDS)),
  ];
}

function addresses(name: string, ips: readonly string[], ttl: number): ZoneRecord[] {
  return ips.map((data) => ({ name, ttl, type: isIPv4(data) ? "A" : "AAAA", data }));
}

/** Who may send for each name of ours, and where its mail goes. */
function policyRecords({ serviceDomain, publicIps }: ZoneSettings): ZoneRecord[] {
  const [mx, spf] = [mxHost(serviceDomain), spfInclude(serviceDomain)];
  const [bounce, onboarding] = [bounceDomain(serviceDomain), onboardingDomain(serviceDomain)];
  const simulator = simulatorDomain(serviceDomain);
  const all = publicIps.length === 0 ? "?all" : "~all";
  const ours = `v=spf1 include:${spf} ${all}`;
  const nobody = "v=spf1 -all";
  // All mail under our own names is signed, so that what is not can be refused.
  const dmarc = dmarcRecord("reject", serviceDomain);
  return [
    text(spf, ["v=spf1", ...publicIps.map((ip) => `${isIPv4(ip) ? "ip4" : "ip6"}:${ip}`), all].join(" ")),
    ...[serviceDomain, bounce, onboarding].map((name) =>
      policy(name, { type: "MX", data: { preference: MX_PREFERENCE, exchange: mx } }),
    ),
    text(bounce, ours),
    text(onboarding, ours),
    // Receivers of bounces, which have no sender, check the name in EHLO (RFC 7208 §2.4).
    text(mx, ours),
    // No mail comes from these names, and whoever says so forges it.
    text(serviceDomain, nobody),
    text(simulator, nobody),
    // RFC 7505: simulated recipients live within the service, and nothing is to be sent there from outside.
    policy(simulator, { type: "MX", data: { preference: 0, exchange: "" } }),
    ...[serviceDomain, bounce, onboarding].map((name) => text(`_dmarc.${name}`, dmarc)),
    // RFC 7489 §7.1: without it nobody sends us the reports that our customers' records ask for.
    text(`*._report._dmarc.${serviceDomain}`, "v=DMARC1"),
  ];
}

function onboardingKey(key: PublicDkimKey | null, serviceDomain: string): ZoneRecord[] {
  if (key === null) return [];
  const name = dkimName(key.selector, onboardingDomain(serviceDomain));
  return [{ name, ttl: KEY_TTL_SECONDS, type: "TXT", data: dkimRecord(key.publicKey) }];
}

function keyRecord(key: PublicDkimKey, serviceDomain: string, now: number): ZoneRecord {
  const left = key.retireAt === null ? Number.POSITIVE_INFINITY : Math.floor((key.retireAt - now) / 1000);
  return {
    name: dkimTarget(key.token, serviceDomain),
    ttl: Math.min(KEY_TTL_SECONDS, Math.max(0, left)),
    type: "TXT",
    data: dkimRecord(key.publicKey),
  };
}

/** Finds keys by token. Rejects while the database does not answer, or is asked too much. */
function keyFinder({ db, clock }: ZoneDeps, serviceDomain: string): Zone["findLive"] {
  const cache = createTtlCache<PublicDkimKey>(clock, MAX_CACHED_KEYS);
  const gate = createGate(LOOKUPS, MAX_WAITING_LOOKUPS);
  const find = async (token: string): Promise<PublicDkimKey | null> => {
    const look = async () => {
      const asked = findPublishedKey(db, token, clock.now());
      // A database that hangs must not keep the place of a lookup for ever.
      return { key: await inTime(clock, LOOKUP_TIMEOUT_MS, asked, "the database does not answer") };
    };
    const found = await gate.run(look);
    if (found === null) throw new Error("too many lookups of keys wait already");
    // Made-up tokens are not kept: they would drive out those that are asked for.
    if (found.key !== null) cache.set(token, found.key, KEY_CACHE_SECONDS);
    return found.key;
  };
  const isPublished = (key: PublicDkimKey): boolean => key.retireAt === null || key.retireAt > clock.now();
  return async (label) => {
    if (!TOKEN.test(label)) return null;
    const cached = cache.get(label);
    // Behind a key whose time is over another may have been made.
    const key = cached !== undefined && isPublished(cached) ? cached : await find(label);
    return key === null ? null : [keyRecord(key, serviceDomain, clock.now())];
  };
}

/** The whole zone as a zone file, a piece at a time; its first line is the SOA, as RFC 1035 §5.2 wants it. */
export async function* zoneFile(deps: ZoneDeps, settings: ZoneSettings): AsyncGenerator<string> {
  const zone = await openZone(deps, settings);
  const now = deps.clock.now();
  yield [zone.soa(), ...zone.records].map(zoneLine).join("\n");
  for (let after = ""; ; ) {
    const keys = await publishedKeys(deps.db, now, after, PRINTED_KEYS);
    const last = keys.at(-1);
    if (last === undefined) return;
    yield keys.map((key) => zoneLine(keyRecord(key, settings.serviceDomain, now))).join("\n");
    after = last.token;
  }
}
