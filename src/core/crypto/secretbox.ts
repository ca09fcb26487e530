import { type Key, makingKey, opened } from "./key-ring.ts";
import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from "node:crypto";
import { fromBase64Url } from "./base64url.ts";

const IV_BYTES = 12;
const TAG_BYTES = 16;

/** Derives a key for one purpose from the master key (HKDF-SHA256, RFC 5869). */
export function deriveKey(masterKey: Uint8Array, purpose: string): Buffer {
  return Buffer.from(hkdfSync("sha256", masterKey, new Uint8Array(), `postrider/${purpose}`, 32));
}

/** Encrypts a string with AES-256-GCM. Returns iv, tag and ciphertext as base64url. */
export function seal(key: Key, plain: string): string {
  const iv = randomBytes(IV_BYTES);
  const cipher = createCipheriv("aes-256-gcm", makingKey(key), iv);
  const body = Buffer.concat([cipher.update(plain, "utf8"), cipher.final()]);
  return Buffer.concat([iv, cipher.getAuthTag(), body]).toString("base64url");
}

/** Decrypts the result of `seal`. Throws if no key of the ring made it, or the ciphertext was changed. */
export function unseal(key: Key, sealed: string): string {
  const plain = unsealOrNull(key, sealed);
  if (plain === null) throw new Error("no key opens the sealed text");
  return plain;
}

/** Decrypts the result of `seal`. Returns null if no key of the ring made it, or the ciphertext was changed. */
export function unsealOrNull(key: Key, sealed: string): string | null {
  return opened(key, (one) => unsealWith(one, sealed));
}

/** Returns a sealed text under the key that makes: the same text if that made it. Throws if no key of the ring made it. */
export function reseal(key: Key, sealed: string): string {
  return unsealWith(makingKey(key), sealed) === null ? seal(key, unseal(key, sealed)) : sealed;
}

function unsealWith(key: Uint8Array, sealed: string): string | null {
  const bytes = fromBase64Url(sealed);
  if (bytes === null) return null;
  try {
    const decipher = createDecipheriv("aes-256-gcm", key, bytes.subarray(0, IV_BYTES));
    decipher.setAuthTag(bytes.subarray(IV_BYTES, IV_BYTES + TAG_BYTES));
    const body = bytes.subarray(IV_BYTES + TAG_BYTES);
    return Buffer.concat([decipher.update(body), decipher.final()]).toString("utf8");
  } catch {
    return null;
  }
}
