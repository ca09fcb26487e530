import type { EventType } from "./events.ts";

/** Fields of an event's `data` that carry no content of a message. `email` is the event's own recipient. */
const COMMON: ReadonlySet<string> = new Set([
  "messageId",
  "senderId",
  "email",
  "occurredAt",
  "tags",
  "testMode",
]);

const REFUSAL = ["reason", "category", "smtpCode", "enhancedCode", "mx"];

/**
 * Fields of each type's details that carry no content. A peer's reply is left out, because it may quote the message or name
 * another address. So is the reason why a template failed, because it quotes the template.
 */
const DETAILS: Readonly<Record<EventType, readonly string[]>> = {
  accepted: ["scheduledAt"],
  queued: [],
  sending: ["attempt"],
  sent: ["mx", "tls", "smtpCode"],
  delivery_delayed: ["attempt", "nextAttemptAt", "lane", "category", "smtpCode", "enhancedCode", "mx"],
  delivery: ["mx", "tls", "smtpCode"],
  bounce: ["type", ...REFUSAL],
  complaint: ["feedbackType"],
  rejected: REFUSAL,
  rendering_failure: ["category"],
  failed: REFUSAL,
  open: ["ip", "userAgent", "first", "machine"],
  click: ["ip", "userAgent", "machine"],
  unsubscribed: ["how", "topicId"],
  inbound_received: ["inboxId", "threadId", "spam"],
  inbound_rejected: ["reason", "inboxId"],
};

/**
 * Returns an event's `data` without content: no subject, body, header or link, and no address but its own recipient's. Only
 * fields listed above stay, so a field that is added later is content until it is listed.
 */
export function withoutContent(
  type: EventType,
  data: Readonly<Record<string, unknown>>,
): Record<string, unknown> {
  const kept = Object.entries(data).filter(([name]) => COMMON.has(name));
  const details = data[type];
  if (typeof details !== "object" || details === null) return Object.fromEntries(kept);
  const shown = Object.entries(details).filter(([name]) => DETAILS[type].includes(name));
  return Object.fromEntries([...kept, [type, Object.fromEntries(shown)]]);
}
