import { DMARC_POLICIES, type DmarcPolicy } from "../../core/domains/dmarc-policies.ts";
import type { PublicDkimKey } from "../../store/domains/dkim-keys.ts";
import type { Domain } from "../../store/domains/domains.ts";
import { organizationalDomain } from "../../core/public-suffix.ts";
import { delegationHost, dkimTarget, mxHost, nsHost } from "../../core/own-names.ts";
import { dkimName } from "./records.ts";

/** The result of a lookup. `failure` means that nothing is known, as after SERVFAIL or a timeout. */
export type LookupResult<Record> =
  | { status: "ok"; records: readonly Record[] }
  | { status: "nodata" }
  | { status: "nxdomain" }
  | { status: "failure" };

/** The lookups of a verification, which use no cache. Names in answers are in lower case without a final dot. */
export interface DomainLookups {
  cname(name: string): Promise<LookupResult<string>>;
  /** Each record with its strings joined. */
  txt(name: string): Promise<LookupResult<string>>;
  mx(name: string): Promise<LookupResult<{ preference: number; exchange: string }>>;
  a(name: string): Promise<LookupResult<string>>;
  aaaa(name: string): Promise<LookupResult<string>>;
  /** The name servers to which the zone above delegates a name. */
  ns(name: string): Promise<LookupResult<string>>;
}

/** The state of a record; `unknown` if the lookup failed. */
export type RecordState = "present" | "absent" | "unknown";

function finding<Record>(
  result: LookupResult<Record>,
  fits: (records: readonly Record[]) => boolean,
): RecordState {
  if (result.status === "failure") return "unknown";
  return result.status === "ok" && fits(result.records) ? "present" : "absent";
}

/** Returns the value of `p=` in a DKIM key record (RFC 6376 §3.6.1) without white space. */
function publishedKey(record: string): string | undefined {
  return /(?:^|;)\s*p\s*=([^;]*)/.exec(record)?.[1]?.replace(/\s+/g, "");
}

/**
 * Checks DKIM: the selector has a record with the key, or is an alias of our name. An alias of another key is absent, as in a
 * zone that was published by hand before a rotation. With it, receivers would reject each signature.
 */
export async function findDkim(
  lookups: DomainLookups,
  domain: string,
  key: PublicDkimKey,
  serviceDomain: string,
): Promise<RecordState> {
  const name = dkimName(key.selector, domain);
  const target = dkimTarget(key.token, serviceDomain);
  const [aliases, records] = await Promise.all([lookups.cname(name), lookups.txt(name)]);
  const keys = records.status === "ok" ? records.records.map(publishedKey).filter(isKey) : [];
  // With several keys at a name, receivers may take any or none (RFC 6376 §3.6.2.2).
  if (keys.length > 0) return keys.length === 1 && keys[0] === key.publicKey ? "present" : "absent";
  // The owner only publishes the alias. Our record that it points to may not have spread yet.
  const alias = finding(aliases, (names) => names.includes(target));
  return alias === "absent" && records.status === "failure" ? "unknown" : alias;
}

/** Checks DKIM for keys that sign together: receivers may look at any signature. Without keys it is absent. */
export async function findAllDkim(
  lookups: DomainLookups,
  domain: string,
  keys: readonly PublicDkimKey[],
  serviceDomain: string,
): Promise<RecordState> {
  const states = await Promise.all(keys.map((key) => findDkim(lookups, domain, key, serviceDomain)));
  if (states.length === 0 || states.includes("absent")) return "absent";
  return states.includes("unknown") ? "unknown" : "present";
}

function isKey(key: string | undefined): key is string {
  return key !== undefined;
}

/** Returns whether a TXT record is an SPF record (RFC 7208 §4.5). */
export function isSpf(record: string): boolean {
  return /^v=spf1(?: |$)/i.test(record);
}

/** Returns whether a TXT record is a DMARC record, valid or not. The version is in capitals, or receivers ignore it. */
export function isDmarc(record: string): boolean {
  return /^[Vv]\s*=\s*DMARC1\s*(?:;|$)/.test(record);
}

/** RFC 7489 §6.3: `v` comes first, and `p` names a policy. */
const DMARC_RECORD = /^v\s*=\s*DMARC1\s*;(?:.*;)?\s*p\s*=\s*(?:none|quarantine|reject)\s*(?:;|$)/i;

/** Returns the DMARC policy that receivers apply to a domain; null if there is none or the DNS did not answer. */
export async function findPolicy(lookups: DomainLookups, domain: string): Promise<DmarcPolicy | null> {
  const found = await findPolicyRecord(lookups, domain);
  if (found.status !== "ok") return null;
  const { name, record } = found;
  const tag = (key: string): string | undefined =>
    new RegExp(`;\\s*${key}\\s*=\\s*([a-z]+)`, "i").exec(record)?.[1]?.toLowerCase();
  const said = (name === domain ? undefined : tag("sp")) ?? tag("p");
  return DMARC_POLICIES.find((policy) => policy === said) ?? null;
}

/** Checks DMARC: one valid record at the domain or, if it has none, at its organizational domain (RFC 7489 §6.6.3). */
export async function findDmarc(lookups: DomainLookups, domain: string): Promise<RecordState> {
  const found = await findPolicyRecord(lookups, domain);
  if (found.status === "failure") return "unknown";
  return found.status === "ok" ? "present" : "absent";
}

/** Finds the valid DMARC record of a domain, at `name`. */
export async function findPolicyRecord(
  lookups: DomainLookups,
  domain: string,
): Promise<{ status: "ok"; name: string; record: string } | { status: "nodata" | "failure" }> {
  const organizational = organizationalDomain(domain);
  for (const name of domain === organizational ? [domain] : [domain, organizational]) {
    const result = await lookups.txt(`_dmarc.${name}`);
    if (result.status === "failure") return result;
    const records = result.status === "ok" ? result.records : [];
    const [record, ...others] = records.filter(isDmarc);
    // Several records count as none, and end the search.
    if (record !== undefined)
      return others.length === 0 && DMARC_RECORD.test(record)
        ? { status: "ok", name, record }
        : { status: "nodata" };
  }
  return { status: "nodata" };
}

/**
 * Checks the delegation: one of the domain's name servers has the name that only this registration has. The name without a
 * token proves nothing, so it only keeps a delegation that was proven otherwise.
 */
export async function findDelegation(
  lookups: DomainLookups,
  { name, delegationToken, served }: Pick<Domain, "name" | "delegationToken" | "served">,
  serviceDomain: string,
): Promise<RecordState> {
  const hosts = [delegationHost(delegationToken, serviceDomain), ...(served ? [nsHost(serviceDomain)] : [])];
  return finding(await lookups.ns(name), (names) => hosts.some((host) => names.includes(host)));
}

/** Checks MX: our host is one of the domain's hosts. */
export async function findMx(
  lookups: DomainLookups,
  domain: string,
  serviceDomain: string,
): Promise<RecordState> {
  const host = mxHost(serviceDomain);
  return finding(await lookups.mx(domain), (records) => records.some(({ exchange }) => exchange === host));
}

/** Checks an alias: it leads to the target. */
export async function findAlias(lookups: DomainLookups, name: string, target: string): Promise<RecordState> {
  return finding(await lookups.cname(name), (names) => names.includes(target));
}
