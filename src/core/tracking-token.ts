import { timingSafeEqual } from "node:crypto";

/** Bytes of the authentication tag: 144 bits, a multiple of the three that base64 writes without a remainder. */
const TAG_BYTES = 18;

/**
 * Bound to one recipient's token and one URL: neither can be taken for another. By Bun's own HMAC, since a mail has one
 * for each of its links, and Node's takes more than twice as long.
 */
function tag(key: Uint8Array, recipient: string, url: Uint8Array): Buffer {
  return new Bun.CryptoHasher("sha256", key)
    .update(`click\n${recipient}\n`)
    .update(url)
    .digest()
    .subarray(0, TAG_BYTES);
}

/**
 * A URL as a recipient's link carries it: authenticated, in base64url.
 * @param recipient the recipient's token, in lower case
 */
export function sealUrl(key: Uint8Array, recipient: string, url: string): string {
  const bytes = Buffer.from(url, "utf8");
  return Buffer.concat([tag(key, recipient, bytes), bytes]).toString("base64url");
}

/** The URL behind `sealUrl`; null where it was not made with this key for this recipient, or is spelled otherwise. */
export function openUrl(key: Uint8Array, recipient: string, sealed: string): string | null {
  const bytes = Buffer.from(sealed, "base64url");
  // The decoder reads several spellings of the same bytes; one link has one.
  if (bytes.length <= TAG_BYTES || bytes.toString("base64url") !== sealed) return null;
  const url = bytes.subarray(TAG_BYTES);
  return timingSafeEqual(bytes.subarray(0, TAG_BYTES), tag(key, recipient, url))
    ? url.toString("utf8")
    : null;
}
