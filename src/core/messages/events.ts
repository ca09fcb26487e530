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

/** Returns whether a webhook that is subscribed to `eventTypes` receives events of `type`. */
export function subscribes(eventTypes: readonly string[], type: EventType): boolean {
  return eventTypes.includes("*") || eventTypes.includes(type);
}
