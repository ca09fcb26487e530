import type { PublicDkimKey } from "../../store/dkim-keys.ts";
import type { Domain } from "../../store/domains.ts";
import { DMARC_MAILBOX, dkimTarget, mxHost, spfInclude } from "../own-names.ts";

/** A DNS record the owner of a domain is to publish, as the API shows it. */
export interface DnsRecord {
  type: "CNAME" | "TXT" | "MX";
  name: string;
  value: string;
  priority?: number;
  purpose: "dkim" | "spf" | "dmarc" | "inbound";
  verified: boolean;
}

/** Health of one record: `failing` was verified once and no longer resolves. */
export type Health = "verified" | "pending" | "failing";
export interface AuthHealth {
  dkim: Health;
  spf: Health;
  dmarc: Health;
}

/** Preference of MX records that lead to our host (RFC 5321 §5.1): a lower one goes first, and there is no other. */
export const MX_PREFERENCE = 10;

/** The name at which a domain publishes the key of a selector (RFC 6376 §3.6.2.1). */
export function dkimName(selector: string, domain: string): string {
  return `${selector}._domainkey.${domain}`;
}

/** A DMARC record of that policy, with where its reports go (RFC 7489 §6.3). */
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

/** The records to publish for sending: one CNAME a DKIM key, SPF, DMARC. */
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

/** The record to publish for receiving. */
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

/** Health of a domain's authentication by its last check. */
export function authHealth(domain: Domain): AuthHealth {
  const lost: Health = domain.verifiedAt === null ? "pending" : "failing";
  const { dkim, spf, dmarc } = domain.verified;
  return {
    dkim: dkim ? "verified" : lost,
    spf: spf ? "verified" : lost,
    dmarc: dmarc ? "verified" : lost,
  };
}
