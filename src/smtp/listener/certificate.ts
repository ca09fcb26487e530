import { createPrivateKey, X509Certificate } from "node:crypto";
import { createSecureContext } from "node:tls";
import type { MakeRsaKey } from "../../core/crypto/rsa-key.ts";
import type { Clock } from "../../core/time/clock.ts";
import { reasonOf } from "../../core/errors.ts";
import { selfSignedCertificate } from "./self-signed.ts";

const CERTIFICATE_BLOCK = /-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----/gs;

/** Key and certificate chain for STARTTLS, in PEM. */
export interface Certificate {
  key: string;
  /** The certificate, followed by its intermediate certificates. */
  cert: string;
}

/** Paths of PEM files. If both are null, a self-signed certificate is made. */
export interface CertificateFiles {
  keyFile: string | null;
  certFile: string | null;
}

/** Error in the key file, in the certificate file, or in how they fit together. */
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
 * @throws CertificateError if a file cannot be read, is not PEM, or if key and certificate do not match
 */
export async function readCertificate(keyFile: string, certFile: string): Promise<Certificate> {
  // One after the other: if both fail, the error is always about the key.
  const key = await readText("key", keyFile);
  const cert = await readText("cert", certFile);
  const privateKey = parsed("key", `${keyFile} does not contain an unencrypted PEM private key`, () =>
    createPrivateKey(key),
  );
  const chain = parsed("cert", `${certFile} does not contain a PEM certificate`, () => readChain(cert));
  if (!chain[0].checkPrivateKey(privateKey))
    throw new CertificateError(
      "both",
      chain.some((certificate) => certificate.checkPrivateKey(privateKey))
        ? `the certificate of the key in ${keyFile} is not the first one in ${certFile}`
        : `the key in ${keyFile} does not belong to the certificate in ${certFile}`,
    );
  // Loads the whole chain now. Otherwise the first handshake would be the first to fail.
  parsed("cert", `${certFile} contains a chain that OpenSSL refuses`, () =>
    createSecureContext({ key, cert }),
  );
  return { key, cert };
}

/**
 * Parses the certificates of a chain in PEM. Throws if the first one is invalid; stops at the first later one that is.
 */
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

/** Returns when a certificate expires, in milliseconds since the epoch. */
export function expiryOf({ cert }: Certificate): number {
  return Date.parse(new X509Certificate(cert).validTo);
}

async function readText(part: "key" | "cert", path: string): Promise<string> {
  try {
    return await Bun.file(path).text();
  } catch (cause) {
    throw new CertificateError(part, `${path} cannot be read (${reasonOf(cause)})`, cause);
  }
}

/** Runs `read`. If it throws, adds the file's name to OpenSSL's message. */
function parsed<T>(part: "key" | "cert", complaint: string, read: () => T): T {
  try {
    return read();
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new CertificateError(part, `${complaint} (${why})`, cause);
  }
}

/** Returns the operator's certificate if both files are set, else a new self-signed one for `hostname`. */
export async function loadCertificate(
  { clock, makeRsaKey }: { clock: Clock; makeRsaKey?: MakeRsaKey },
  { keyFile, certFile }: CertificateFiles,
  hostname: string,
): Promise<Certificate> {
  if (keyFile !== null && certFile !== null) return readCertificate(keyFile, certFile);
  return selfSignedCertificate(hostname, clock.now(), makeRsaKey);
}
