import { createPrivateKey, X509Certificate } from "node:crypto";
import { createSecureContext } from "node:tls";
import type { Clock } from "../core/clock.ts";
import { reasonOf } from "../core/errors.ts";
import { selfSignedCertificate } from "./self-signed.ts";

const CERTIFICATE_BLOCK = /-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----/gs;

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

/** What of key and certificate cannot be served with, and why. */
export class CertificateError extends Error {
  readonly part: "key" | "cert" | "both";

  constructor(part: CertificateError["part"], message: string, cause?: unknown) {
    super(message, { cause });
    this.name = "CertificateError";
    this.part = part;
  }
}

/**
 * Reads key and certificate.
 * @throws CertificateError where a file cannot be read, is no PEM, or the two do not belong together
 */
export async function readCertificate(keyFile: string, certFile: string): Promise<Certificate> {
  // In turn, so that of two that cannot be read the same one is told each time.
  const key = await textOf("key", keyFile);
  const cert = await textOf("cert", certFile);
  const privateKey = understood("key", `${keyFile} holds no private key in PEM that is not encrypted`, () =>
    createPrivateKey(key),
  );
  const chain = understood("cert", `${certFile} holds no certificate in PEM`, () => readChain(cert));
  if (!chain[0].checkPrivateKey(privateKey))
    throw new CertificateError(
      "both",
      chain.some((certificate) => certificate.checkPrivateKey(privateKey))
        ? `the certificate of the key in ${keyFile} is not the first one in ${certFile}`
        : `the key in ${keyFile} does not belong to the certificate in ${certFile}`,
    );
  // Looks at all of it: a handshake that could not be served would otherwise be the first to tell.
  understood("cert", `${certFile} holds a chain that cannot be served`, () =>
    createSecureContext({ key, cert }),
  );
  return { key, cert };
}

/** The certificates of a chain in PEM, the first of which throws where it is none; those behind one that is none are left out. */
export function readChain(pem: string): [X509Certificate, ...X509Certificate[]] {
  const chain: ReturnType<typeof readChain> = [new X509Certificate(pem)];
  for (const block of pem.match(CERTIFICATE_BLOCK)?.slice(1) ?? [])
    try {
      chain.push(new X509Certificate(block));
    } catch {
      break;
    }
  return chain;
}

/** When a certificate ends, milliseconds since the epoch. */
export function endOf({ cert }: Certificate): number {
  return Date.parse(new X509Certificate(cert).validTo);
}

async function textOf(part: "key" | "cert", path: string): Promise<string> {
  try {
    return await Bun.file(path).text();
  } catch (cause) {
    throw new CertificateError(part, `${path} cannot be read (${reasonOf(cause)})`, cause);
  }
}

/** What `read` makes of a file. OpenSSL's errors name no file, and few people know them. */
function understood<T>(part: "key" | "cert", complaint: string, read: () => T): T {
  try {
    return read();
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new CertificateError(part, `${complaint} (${why})`, cause);
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
