import type { WebhookDelivery } from "../../store/webhooks/webhook-deliveries.ts";
import { type PayloadDeps, payloadData } from "./payload.ts";
import { resendPayload } from "./resend-payload.ts";
import type { SharedPayload } from "./shared-payloads.ts";

/**
 * Returns the payload of a delivery in the dialect of its webhook, to be released after its use. Returns null if its
 * message or event is gone.
 */
export function deliveryPayload(deps: PayloadDeps, delivery: WebhookDelivery): Promise<SharedPayload | null> {
  return (delivery.dialect === "resend" ? resendPayload : payloadData)(deps, delivery);
}

/**
 * Returns the body of an attempt made at `now` (milliseconds), in pieces, because the pushes of an event share the
 * bytes of its data. `createdAt` is the second of the attempt, so that a retry passes a receiver's age check. In
 * Resend's dialect the payload is the whole body.
 */
export function deliveryBody(
  { id, type, dialect }: Pick<WebhookDelivery, "id" | "type" | "dialect">,
  payload: Uint8Array,
  now: number,
): Uint8Array[] {
  if (dialect === "resend") return [payload];
  const createdAt = new Date(Math.floor(now / 1000) * 1000).toISOString();
  const opening = JSON.stringify({ id, type, createdAt }).slice(0, -1);
  return [Buffer.from(`${opening},"data":`), payload, Buffer.from("}")];
}
