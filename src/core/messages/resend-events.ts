import type { EventType, MessageEvent } from "./events.ts";

/** How the events of a webhook are named, built and signed: as this API's, or as Resend's. */
export type WebhookDialect = "postrider" | "resend";

/** The events of Resend's webhooks that a message of ours can have. */
export const RESEND_EVENTS = [
  "email.scheduled",
  "email.sent",
  "email.delivered",
  "email.delivery_delayed",
  "email.bounced",
  "email.complained",
  "email.opened",
  "email.clicked",
  "email.received",
  "email.failed",
  "email.suppressed",
] as const;
export type ResendEvent = (typeof RESEND_EVENTS)[number];

const NAMES: Partial<Readonly<Record<EventType, ResendEvent>>> = {
  delivery: "email.delivered",
  delivery_delayed: "email.delivery_delayed",
  bounce: "email.bounced",
  complaint: "email.complained",
  open: "email.opened",
  click: "email.clicked",
  inbound_received: "email.received",
  failed: "email.failed",
  rendering_failure: "email.failed",
};

/** Reasons for which Resend says that a recipient is suppressed. */
export const SUPPRESSED_REASONS: readonly string[] = ["suppressed", "unsubscribed"];

/** Returns the name of an event in Resend's dialect; null if it has none. */
export function resendName({ type, data }: Pick<MessageEvent, "type" | "data">): ResendEvent | null {
  if (type === "accepted") return "accepted" in data ? "email.scheduled" : null;
  // A retry is no second `email.sent`.
  if (type === "sending") return detail(data, "sending", "attempt") === 1 ? "email.sent" : null;
  if (type === "rejected")
    return SUPPRESSED_REASONS.some((reason) => reason === detail(data, "rejected", "reason"))
      ? "email.suppressed"
      : "email.failed";
  return NAMES[type] ?? null;
}

/** Returns one of an event's details; undefined if it has none of that name. */
export function detail(data: Readonly<Record<string, unknown>>, type: string, name: string): unknown {
  const details = data[type];
  return typeof details === "object" && details !== null ? Reflect.get(details, name) : undefined;
}
