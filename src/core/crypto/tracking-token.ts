import { type Key, makingKey, opened } from "./key-ring.ts";
import { timingSafeEqual } from "node:crypto";
import { fromBase64Url } from "./base64url.ts";

/** Bytes of the authentication tag: 144 bits, a multiple of three bytes, so base64 needs no padding. */
const TAG_BYTES = 18;

/** Characters of the tag. It ends between two characters, so tag and URL can be encoded apart. */
const TAG_CHARS = (TAG_BYTES * 8) / 6;

/**
 * Returns the tag that binds a URL to one recipient's token, in base64url. Uses Bun's HMAC, because Node's takes more than twice
 * as long and each link of a message needs one.
 */
function tag(key: Uint8Array, recipient: string, url: Uint8Array): string {
  return new Bun.CryptoHasher("sha256", key)
    .update(`click\n${recipient}\n`)
    .update(url)
    .digest("base64url")
    .slice(0, TAG_CHARS);
}

/**
 * Returns a URL as a tracking link carries it: authenticated, in base64url.
 * @param recipient the recipient's token, in lower case
 */
export function sealUrl(key: Key, recipient: string, url: string): string {
  const bytes = Buffer.from(url, "utf8");
  return tag(makingKey(key), recipient, bytes) + bytes.toString("base64url");
}

/** Returns the URL of `sealUrl`. Returns null if another key or recipient made the text, or if its spelling differs. */
export function openUrl(key: Key, recipient: string, sealed: string): string | null {
  const bytes = fromBase64Url(sealed);
  // The decoder accepts several spellings of the same bytes, but a link has one.
  if (bytes === null || bytes.length <= TAG_BYTES) return null;
  const url = bytes.subarray(TAG_BYTES);
  const given = bytes.subarray(0, TAG_BYTES);
  return opened(key, (one) => {
    const expected = Buffer.from(tag(one, recipient, url), "base64url");
    return timingSafeEqual(given, expected) ? url.toString("utf8") : null;
  });
}
