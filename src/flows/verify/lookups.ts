import type { PublicDkimKey } from "../../store/dkim-keys.ts";
import { organizationalDomain } from "../../core/public-suffix.ts";
import { dkimTarget, mxHost, spfInclude } from "../own-names.ts";
import { dkimName } from "./records.ts";

/** What a lookup says. `failure`: nothing is known (SERVFAIL, a timeout). */
export type LookupResult<Record> =
  | { status: "ok"; records: readonly Record[] }
  | { status: "nodata" }
  | { status: "nxdomain" }
  | { status: "failure" };

/** The lookups that verifying needs, each asked anew. Names in answers are lower case without a final dot. */
export interface DomainLookups {
  cname(name: string): Promise<LookupResult<string>>;
  /** Each record with its strings joined. */
  txt(name: string): Promise<LookupResult<string>>;
  mx(name: string): Promise<LookupResult<{ exchange: string }>>;
}

/** Whether a record is there as it should be; `unknown` where the DNS did not say. */
export type Finding = "present" | "absent" | "unknown";

function finding<Record>(
  result: LookupResult<Record>,
  fits: (records: readonly Record[]) => boolean,
): Finding {
  if (result.status === "failure") return "unknown";
  return result.status === "ok" && fits(result.records) ? "present" : "absent";
}

/** The value of `p=` in a DKIM key record (RFC 6376 §3.6.1), white space taken out. */
function publishedKey(record: string): string | undefined {
  return /(?:^|;)\s*p\s*=([^;]*)/.exec(record)?.[1]?.replace(/\s+/g, "");
}

/**
 * DKIM: the selector holds a record with the key, or is an alias of our name for it. An alias that leads to some other
 * key, as in a zone published by hand and not since a rotation, is none: receivers would find each signature wrong.
 */
export async function findDkim(
  lookups: DomainLookups,
  domain: string,
  key: PublicDkimKey,
  serviceDomain: string,
): Promise<Finding> {
  const name = dkimName(key.selector, domain);
  const target = dkimTarget(key.token, serviceDomain);
  const [aliases, records] = await Promise.all([lookups.cname(name), lookups.txt(name)]);
  const keys = records.status === "ok" ? records.records.map(publishedKey).filter(isKey) : [];
  if (keys.length > 0) return keys.includes(key.publicKey) ? "present" : "absent";
  // The owner's part is done with the alias; the record behind it is ours, and may not have got about yet.
  const alias = finding(aliases, (names) => names.includes(target));
  return alias === "absent" && records.status === "failure" ? "unknown" : alias;
}

function isKey(key: string | undefined): key is string {
  return key !== undefined;
}

/**
 * Whether an SPF record lets hosts of `included` pass: a plain include before `all` ends the evaluation (RFC 7208 §5.1).
 * A domain in it may end with a dot (§7.1).
 */
function includes(record: string, included: string): boolean {
  for (const term of record.toLowerCase().split(/ +/).slice(1)) {
    if (/^[+?~-]?all$/.test(term)) return false;
    const [, domain] = /^\+?include:(.+?)\.?$/.exec(term) ?? [];
    if (domain === included) return true;
  }
  return false;
}

/** SPF: exactly one record, since two are an error to every receiver (RFC 7208 §4.5), and it includes ours. */
export async function findSpf(
  lookups: DomainLookups,
  domain: string,
  serviceDomain: string,
): Promise<Finding> {
  const included = spfInclude(serviceDomain);
  return finding(await lookups.txt(domain), (records) => {
    const [record, ...more] = records.filter((text) => /^v=spf1(?: |$)/i.test(text));
    return record !== undefined && more.length === 0 && includes(record, included);
  });
}

/** RFC 7489 §6.3: `v` stands first, `p` names a policy. */
const DMARC_RECORD = /^v\s*=\s*DMARC1\s*;(?:.*;)?\s*p\s*=\s*(?:none|quarantine|reject)\s*(?:;|$)/i;

/** DMARC: one valid record at the domain or, where it has none, at its organizational domain (RFC 7489 §6.6.3). */
export async function findDmarc(lookups: DomainLookups, domain: string): Promise<Finding> {
  const organizational = organizationalDomain(domain);
  for (const name of domain === organizational ? [domain] : [domain, organizational]) {
    const result = await lookups.txt(`_dmarc.${name}`);
    if (result.status === "failure") return "unknown";
    const records = result.status === "ok" ? result.records : [];
    const policies = records.filter((text) => /^v\s*=\s*DMARC1\s*(?:;|$)/i.test(text));
    // More than one is as good as none, and the search ends here.
    if (policies.length > 0)
      return policies.length === 1 && DMARC_RECORD.test(policies[0] ?? "") ? "present" : "absent";
  }
  return "absent";
}

/** MX: our host is among the domain's. */
export async function findMx(
  lookups: DomainLookups,
  domain: string,
  serviceDomain: string,
): Promise<Finding> {
  const host = mxHost(serviceDomain);
  return finding(await lookups.mx(domain), (records) => records.some(({ exchange }) => exchange === host));
}
