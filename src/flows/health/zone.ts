import type { Config } from "../../config.ts";
import type { Clock } from "../../core/clock.ts";
import { dkimRecord } from "../../mail/dkim.ts";
import { joinedStrings } from "../../net/dns/lookups.ts";
import type { Resolver } from "../../net/dns/resolver.ts";
import { toReverseName } from "../../net/dns/reverse-name.ts";
import { canonicalName } from "../../net/dns/wire.ts";
import type { ZoneRecord } from "../../net/zone/records.ts";
import type { Db } from "../../store/engine/client.ts";
import { publishedKeys } from "../../store/dkim-keys.ts";
import { dkimTarget, nsHost } from "../own-names.ts";
import { openZone } from "../zone.ts";
import { type Check, fail, type Finding, ok, warn } from "./check.ts";

/** Keys of domains that are looked up; there may be thousands, and what serves one serves all. */
const MAX_KEYS = 20;
/** What is wrong is told of so many records. */
const SHOWN_FAULTS = 3;

export interface ZoneParts {
  db: () => Db;
  clock: Clock;
  resolver: Resolver;
  settings: Pick<Config, "serviceDomain" | "publicIps" | "publicUrl" | "dnsPort">;
}

/** A part of our zone: which of its records are looked up under that name. */
interface Group {
  name: string;
  has(record: ZoneRecord): boolean;
}

const isAddress = ({ type }: ZoneRecord): boolean => type === "A" || type === "AAAA";
const isText = ({ type }: ZoneRecord): boolean => type === "TXT";
const isDkim = ({ name }: ZoneRecord): boolean => /\._domainkey\./.test(name);
const isDmarc = ({ name }: ZoneRecord): boolean => /(?:^|\.)_dmarc\./.test(name);

const GROUPS: readonly Group[] = [
  { name: "our hosts", has: isAddress },
  { name: "our mx", has: ({ type }) => type === "MX" },
  { name: "our spf", has: (record) => isText(record) && !isDkim(record) && !isDmarc(record) },
  { name: "our dmarc", has: (record) => isText(record) && isDmarc(record) },
  { name: "our dkim", has: (record) => isText(record) && isDkim(record) },
];

/** Names that nobody else can look up (RFC 2606 §2, RFC 6761). */
const NOWHERE = /(?:^|\.)(?:localhost|invalid|local)$/;

const OWN_DOMAIN = "set SERVICE_DOMAIN to a domain of yours, e.g. mail.example.com, and delegate it";

/** Our own zone as others see it, by the servers of DNS_SERVERS. */
export function zoneChecks(parts: ZoneParts): Check[] {
  const { serviceDomain } = parts.settings;
  if (NOWHERE.test(serviceDomain))
    return [
      {
        name: "our zone",
        run: () => warn(`SERVICE_DOMAIN is ${serviceDomain}, which no other machine can look up`, OWN_DOMAIN),
        fix: OWN_DOMAIN,
      },
    ];
  const fix = "see that DNS_SERVERS answer";
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
  const fix = `at the DNS host of the domain above publish ${zone} NS ${ours}, and the addresses of ${ours} as glue`;
  if (names.includes(ours) && soa.length > 0) return ok(`${zone} is delegated to ${ours}, which answers`);
  if (names.includes(ours))
    return fail(`${ours} is named, and gives no SOA`, "set DNS_PORT, and let port 53 (UDP and TCP) reach it");
  const elsewhere = names.length === 0 ? "not delegated" : `delegated to ${names.join(", ")}`;
  if (dnsPort !== null) return fail(`${zone} is ${elsewhere}: nobody asks our name server`, fix);
  return ok(`${zone} is ${elsewhere}: its records are published by hand`);
}

async function groupFinding(parts: ZoneParts, group: Group): Promise<Finding> {
  const { db, clock, settings } = parts;
  const { records } = await openZone({ db: db(), clock }, settings);
  const wanted = records.filter((record) => group.has(record));
  if (wanted.length === 0) return warn("there is nothing to look for", "set PUBLIC_IPS");
  return lookedUp(parts, wanted);
}

async function domainKeys(parts: ZoneParts): Promise<Finding> {
  const { db, clock, settings } = parts;
  const keys = await publishedKeys(db(), clock.now(), "", MAX_KEYS);
  const wanted = keys.map(({ token, publicKey }): ZoneRecord => {
    const name = dkimTarget(token, settings.serviceDomain);
    return { name, ttl: 0, type: "TXT", data: dkimRecord(publicKey) };
  });
  return wanted.length === 0 ? ok("no domain has a key yet") : lookedUp(parts, wanted);
}

/** Whether others get each of the records. */
async function lookedUp({ resolver, settings }: ZoneParts, wanted: readonly ZoneRecord[]): Promise<Finding> {
  const faults = await Promise.all(wanted.map((record) => faultOf(resolver, record)));
  const missing = faults.filter((fault) => fault !== null);
  if (missing.length === 0) return ok(`as it should be, by ${wanted.length} of its records`);
  const more = missing.length > SHOWN_FAULTS ? `; and ${missing.length - SHOWN_FAULTS} more` : "";
  const fix =
    settings.dnsPort === null
      ? "publish what `postrider dns zone` prints now"
      : "see that the domain is delegated and that port 53 (UDP and TCP) reaches DNS_PORT";
  return fail(`${missing.slice(0, SHOWN_FAULTS).join("; ")}${more}`, fix);
}

/** What is wrong with a record as it is answered; null: nothing. */
async function faultOf(resolver: Resolver, { name, ...data }: ZoneRecord): Promise<string | null> {
  // Any name below a wildcard will do.
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

/** What a name has of a type, in a form to compare; nothing where there is none. Throws where nobody tells. */
async function valuesOf(resolver: Resolver, name: string, type: ZoneRecord["type"]): Promise<string[]> {
  const result = await resolver.resolve(name, type, { fresh: true });
  if (result.status === "failure")
    throw new Error(`the DNS servers do not tell ${name} ${type}: ${result.reason}`);
  if (result.status !== "ok") return [];
  return result.records.map((record) => valueIn(record)).filter((value) => value !== null);
}

/** The data of a record as one text: names in lower case, addresses in one of their spellings. */
function valueIn(record: { type: string; data?: unknown }): string | null {
  const { type, data } = record;
  if (type === "A" || type === "AAAA") return plainAddress(String(data));
  if (type === "NS") return canonicalName(String(data));
  if (type === "SOA") return "SOA";
  if (type === "MX") {
    const { preference = 0, exchange } = data as { preference?: number; exchange: string };
    return `${preference} ${canonicalName(exchange)}`;
  }
  return type === "TXT" ? joinedStrings(data as Parameters<typeof joinedStrings>[0]) : null;
}

/** An IPv6 address has many spellings, and one reverse name. */
function plainAddress(ip: string): string {
  return ip.includes(":") ? (toReverseName(ip) ?? ip) : ip;
}
