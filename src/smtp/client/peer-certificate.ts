import { X509Certificate } from "node:crypto";

/** Maximum number of certificates read from a presented chain. */
const MAX_CHAIN_CERTIFICATES = 10;
/** Names shown of a certificate, which may have thousands. */
export const MAX_NAMES_SHOWN = 10;
/** Characters shown of one name. */
export const MAX_NAME_CHARS = 100;

/** Fields of a certificate. The peer controls all of them. */
export interface CertificateFacts {
  subject: string;
  issuer: string;
  /** Subject alternative names, e.g. `DNS:mx.example.com`; the first ten. */
  names: readonly string[];
  /** Number of further names. */
  moreNames: number;
  /** As the certificate spells them, e.g. `Jan  1 00:00:00 2026 GMT`. */
  validFrom: string;
  validTo: string;
}

/** A certificate of a chain as the socket returns it. */
interface Presented {
  raw?: Uint8Array;
  issuerCertificate?: Presented;
}

interface PeerSocket {
  getPeerCertificate(abbreviated?: boolean): Presented;
}

/**
 * Returns the peer's certificate chain, leaf first, as presented or known locally. Empty if there is no readable
 * certificate. The peer has proved possession of the key only for the leaf.
 */
export function presentedChain(socket: PeerSocket): X509Certificate[] {
  const chain: X509Certificate[] = [];
  try {
    // `false` returns the whole chain in Bun; in node:tls it is the reverse.
    let presented: Presented | undefined = socket.getPeerCertificate(false);
    while (presented?.raw !== undefined && chain.length < MAX_CHAIN_CERTIFICATES) {
      chain.push(new X509Certificate(presented.raw));
      const issuer: Presented | undefined = presented.issuerCertificate;
      presented = issuer === presented ? undefined : issuer;
    }
  } catch {
    // An unreadable certificate ends the chain, because no later one can be verified.
  }
  return chain;
}

/** Checks whether a subject alternative name matches the host. The common name does not count. */
export function hasAlternativeName(certificate: X509Certificate | undefined, host: string): boolean {
  try {
    return certificate?.checkHost(host, { subject: "never" }) !== undefined;
  } catch {
    return false;
  }
}

/** Returns the fields for the record, or null if the certificate is unreadable. */
export function certificateFacts(certificate: X509Certificate | undefined): CertificateFacts | null {
  try {
    return certificate === undefined ? null : factsOf(certificate);
  } catch {
    return null;
  }
}

function factsOf(certificate: X509Certificate): CertificateFacts {
  const names = (certificate.subjectAltName ?? "").split(", ").filter((name) => name !== "");
  return {
    subject: shown(certificate.subject),
    issuer: shown(certificate.issuer),
    names: names.slice(0, MAX_NAMES_SHOWN).map(shown),
    moreNames: Math.max(0, names.length - MAX_NAMES_SHOWN),
    validFrom: certificate.validFrom,
    validTo: certificate.validTo,
  };
}

/** Formats the facts as one line for the transcript. */
export function describeCertificate(facts: CertificateFacts): string {
  const more = facts.moreNames > 0 ? ` and ${facts.moreNames} more` : "";
  return [
    `subject ${facts.subject}`,
    `issuer ${facts.issuer}`,
    `names ${facts.names.join(" ")}${more}`,
    `valid from ${facts.validFrom} to ${facts.validTo}`,
  ].join("; ");
}

/** Returns a distinguished name in one line. Removes control characters, which could forge log lines. */
function shown(text: string | undefined): string {
  const line = (text ?? "").replace(/\n/g, ", ").replace(/[^\x20-\x7e]/g, "?");
  return line.slice(0, MAX_NAME_CHARS);
}
