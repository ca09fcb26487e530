import type { Answer } from "dns-packet";
import { DANE_EE, DANE_TA, type DaneDemand, type TlsaRecord } from "../core/tls-policy.ts";
import type { DnsResult } from "./dns/result.ts";
import { canonicalName } from "./dns/packet.ts";
import type { Resolver } from "./dns/resolver.ts";

/** TLSA records read of one host; more are dropped. */
export const MAX_TLSA_RECORDS = 64;

/** DANE state of one MX host of a domain (RFC 7672 §2.2). */
export type DaneFinding =
  /** Not signed, or without TLSA records. */
  | { kind: "none" }
  /** The host must offer TLS with a certificate that matches one of the records. */
  | ({ kind: "demand" } & DaneDemand)
  /** None of the records is usable: the host must offer TLS, with any certificate (§2.2). */
  | { kind: "unusable" }
  /** Signed, but the lookup failed. An attacker may hide the records, so the host must not be used (§2.1.1). */
  | { kind: "broken"; reason: string };

const NONE: DaneFinding = { kind: "none" };

/** Certificate usages for SMTP. PKIX-TA (0) and PKIX-EE (1) are excluded (RFC 7672 §3.1.3). */
const USAGES: ReadonlySet<number> = new Set([DANE_TA, DANE_EE]);
const SELECTORS: ReadonlySet<number> = new Set([0, 1]);
/** Length of the data by matching type: full (any), SHA2-256, SHA2-512 (RFC 6698 §2.1.3). */
const DATA_OCTETS: Readonly<Record<number, number | null>> = { 0: null, 1: 32, 2: 64 };
const SHA256 = 1;
const SHA512 = 2;

/**
 * Returns the DANE findings for the MX hosts of a domain, in their order. Never throws.
 *
 * Answers count as signed if our DNS servers set the AD bit. The bit is not protected, so those servers must belong to
 * the operator, validate, and be reached over a path that no attacker can write to, best on this machine (RFC 7672
 * §2.1.3, RFC 4035 §4.9.3). If the servers do not validate, they never set it, and DANE does not apply.
 */
export async function findDane(
  resolver: Resolver,
  domain: string,
  hosts: readonly string[],
  port: number,
): Promise<DaneFinding[]> {
  const mx = await resolver.resolve(domain, "MX");
  if (mx.status === "failure")
    return hosts.map(() => ({ kind: "broken", reason: `MX lookup: ${mx.reason}` }));
  return Promise.all(
    hosts.map((host) =>
      isNamedSecurely(mx, domain, host) ? findHostDane(resolver, domain, host, port) : NONE,
    ),
  );
}

/** Returns true if DNSSEC proves that this host takes the domain's mail: by a signed MX, or without MX (§2.2.1). */
function isNamedSecurely(mx: DnsResult<Answer>, domain: string, host: string): boolean {
  if (mx.status !== "ok") return host === canonicalName(domain);
  return (
    mx.authentic &&
    mx.records.some((record) => record.type === "MX" && canonicalName(record.data.exchange) === host)
  );
}

async function findHostDane(
  resolver: Resolver,
  domain: string,
  host: string,
  port: number,
): Promise<DaneFinding> {
  const found = await Promise.all([resolver.resolve(host, "A"), resolver.resolve(host, "AAAA")]);
  const known = found.filter((result) => result.status === "ok");
  const failed = found.find((result) => result.status === "failure");
  if (known.length === 0)
    return failed === undefined ? NONE : { kind: "broken", reason: `address lookup: ${failed.reason}` };
  const ends = ownersOf(known.filter((result) => result.authentic));
  if (ends.length === 0) {
    const unsigned = await unsignedFinding(resolver, host, ownersOf(known));
    if (unsigned !== null) return unsigned;
  }
  // §2.2.3: if the host is an alias, its TLSA records may be at the end of the alias, or at the host's own name.
  for (const base of new Set([...ends, host])) {
    const finding = readTlsa(await resolver.resolve(`_${port}._tcp.${base}`, "TLSA"), [base, host, domain]);
    if (finding.kind !== "none") return finding;
  }
  return NONE;
}

/**
 * Returns the finding for a host whose addresses are not signed: none. Name servers of unsigned zones often fail on
 * TLSA queries, so they are not asked (§2.2.2). Returns null if the host is a signed alias into an unsigned zone. The
 * AD bit covers the whole chain, so we look up the alias separately.
 */
async function unsignedFinding(
  resolver: Resolver,
  host: string,
  owners: readonly string[],
): Promise<DaneFinding | null> {
  if (owners.every((owner) => owner === host)) return NONE;
  const alias = await resolver.resolve(host, "CNAME");
  if (alias.status === "failure") return { kind: "broken", reason: `alias lookup: ${alias.reason}` };
  return alias.status === "ok" && alias.authentic ? null : NONE;
}

function ownersOf(found: readonly { records: readonly Answer[] }[]): string[] {
  return found.flatMap(({ records }) => records.slice(0, 1).map(({ name }) => canonicalName(name)));
}

function readTlsa(found: DnsResult<Answer>, names: readonly string[]): DaneFinding {
  if (found.status === "failure") return { kind: "broken", reason: `TLSA lookup: ${found.reason}` };
  if (found.status !== "ok" || !found.authentic) return NONE;
  const records = found.records
    .slice(0, MAX_TLSA_RECORDS)
    .map(toRecord)
    .filter((record) => record !== null);
  const usable = strongest(records.filter(isUsable));
  if (usable.length === 0) return { kind: "unusable" };
  // Only trust anchors need the names. Without one, domains with the same host can share its connections.
  const anchored = usable.some(({ usage }) => usage === DANE_TA);
  return { kind: "demand", records: usable, names: [...new Set(anchored ? names : names.slice(0, 1))] };
}

function toRecord(answer: Answer): TlsaRecord | null {
  if (answer.type !== "TLSA") return null;
  const { usage, selector, matchingType, certificate } = answer.data;
  return { usage, selector, matchingType, data: certificate };
}

function isUsable({ usage, selector, matchingType, data }: TlsaRecord): boolean {
  const octets = DATA_OCTETS[matchingType];
  if (octets === undefined || !USAGES.has(usage) || !SELECTORS.has(selector)) return false;
  return octets === null ? data.length > 0 : data.length === octets;
}

/** RFC 7671 §9: if there is a SHA2-512 record of the same kind, ignore SHA2-256. */
function strongest(records: readonly TlsaRecord[]): TlsaRecord[] {
  const kind = ({ usage, selector }: TlsaRecord): string => `${usage} ${selector}`;
  const strong = new Set(records.filter(({ matchingType }) => matchingType === SHA512).map(kind));
  return records.filter((record) => record.matchingType !== SHA256 || !strong.has(kind(record)));
}
