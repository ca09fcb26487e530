import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from "node:crypto";
import { fromBase64Url } from "./base64url.ts";

const IV_BYTES = 12;
const TAG_BYTES = 16;

/** Derives a key for one purpose from the master key (HKDF-SHA256, RFC 5869). */
export function deriveKey(masterKey: Uint8Array, purpose: string): Buffer {
  return Buffer.from(hkdfSync("sha256", masterKey, new Uint8Array(), `postrider/${purpose}`, 32));
}

/** Encrypts a string with AES-256-GCM. Returns iv, tag and ciphertext as base64url. */
export function seal(key: Uint8Array, plain: string): string {
  const iv = randomBytes(IV_BYTES);
  const cipher = createCipheriv("aes-256-gcm", key, iv);
  const body = Buffer.concat([cipher.update(plain, "utf8"), cipher.final()]);
  return Buffer.concat([iv, cipher.getAuthTag(), body]).toString("base64url");
}

/** Decrypts the result of `seal`. Throws if the key differs or the ciphertext was changed. */
export function unseal(key: Uint8Array, sealed: string): string {
  const bytes = fromBase64Url(sealed);
  if (bytes === null) throw new Error("the sealed text is not in base64url");
  const decipher = createDecipheriv("aes-256-gcm", key, bytes.subarray(0, IV_BYTES));
  decipher.setAuthTag(bytes.subarray(IV_BYTES, IV_BYTES + TAG_BYTES));
  return Buffer.concat([decipher.update(bytes.subarray(IV_BYTES + TAG_BYTES)), decipher.final()]).toString(
    "utf8",
  );
}
