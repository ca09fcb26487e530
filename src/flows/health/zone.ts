import type { Config } from "../../config.ts";
import type { Clock } from "../../core/time/clock.ts";
import { dkimRecord } from "../../mail/auth/dkim.ts";
import { joinedStrings, toReverseName } from "../../net/dns/lookups.ts";
import type { Resolver } from "../../net/dns/resolver.ts";
import { canonicalName } from "../../net/dns/packet.ts";
import type { ZoneRecord } from "../../net/zone/records.ts";
import type { Db } from "../../store/engine/client.ts";
import { publishedKeys } from "../../store/domains/dkim-keys.ts";
import { dkimTarget, nsHost } from "../../core/own-names.ts";
import { openZone } from "../zone/service-zone.ts";
import type { ZoneSettings } from "../zone/zone-settings.ts";
import { type Check, fail, type Finding, ok, warn } from "./check.ts";

/**
 * Maximum number of domain keys checked. There may be thousands, and the same server answers for all of them.
 */
const MAX_KEYS = 20;
/** Wrong records that the message names. */
const SHOWN_FAULTS = 3;

export interface ZoneParts {
  db: () => Db;
  clock: Clock;
  resolver: Resolver;
  settings: ZoneSettings & Pick<Config, "dnsPort">;
}

/** A part of our zone, checked by one check. */
interface Group {
  name: string;
  has(record: ZoneRecord): boolean;
}

const isAddress = ({ type }: ZoneRecord): boolean => type === "A" || type === "AAAA";
const isText = ({ type }: ZoneRecord): boolean => type === "TXT";
const isDkim = ({ name }: ZoneRecord): boolean => /\._domainkey\./.test(name);
const isDmarc = ({ name }: ZoneRecord): boolean => /(?:^|\.)_dmarc\./.test(name);
const isOfTls = ({ name, type }: ZoneRecord): boolean =>
  type === "CAA" || /^(?:_mta-sts|_smtp\._tls)\./.test(name);
/** Only the authority asks for it, while an order is pending. */
const isChallenge = ({ name }: ZoneRecord): boolean => name.startsWith("_acme-challenge.");

const GROUPS: readonly Group[] = [
  { name: "our hosts", has: isAddress },
  { name: "our mx", has: ({ type }) => type === "MX" },
  {
    name: "our spf",
    has: (record) => isText(record) && !isDkim(record) && !isDmarc(record) && !isOfTls(record),
  },
  { name: "our dmarc", has: (record) => isText(record) && isDmarc(record) },
  { name: "our tls", has: isOfTls },
  { name: "our dkim", has: (record) => isText(record) && isDkim(record) },
];

/** Names that no other machine can look up (RFC 2606 §2, RFC 6761). */
const LOCAL_ONLY = /(?:^|\.)(?:localhost|invalid|local)$/;

const OWN_DOMAIN = "Set SERVICE_DOMAIN to a domain that you own, such as mail.example.com, and delegate it.";

/** Checks our own zone as DNS_SERVERS see it. */
export function zoneChecks(parts: ZoneParts): Check[] {
  const { serviceDomain } = parts.settings;
  if (LOCAL_ONLY.test(serviceDomain))
    return [
      {
        name: "our zone",
        run: () =>
          warn(`SERVICE_DOMAIN is ${serviceDomain}, which no other machine can look up.`, OWN_DOMAIN),
        fix: OWN_DOMAIN,
      },
    ];
  const fix = "Check that DNS_SERVERS are reachable.";
  const needsDatabase = true;
  return [
    { name: "our delegation", run: () => delegation(parts), fix },
    ...GROUPS.map((group) => ({
      name: group.name,
      run: () => groupFinding(parts, group),
      fix,
      needsDatabase,
    })),
    { name: "dkim keys", run: () => domainKeys(parts), fix, needsDatabase },
  ];
}

async function delegation({ resolver, settings }: ZoneParts): Promise<Finding> {
  const { serviceDomain: zone, dnsPort } = settings;
  const [names, soa] = await Promise.all([valuesOf(resolver, zone, "NS"), valuesOf(resolver, zone, "SOA")]);
  const ours = nsHost(zone);
  const fix = `At the DNS host of the parent domain, publish "${zone} NS ${ours}" and the addresses of ${ours} as glue.`;
  if (names.includes(ours) && soa.length > 0) return ok(`${zone} is delegated to ${ours}, which answers.`);
  if (names.includes(ours))
    return fail(
      `${zone} is delegated to ${ours}, but ${ours} does not answer with an SOA record.`,
      "Set DNS_PORT, and forward port 53 (UDP and TCP) to it.",
    );
  const elsewhere = names.length === 0 ? "not delegated" : `delegated to ${names.join(", ")}`;
  if (dnsPort !== null)
    return fail(`${zone} is ${elsewhere}, so our name server gets no queries for it.`, fix);
  return ok(`${zone} is ${elsewhere}. Its records are published by hand.`);
}

