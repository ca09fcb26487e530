import type { RecipientStatus } from "./states.ts";

/** Every event type a webhook can subscribe to. */
export const EVENT_TYPES = [
  "accepted",
  "queued",
  "sending",
  "sent",
  "delivery_delayed",
  "delivery",
  "bounce",
  "complaint",
  "rejected",
  "rendering_failure",
  "failed",
  "open",
  "click",
  "unsubscribed",
  "inbound_received",
  "inbound_rejected",
] as const;

export type EventType = (typeof EVENT_TYPES)[number];

/** The event that is recorded if a recipient enters a state. */
export const EVENT_OF_STATUS: Readonly<Record<RecipientStatus, EventType>> = {
  accepted: "accepted",
  queued: "queued",
  sending: "sending",
  sent: "sent",
  delivery_delayed: "delivery_delayed",
  delivered: "delivery",
  bounced: "bounce",
  complained: "complaint",
  rejected: "rejected",
  rendering_failure: "rendering_failure",
  failed: "failed",
};

/** How a recipient unsubscribed: RFC 8058, the page of the link, a message to the address next to it, or the API. */
export const UNSUBSCRIBE_WAYS = ["one_click", "page", "mail", "api"] as const;
export type UnsubscribeWay = (typeof UNSUBSCRIBE_WAYS)[number];

/** An event of a message, as stored. `data` holds the type's own details, e.g. `{bounce: {...}}`. */
export interface MessageEvent {
  id: string;
  senderId: string;
  messageId: string;
  type: EventType;
  /** The recipient. Null if the event is about the message as a whole. */
  email: string | null;
  data: Record<string, unknown>;
  /** Milliseconds since the epoch. */
  createdAt: number;
}

/** The names by which a subscription finds an event. */
export interface EventNames {
  type: EventType;
  /** Its name in Resend's dialect; null or absent if that dialect has none for it. */
  resendName?: string | null;
}

/** Returns whether a webhook that is subscribed to `eventTypes` receives the event. */
export function subscribes(eventTypes: readonly string[], { type, resendName = null }: EventNames): boolean {
  if (eventTypes.includes("*") || eventTypes.includes(type)) return true;
  return resendName !== null && eventTypes.includes(resendName);
}
