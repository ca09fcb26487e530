import { createHmac } from "node:crypto";

/** Name of the header that authenticates a webhook delivery. */
export const SIGNATURE_HEADER = "Service-Signature";

/** A body to sign: a string, or bytes in pieces. Pieces are not copied, because many bodies share them. */
export type RawBody = string | readonly Uint8Array[];

/**
 * Returns `t=<unix seconds>,v1=<hex>`: the HMAC-SHA256 of `<t>.<rawBody>`. It has one `v1=` per secret, so that
 * during a rotation a receiver with either secret accepts.
 * @param secrets current first; the key is the whole string's bytes
 */
export function signWebhook(secrets: readonly string[], unixSeconds: number, rawBody: RawBody): string {
  const fields = secrets.map((secret) => `v1=${macOf(secret, `${unixSeconds}.`, rawBody).toString("hex")}`);
  return [`t=${unixSeconds}`, ...fields].join(",");
}

/** Start of the secret of a webhook. */
export const SECRET_PREFIX = "whsec_";

/**
 * Returns the headers of a delivery in Resend's dialect (Svix). The signature is the HMAC-SHA256 of
 * `<id>.<t>.<rawBody>` in base64, once per secret.
 * @param secrets current first; the key is what follows `whsec_`, decoded from base64
 */
export function signResendWebhook(
  secrets: readonly string[],
  id: string,
  unixSeconds: number,
  rawBody: RawBody,
): Record<string, string> {
  const signatures = secrets.map((secret) => {
    const key = Buffer.from(secret.slice(SECRET_PREFIX.length), "base64");
    return `v1,${macOf(key, `${id}.${unixSeconds}.`, rawBody).toString("base64")}`;
  });
  return {
    "svix-id": id,
    "svix-timestamp": String(unixSeconds),
    "svix-signature": signatures.join(" "),
  };
}

function macOf(key: string | Uint8Array, prefix: string, rawBody: RawBody): Buffer {
  const hmac = createHmac("sha256", key).update(prefix);
  for (const piece of typeof rawBody === "string" ? [rawBody] : rawBody) hmac.update(piece);
  return hmac.digest();
}
