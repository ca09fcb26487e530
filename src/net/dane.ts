import type { Answer } from "dns-packet";
import type { DnsResult } from "./dns/result.ts";
import { canonicalName } from "./dns/wire.ts";
import type { Resolver } from "./dns/resolver.ts";

/** TLSA records of one host looked at; more are cut off. */
export const MAX_TLSA_RECORDS = 64;

/** A TLSA record (RFC 6698 §2.1). */
export interface TlsaRecord {
  usage: number;
  selector: number;
  matchingType: number;
  data: Uint8Array;
}

/** What a domain's DNS says of the TLS of one of its MX hosts (RFC 7672 §2.2). */
export type DaneFinding =
  /** Not signed, or no TLSA records. */
  | { kind: "none" }
  /** The host must turn to TLS with a certificate that one of the records matches. */
  | { kind: "demand"; records: readonly TlsaRecord[]; names: readonly string[] }
  /** There are records, but none that we can use: the host must turn to TLS, whatever its certificate (§2.2). */
  | { kind: "unusable" }
  /** Signed, and yet not to be had: somebody may be hiding the records, so the host is not to be used (§2.1.1). */
  | { kind: "broken"; reason: string };

const NONE: DaneFinding = { kind: "none" };

/** Certificate usages for SMTP. PKIX-TA (0) and PKIX-EE (1) are not among them (RFC 7672 §3.1.3). */
const DANE_TA = 2;
const DANE_EE = 3;
const USAGES: ReadonlySet<number> = new Set([DANE_TA, DANE_EE]);
const SELECTORS: ReadonlySet<number> = new Set([0, 1]);
/** Octets of the data by matching type: all of it, SHA2-256, SHA2-512 (RFC 6698 §2.1.3). */
const DATA_OCTETS: Readonly<Record<number, number | null>> = { 0: null, 1: 32, 2: 64 };
const SHA256 = 1;
const SHA512 = 2;

/**
 * The DANE findings for the MX hosts of a domain, in their order. Never throws.
 *
 * Signed is what the answers of our DNS servers say is signed, by the AD bit. That bit travels in the clear, so it is
 * worth as much as the way to those servers: they must be the operator's own, validate, and be reached over a path that
 * nobody else can write to, best on this machine (RFC 7672 §2.1.3, RFC 4035 §4.9.3). Servers that do not validate never
 * set it, and nothing here applies.
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

/** Whether it is certain that mail for the domain goes to this host: a signed MX, or none and the domain itself (§2.2.1). */
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
  // §2.2.3: a host that is an alias may have its records at the end of it, or else at its own name.
  for (const base of new Set([...ends, host])) {
    const finding = readTlsa(await resolver.resolve(`_${port}._tcp.${base}`, "TLSA"), [base, host, domain]);
    if (finding.kind !== "none") return finding;
  }
  return NONE;
}

/**
 * What is found of a host whose addresses, at these names, are not signed: nothing, as servers of zones that are not signed
 * often stumble over TLSA questions and are not asked (§2.2.2). Null where its own zone is signed and it is an alias into
 * one that is not: one bit is said of the whole way, so the alias is asked for alone.
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
  // Names matter to trust anchors alone. Without one, domains with the same host can share its connections.
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

/** RFC 7671 §9: beside a SHA2-512 of the same kind a SHA2-256 does not count. */
function strongest(records: readonly TlsaRecord[]): TlsaRecord[] {
  const kind = ({ usage, selector }: TlsaRecord): string => `${usage} ${selector}`;
  const strong = new Set(records.filter(({ matchingType }) => matchingType === SHA512).map(kind));
  return records.filter((record) => record.matchingType !== SHA256 || !strong.has(kind(record)));
}