async function groupFinding(parts: ZoneParts, group: Group): Promise<Finding> {
  const { db, clock, settings } = parts;
  const { records, changing } = await openZone({ db: db(), clock }, settings);
  const now = (await Promise.all(changing.map(({ find }) => find()))).flat();
  const wanted = [...records, ...now].filter((record) => !isChallenge(record) && group.has(record));
  if (wanted.length === 0) return warn("Our zone has no such records.", "Set PUBLIC_IPS.");
  return compareRecords(parts, wanted);
}

async function domainKeys(parts: ZoneParts): Promise<Finding> {
  const { db, clock, settings } = parts;
  const keys = await publishedKeys(db(), clock.now(), "", MAX_KEYS);
  const wanted = keys.map(({ token, publicKey, algorithm }): ZoneRecord => {
    const name = dkimTarget(token, settings.serviceDomain);
    return { name, ttl: 0, type: "TXT", data: dkimRecord(publicKey, algorithm) };
  });
  return wanted.length === 0 ? ok("No domain has a key yet.") : compareRecords(parts, wanted);
}

/** Looks up each record and compares it with ours. */
async function compareRecords(
  { resolver, settings }: ZoneParts,
  wanted: readonly ZoneRecord[],
): Promise<Finding> {
  const faults = await Promise.all(wanted.map((record) => faultOf(resolver, record)));
  const missing = faults.filter((fault) => fault !== null);
  if (missing.length === 0) return ok(`All ${wanted.length} records are published.`);
  const more = missing.length > SHOWN_FAULTS ? `; ${missing.length - SHOWN_FAULTS} more` : "";
  const fix =
    settings.dnsPort === null
      ? "Publish the records that `postrider dns zone` prints."
      : "Check that the domain is delegated and that port 53 (UDP and TCP) is forwarded to DNS_PORT.";
  return fail(`Some records are wrong: ${missing.slice(0, SHOWN_FAULTS).join("; ")}${more}.`, fix);
}

/** Returns how the published record differs from ours; null if it is the same. */
async function faultOf(resolver: Resolver, { name, ...data }: ZoneRecord): Promise<string | null> {
  // Any name below a wildcard gets its record.
  const asked = name.replace(/^\*/, "doctor");
  const found = await valuesOf(resolver, asked, data.type);
  const wanted = valueIn(data);
  if (wanted === null || found.includes(wanted)) return null;
  const shown = found.length === 0 ? "nothing" : found.map(short).join(", ");
  return `${asked} ${data.type} is ${shown}, not ${short(wanted)}`;
}

const SHOWN_CHARS = 60;

function short(text: string): string {
  return text.length <= SHOWN_CHARS ? text : `${text.slice(0, SHOWN_CHARS)}…`;
}

/**
 * Looks up a name's records of a type, in a form that can be compared; an empty list if there are none.
 * @throws if the lookup fails
 */
async function valuesOf(resolver: Resolver, name: string, type: ZoneRecord["type"]): Promise<string[]> {
  const result = await resolver.resolve(name, type, { fresh: true });
  if (result.status === "failure") throw new Error(`${name} ${type} cannot be looked up: ${result.reason}`);
  if (result.status !== "ok") return [];
  return result.records.map((record) => valueIn(record)).filter((value) => value !== null);
}

type CaaData = Extract<ZoneRecord, { type: "CAA" }>["data"];

/** Returns the data of a record as one string, with names in lower case and addresses in one spelling. */
function valueIn(record: { type: string; data?: unknown }): string | null {
  const { type, data } = record;
  if (type === "A" || type === "AAAA") return plainAddress(String(data));
  if (type === "NS") return canonicalName(String(data));
  if (type === "SOA") return "SOA";
  if (type === "MX") {
    const { preference = 0, exchange } = data as { preference?: number; exchange: string };
    return `${preference} ${canonicalName(exchange)}`;
  }
  if (type === "CAA") {
    const { flags = 0, tag, value } = data as CaaData;
    return `${flags} ${tag} ${value}`;
  }
  return type === "TXT" ? joinedStrings(data as Parameters<typeof joinedStrings>[0]) : null;
}

/** Returns the one reverse name of an IPv6 address, which has many spellings. */
function plainAddress(ip: string): string {
  return ip.includes(":") ? (toReverseName(ip) ?? ip) : ip;
}
