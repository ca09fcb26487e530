import type { WebhookEvent } from "./api.ts";

/** Name of the header with the signature. */
export const SIGNATURE_HEADER = "Service-Signature";

/** Seconds by which the signature's time may differ from now. */
const TOLERANCE_SECONDS = 300;
/** Characters of a header. Ours has one signature per secret, and during a rotation two. */
const MAX_HEADER_CHARS = 1000;

/** Why a webhook request is not to be trusted. */
export type VerificationFault = "no_signature" | "too_old" | "wrong_signature" | "wrong_body";

/** A webhook request that is forged, altered or too old. Answer it with 400. */
export class WebhookVerificationError extends Error {
  override readonly name = "WebhookVerificationError";
  readonly code: VerificationFault;

  constructor(code: VerificationFault, message: string) {
    super(message);
    this.code = code;
  }
}

/** Options of `verifyWebhook`. */
export interface VerifyOptions {
  /** Seconds by which the signature's time may differ from now. Default: 300. */
  toleranceSeconds?: number;
  /** Replaces the clock: milliseconds since 1970. */
  now?: number;
}

/**
 * Checks a webhook request and returns its event. Rejects with a `WebhookVerificationError` if the request is forged, altered or
 * too old.
 * @param rawBody the exact bytes of the body: not parsed and written again
 * @param header the value of the header `Service-Signature`
 * @param secret the webhook's signing secret, or several while it is being replaced
 */
export async function verifyWebhook(
  rawBody: string | Uint8Array | ArrayBuffer,
  header: string | null | undefined,
  secret: string | readonly string[],
  { toleranceSeconds = TOLERANCE_SECONDS, now = Date.now() }: VerifyOptions = {},
): Promise<WebhookEvent> {
  const { time, signatures } = partsOf(header);
  if (Math.abs(now / 1000 - time) > toleranceSeconds)
    throw new WebhookVerificationError("too_old", "The signature's time is too far from now.");
  const body = typeof rawBody === "string" ? new TextEncoder().encode(rawBody) : new Uint8Array(rawBody);
  const secrets = typeof secret === "string" ? [secret] : secret;
  if (!(await isSigned(signedBytes(time, body), secrets, signatures)))
    throw new WebhookVerificationError("wrong_signature", "No signature of the header fits the body.");
  return eventIn(body, time);
}

function partsOf(header: string | null | undefined): { time: number; signatures: string[] } {
  const fields = (header ?? "").slice(0, MAX_HEADER_CHARS).split(",");
  const values = (name: string) =>
    fields
      .map((field) => field.trim().split("=", 2))
      .flatMap(([key, value]) => (key === name && value ? [value] : []));
  const [time = ""] = values("t");
  const signatures = values("v1").filter((value) => /^[0-9a-f]{64}$/.test(value));
  if (!/^\d{1,12}$/.test(time) || signatures.length === 0)
    throw new WebhookVerificationError(
      "no_signature",
      `The header ${SIGNATURE_HEADER} is missing or malformed.`,
    );
  return { time: Number(time), signatures };
}

function signedBytes(time: number, body: Uint8Array): Uint8Array<ArrayBuffer> {
  const start = new TextEncoder().encode(`${time}.`);
  const bytes = new Uint8Array(start.length + body.length);
  bytes.set(start);
  bytes.set(body, start.length);
  return bytes;
}

async function isSigned(
  bytes: Uint8Array<ArrayBuffer>,
  secrets: readonly string[],
  signatures: readonly string[],
): Promise<boolean> {
  for (const secret of secrets) {
    const octets = new TextEncoder().encode(secret);
    const key = await crypto.subtle.importKey("raw", octets, { name: "HMAC", hash: "SHA-256" }, false, [
      "verify",
    ]);
    // It compares in constant time.
    for (const signature of signatures)
      if (await crypto.subtle.verify("HMAC", key, fromHex(signature), bytes)) return true;
  }
  return false;
}

function fromHex(hex: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(hex.match(/../g) ?? [], (pair) => Number.parseInt(pair, 16));
}

function eventIn(body: Uint8Array, time: number): WebhookEvent {
  const event = JSON.parse(new TextDecoder().decode(body)) as WebhookEvent;
  // A body that is signed is ours. Its time is compared all the same, because a proxy may have put another header before it.
  if (Math.floor(Date.parse(event.createdAt) / 1000) !== time)
    throw new WebhookVerificationError("wrong_body", "The body's createdAt is not the signature's time.");
  return event;
}
