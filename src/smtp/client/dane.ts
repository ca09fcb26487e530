import { createHash, type X509Certificate } from "node:crypto";
import { DANE_EE, DANE_TA, type DaneDemand, type TlsaRecord } from "../../core/tls-policy.ts";

/** id-kp-serverAuth (RFC 5280 §4.2.1.12). */
const SERVER_AUTH = "1.3.6.1.5.5.7.3.1";

/** Octets that a selector names: the certificate (0) or its public key (1). RFC 6698 §2.1.2. */
const SELECTED: Readonly<Record<number, (certificate: X509Certificate) => Uint8Array>> = {
  0: (certificate) => certificate.raw,
  1: (certificate) => certificate.publicKey.export({ type: "spki", format: "der" }),
};

/** Digests by matching type (RFC 6698 §2.1.3). */
const MATCHED: Readonly<Record<number, (octets: Uint8Array) => Uint8Array>> = {
  0: (octets) => octets,
  1: (octets) => createHash("sha256").update(octets).digest(),
  2: (octets) => createHash("sha512").update(octets).digest(),
};

/**
 * Checks a presented chain, leaf first, against DANE. Returns null if it matches, else the reason.
 * @param now milliseconds since the epoch
 */
export function matchDane(demand: DaneDemand, chain: readonly X509Certificate[], now: number): string | null {
  const [leaf] = chain;
  if (leaf === undefined) return "no certificate that can be read";
  const withUsage = (usage: number): TlsaRecord[] =>
    demand.records.filter((record) => record.usage === usage);
  // RFC 7672 §3.1.1: the record alone binds the key to the host. Names and dates of the certificate do not count.
  if (withUsage(DANE_EE).some((record) => matches(record, leaf))) return null;
  const anchors = withUsage(DANE_TA);
  if (anchors.length === 0) return "the certificate matches no TLSA record";
  return anchorFault({ anchors, names: demand.names, now }, chain, leaf);
}

/** Checks whether a record names this certificate. Returns false if its key type is unknown to us. */
function matches(record: TlsaRecord, certificate: X509Certificate): boolean {
  const select = SELECTED[record.selector];
  const match = MATCHED[record.matchingType];
  if (select === undefined || match === undefined) return false;
  try {
    return Buffer.from(match(select(certificate))).equals(record.data);
  } catch {
    return false;
  }
}

interface AnchorDemand {
  anchors: readonly TlsaRecord[];
  names: readonly string[];
  now: number;
}

/**
 * RFC 7672 §3.1.2: follows the issuers from the leaf through the presented chain to one that a record names. Path
 * length and name constraints are not checked: the publisher of the record chose the authority.
 */
function anchorFault(
  demand: AnchorDemand,
  chain: readonly X509Certificate[],
  leaf: X509Certificate,
): string | null {
  // §3.2.2, §3.2.3: an authority signs for many hosts, so the name must match too.
  if (!demand.names.some((name) => bears(leaf, name)))
    return `the certificate names none of ${demand.names.join(", ")}`;
  if (leaf.keyUsage !== undefined && !leaf.keyUsage.includes(SERVER_AUTH))
    return "the certificate is not for servers";
  let certificate = leaf;
  for (const _ of chain) {
    if (!isCurrent(certificate, demand.now)) return "a certificate of the chain is not valid at this time";
    const issuer = chain.find((candidate) => candidate !== leaf && hasIssued(candidate, certificate));
    if (issuer === undefined) break;
    if (demand.anchors.some((record) => matches(record, issuer)))
      return isCurrent(issuer, demand.now) ? null : "the trust anchor is not valid at this time";
    certificate = issuer;
  }
  return "no certificate of the chain matches a TLSA record";
}

function bears(certificate: X509Certificate, name: string): boolean {
  try {
    return certificate.checkHost(name) !== undefined;
  } catch {
    return false;
  }
}

function hasIssued(issuer: X509Certificate, certificate: X509Certificate): boolean {
  try {
    return (
      issuer !== certificate &&
      issuer.ca &&
      certificate.checkIssued(issuer) &&
      certificate.verify(issuer.publicKey)
    );
  } catch {
    return false;
  }
}

function isCurrent(certificate: X509Certificate, now: number): boolean {
  return Date.parse(certificate.validFrom) <= now && now <= Date.parse(certificate.validTo);
}
