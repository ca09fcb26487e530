import { createPrivateKey, X509Certificate } from "node:crypto";
import { createSecureContext } from "node:tls";
import type { Clock } from "../core/clock.ts";
import { selfSignedCertificate } from "./self-signed.ts";

/** What STARTTLS is served with, PEM. */
export interface Certificate {
  key: string;
  /** The certificate, followed by those that lead to its issuer's root. */
  cert: string;
}

/** Paths of PEM files; both null where a certificate is to be made. */
export interface CertificateFiles {
  keyFile: string | null;
  certFile: string | null;
}

/** Reads key and certificate. Throws where a file cannot be read, is no PEM, or the two do not belong together. */
export async function readCertificate(keyFile: string, certFile: string): Promise<Certificate> {
  // In turn, so that of two that cannot be read the same one is told each time.
  const key = await Bun.file(keyFile).text();
  const cert = await Bun.file(certFile).text();
  const privateKey = understood(`${keyFile} holds no private key in PEM that is not encrypted`, () =>
    createPrivateKey(key),
  );
  const certificate = understood(`${certFile} holds no certificate in PEM`, () => new X509Certificate(cert));
  if (!certificate.checkPrivateKey(privateKey))
    throw new Error(`The key in ${keyFile} does not belong to the certificate in ${certFile}.`);
  // Looks at the whole chain: a handshake that could not be served would otherwise be the first to tell.
  understood(`${certFile} holds a chain that cannot be served`, () => createSecureContext({ key, cert }));
  return { key, cert };
}

/** What `read` makes of a file. OpenSSL's errors name no file, and few people know them. */
function understood<T>(complaint: string, read: () => T): T {
  try {
    return read();
  } catch (cause) {
    throw new Error(`${complaint} (${cause instanceof Error ? cause.message : String(cause)})`, { cause });
  }
}

/** The operator's certificate where both files are named, else a new self-signed one for `hostname`. */
export async function loadCertificate(
  { clock }: { clock: Clock },
  { keyFile, certFile }: CertificateFiles,
  hostname: string,
): Promise<Certificate> {
  if (keyFile !== null && certFile !== null) return readCertificate(keyFile, certFile);
  return selfSignedCertificate(hostname, clock.now());
}
