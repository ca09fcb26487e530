import { X509Certificate } from "node:crypto";

/** Certificates of a presented chain that are looked at; a longer chain is cut. */
const MAX_CHAIN_CERTIFICATES = 10;
/** Names of a certificate that are shown; one may bear thousands. */
export const MAX_NAMES_SHOWN = 10;
/** Characters shown of one name of a certificate. */
export const MAX_NAME_CHARS = 100;

/** What a certificate says of itself. Everything in it was written by a stranger. */
export interface CertificateFacts {
  subject: string;
  issuer: string;
  /** Subject alternative names, e.g. `DNS:mx.example.com`; the first ten. */
  names: readonly string[];
  /** Names beyond those ten. */
  moreNames: number;
  /** As the certificate spells them, e.g. `Jan  1 00:00:00 2026 GMT`. */
  validFrom: string;
  validTo: string;
}

/** A certificate of a chain as the socket gives it. */
interface Presented {
  raw?: Uint8Array;
  issuerCertificate?: Presented;
}

interface PeerSocket {
  getPeerCertificate(abbreviated?: boolean): Presented;
}

/**
 * The chain of the peer's certificate as far as it was presented or is known here, its own one first; empty where there
 * is none that can be read. Only of the first one has the peer proved that it holds the key.
 */
export function presentedChain(socket: PeerSocket): X509Certificate[] {
  const chain: X509Certificate[] = [];
  try {
    // `false` gives the whole chain here; node:tls has it the other way round.
    let presented: Presented | undefined = socket.getPeerCertificate(false);
    while (presented?.raw !== undefined && chain.length < MAX_CHAIN_CERTIFICATES) {
      chain.push(new X509Certificate(presented.raw));
      const issuer: Presented | undefined = presented.issuerCertificate;
      presented = issuer === presented ? undefined : issuer;
    }
  } catch {
    // A certificate that cannot be read ends the chain: nothing behind it could be vouched for.
  }
  return chain;
}

/** Whether one of a certificate's subject alternative names is that of the host; its common name is none. */
export function hasAlternativeName(certificate: X509Certificate | undefined, host: string): boolean {
  try {
    return certificate?.checkHost(host, { subject: "never" }) !== undefined;
  } catch {
    return false;
  }
}

/** What the record says of a certificate; null where it cannot be read. */
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

/** One line for the transcript. */
export function describeCertificate(facts: CertificateFacts): string {
  const more = facts.moreNames > 0 ? ` and ${facts.moreNames} more` : "";
  return [
    `subject ${facts.subject}`,
    `issuer ${facts.issuer}`,
    `names ${facts.names.join(" ")}${more}`,
    `valid from ${facts.validFrom} to ${facts.validTo}`,
  ].join("; ");
}

/** A distinguished name in one line; control characters, which could forge lines of a log, are taken out. */
function shown(text: string | undefined): string {
  const line = (text ?? "").replace(/\n/g, ", ").replace(/[^\x20-\x7e]/g, "?");
  return line.slice(0, MAX_NAME_CHARS);
}
