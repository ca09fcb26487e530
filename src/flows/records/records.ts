import type { PublicDkimKey } from "../../store/domains/dkim-keys.ts";
import type { Domain } from "../../store/domains/domains.ts";
import type { DmarcPolicy } from "../../core/domains/dmarc-policies.ts";
import {
  bounceDomain,
  challengeName,
  challengeTarget,
  DMARC_MAILBOX,
  dkimTarget,
  linksHost,
  mxHost,
  spfInclude,
} from "../../core/own-names.ts";

/** Purposes of records that sending does not wait for. */
export const RECOMMENDED_PURPOSES = ["return_path", "links"] as const;
type RecommendedPurpose = (typeof RECOMMENDED_PURPOSES)[number];

/** A DNS record that the owner of a domain must publish, as the API shows it. */
export interface DnsRecord {
  type: "CNAME" | "TXT" | "MX";
  name: string;
  value: string;
  priority?: number;
  purpose: "dkim" | "spf" | "dmarc" | "inbound" | RecommendedPurpose;
  verified: boolean;
}

/** Health of one record. `failing` means that it was verified once and no longer resolves. */
export type Health = "verified" | "pending" | "failing";
export interface AuthHealth {
  dkim: Health;
  spf: Health;
  dmarc: Health;
}

/** Preference of the MX record of our host, which is the only one (RFC 5321 §5.1). */
export const MX_PREFERENCE = 10;

/** Returns the name at which a domain publishes the key of a selector (RFC 6376 §3.6.2.1). */
export function dkimName(selector: string, domain: string): string {
  return `${selector}._domainkey.${domain}`;
}

/** Returns the name of a domain's DMARC record (RFC 7489 §6.1). */
export function dmarcName(domain: string): string {
  return `_dmarc.${domain}`;
}

/** Returns a DMARC record with a policy and the address for reports (RFC 7489 §6.3). */
export function dmarcRecord(policy: DmarcPolicy, serviceDomain: string): string {
  return `v=DMARC1; p=${policy}; rua=mailto:${DMARC_MAILBOX}@${serviceDomain}`;
}

function dkimRecord(domain: Domain, key: PublicDkimKey, serviceDomain: string): DnsRecord {
  return {
    type: "CNAME",
    name: dkimName(key.selector, domain.name),
    value: dkimTarget(key.token, serviceDomain),
    purpose: "dkim",
    verified: key.status === "active" && domain.verified.dkim,
  };
}

/** Returns the records to publish for sending: a CNAME per DKIM key, SPF and DMARC. */
export function sendingRecords(
  domain: Domain,
  keys: readonly PublicDkimKey[],
  serviceDomain: string,
): DnsRecord[] {
  return [
    ...keys.filter(({ status }) => status !== "retired").map((key) => dkimRecord(domain, key, serviceDomain)),
    {
      type: "TXT",
      name: domain.name,
      value: `v=spf1 include:${spfInclude(serviceDomain)} ~all`,
      purpose: "spf",
      verified: domain.verified.spf,
    },
    {
      type: "TXT",
      name: dmarcName(domain.name),
      value: dmarcRecord(domain.dmarcPolicy, serviceDomain),
      purpose: "dmarc",
      verified: domain.verified.dmarc,
    },
  ];
}

export interface RecommendedDeps {
  serviceDomain: string;
  /** True if domains can have their own hosts of links. A delegated domain has its host without a record of its owner's. */
  hostsDomains: boolean;
}

/** Returns the records that improve how mail of a domain is received. Sending does not wait for them. */
export function recommendedRecords(
  { id, name, delegated, recommended: { returnPath, links } }: Domain,
  { serviceDomain, hostsDomains }: RecommendedDeps,
): DnsRecord[] {
  const alias = (purpose: RecommendedPurpose, at: string, value: string, verified: boolean): DnsRecord => ({
    type: "CNAME",
    name: at,
    value,
    purpose,
    verified,
  });
  const host = linksHost(name);
  return [
    alias("return_path", bounceDomain(name), bounceDomain(serviceDomain), returnPath),
    ...(hostsDomains && !delegated
      ? [
          alias("links", host, linksHost(serviceDomain), links),
          alias("links", challengeName(host), challengeTarget(id, serviceDomain), links),
        ]
      : []),
  ];
}

/** Returns the record to publish for receiving. */
export function receivingRecords(domain: Domain, serviceDomain: string): DnsRecord[] {
  return [
    {
      type: "MX",
      name: domain.name,
      value: mxHost(serviceDomain),
      priority: MX_PREFERENCE,
      purpose: "inbound",
      verified: domain.verified.mx,
    },
  ];
}

/** Returns the health of a domain's authentication at its last check. */
export function authHealth(domain: Domain): AuthHealth {
  const lost: Health = domain.verifiedAt === null ? "pending" : "failing";
  const { dkim, spf, dmarc } = domain.verified;
  return {
    dkim: dkim ? "verified" : lost,
    spf: spf ? "verified" : lost,
    dmarc: dmarc ? "verified" : lost,
  };
}
