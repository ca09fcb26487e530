import type { PublicDkimKey } from "../../store/domains/dkim-keys.ts";
import type { Domain } from "../../store/domains/domains.ts";
import { bounceDomain, DMARC_MAILBOX, dkimTarget, mxHost, spfInclude } from "../../core/own-names.ts";

/** A DNS record that the owner of a domain must publish, as the API shows it. */
export interface DnsRecord {
  type: "CNAME" | "TXT" | "MX";
  name: string;
  value: string;
  priority?: number;
  purpose: "dkim" | "spf" | "dmarc" | "inbound" | "return_path";
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

/** Returns a DMARC record with a policy and the address for reports (RFC 7489 §6.3). */
export function dmarcRecord(policy: "none" | "reject", serviceDomain: string): string {
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
      name: `_dmarc.${domain.name}`,
      value: dmarcRecord("none", serviceDomain),
      purpose: "dmarc",
      verified: domain.verified.dmarc,
    },
  ];
}

/** Returns the records that improve how mail of a domain is received. Sending does not wait for them. */
export function recommendedRecords({ name, recommended }: Domain, serviceDomain: string): DnsRecord[] {
  return [
    {
      type: "CNAME",
      name: bounceDomain(name),
      value: bounceDomain(serviceDomain),
      purpose: "return_path",
      verified: recommended.returnPath,
    },
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
