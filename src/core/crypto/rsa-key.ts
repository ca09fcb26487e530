import { generateKeyPair, type KeyObject } from "node:crypto";
import { promisify } from "node:util";

/**
 * RFC 8301 §3.2: DKIM signers should use at least 2048 bits. Longer keys do not fit the DNS answers of many providers. Every
 * peer with TLS 1.2 supports it.
 */
const RSA_BITS = 2048;

export interface RsaKey {
  publicKey: KeyObject;
  privateKey: KeyObject;
}

/** Makes a new RSA key. */
export type MakeRsaKey = () => Promise<RsaKey>;

/** Generates a new RSA key on the thread pool. */
export function newRsaKey(): Promise<RsaKey> {
  return promisify(generateKeyPair)("rsa", { modulusLength: RSA_BITS });
}
