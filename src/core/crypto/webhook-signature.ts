import { createHmac } from "node:crypto";

/** Name of the header that authenticates a webhook delivery. */
export const SIGNATURE_HEADER = "Service-Signature";

/** A body to sign: a text, or octets in pieces. Pieces are not copied, because many bodies share them. */
export type RawBody = string | readonly Uint8Array[];

/**
 * Returns `t=<unix seconds>,v1=<hex>`: the HMAC-SHA256 of `<t>.<rawBody>`. It has one `v1=` per secret, so that
 * during a rotation a receiver with either secret accepts.
 * @param secrets current first; the key is the whole string's bytes
 */
export function signWebhook(secrets: readonly string[], unixSeconds: number, rawBody: RawBody): string {
  const pieces = typeof rawBody === "string" ? [rawBody] : rawBody;
  const fields = secrets.map((secret) => {
    const hmac = createHmac("sha256", secret).update(`${unixSeconds}.`);
    for (const piece of pieces) hmac.update(piece);
    return `v1=${hmac.digest("hex")}`;
  });
  return [`t=${unixSeconds}`, ...fields].join(",");
}
