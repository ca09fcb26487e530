import type { X509Certificate } from "node:crypto";
import type { Config } from "../../config.ts";
import { readCertificate, readChain } from "../../smtp/listener/certificate.ts";
import { type CertificateRecord, findCertificate } from "../../store/domains/certificates.ts";
import type { Db } from "../../store/engine/client.ts";
import { type NameSettings, serviceCertificate } from "./wanted.ts";

export type CertificateSource = "acme" | "file" | "self-signed";

export type CertificateSettings = NameSettings &
  Pick<Config, "acmeEmail" | "acmeDirectory" | "smtpTlsKey" | "smtpTlsCert">;

/** The certificate that our servers use for the service's own names. */
export interface ServedCertificate {
  source: CertificateSource;
  /** In PEM; null if each process makes its own at its start. */
  chain: string | null;
  /** The certificate to get and renew; null if none is ordered, or before the first order. */
  record: CertificateRecord | null;
}

/** Returns true if certificates are ordered: ACME_EMAIL is set, and no files win. */
export function usesAcme({ acmeEmail, smtpTlsCert }: Pick<Config, "acmeEmail" | "smtpTlsCert">): boolean {
  return acmeEmail !== null && smtpTlsCert === null;
}

/**
 * Returns the certificate that our servers use: the configured files, else the one that was ordered, else none.
 * @param db returns the database; files need none
 * @throws CertificateError if the files cannot be used
 */
export async function servedCertificate(
  db: () => Db,
  settings: CertificateSettings,
): Promise<ServedCertificate> {
  const { smtpTlsKey, smtpTlsCert } = settings;
  if (smtpTlsKey !== null && smtpTlsCert !== null) {
    const { cert } = await readCertificate(smtpTlsKey, smtpTlsCert);
    return { source: "file", chain: cert, record: null };
  }
  const { id } = serviceCertificate(settings);
  const record = usesAcme(settings) ? await findCertificate(db(), id) : null;
  const chain = record?.issued?.chain ?? null;
  return { source: chain === null ? "self-signed" : "acme", chain, record };
}

/**
 * Returns our certificate if senders can verify it at all these names now, whichever process they meet; else null. A
 * certificate that signs itself counts as none.
 */
export function verifiable(
  { chain, record }: Pick<ServedCertificate, "chain" | "record">,
  names: readonly string[],
  now: number,
): X509Certificate | null {
  if (chain === null || now < (record?.issued?.servedFrom ?? 0)) return null;
  const [leaf] = readChain(chain);
  const isCurrent = Date.parse(leaf.validFrom) <= now && now < Date.parse(leaf.validTo);
  const isTrusted = leaf.issuer !== leaf.subject;
  return isCurrent && isTrusted && names.every((name) => leaf.checkHost(name) !== undefined) ? leaf : null;
}
