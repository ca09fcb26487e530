import { createHash, createPrivateKey, type X509Certificate } from "node:crypto";
import { AcmeError } from "../../net/acme/problem.ts";
import { readChain } from "../../smtp/listener/certificate.ts";

/** Octets of a hash that make a place. */
const PLACE_OCTETS = 4;

/**
 * Checks a chain that the CA sent: it is for our key and names, and valid now.
 * @param chain PEM
 * @param keyPem our private key
 * @throws AcmeError if it cannot be used
 */
export function checkChain(
  chain: string,
  keyPem: string,
  names: readonly string[],
  now: number,
): { notAfter: number } {
  const leaf = leafOf(chain);
  if (!leaf.checkPrivateKey(createPrivateKey(keyPem)))
    throw new AcmeError("the CA sent a certificate for another key");
  const missing = names.filter((name) => leaf.checkHost(name) === undefined);
  if (missing.length > 0) throw new AcmeError(`the CA sent a certificate without ${missing.join(", ")}`);
  const { notAfter } = timesOf(leaf);
  if (notAfter <= now)
    throw new AcmeError(
      `the new certificate ended on ${leaf.validTo} by the clock of this machine: set the clock`,
      { refused: true },
    );
  return { notAfter };
}

function leafOf(chain: string): X509Certificate {
  try {
    return readChain(chain)[0];
  } catch {
    throw new AcmeError("the CA sent something that is no certificate");
  }
}

/** Returns the start and end of a certificate, milliseconds. */
export function timesOf(certificate: X509Certificate): { notBefore: number; notAfter: number } {
  return { notBefore: Date.parse(certificate.validFrom), notAfter: Date.parse(certificate.validTo) };
}

/** Returns the place of a certificate in the window for its renewal: a number in [0, 1), the same in every process. */
export function placeOf(certificate: X509Certificate): number {
  const hash = createHash("sha256").update(certificate.raw).digest();
  return hash.readUIntBE(0, PLACE_OCTETS) / 256 ** PLACE_OCTETS;
}
