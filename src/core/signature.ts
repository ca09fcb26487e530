import { createHmac } from "node:crypto";

/** Name of the header that authenticates a webhook delivery. */
export const SIGNATURE_HEADER = "Service-Signature";

/**
 * `t=<unix seconds>,v1=<hex>`: HMAC-SHA256 of `<t>.<rawBody>`, one `v1=` per secret, so that during a rotation
 * a receiver that knows either secret accepts.
 * @param secrets current first; the key is the whole string's bytes
 */
export function signWebhook(secrets: readonly string[], unixSeconds: number, rawBody: string): string {
  const signed = `${unixSeconds}.${rawBody}`;
  const fields = secrets.map((secret) => `v1=${createHmac("sha256", secret).update(signed).digest("hex")}`);
  return [`t=${unixSeconds}`, ...fields].join(",");
}
