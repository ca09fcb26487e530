import { type Mailbox, mailboxText } from "../../core/addresses.ts";
import type { MessageEvent } from "../../core/messages/events.ts";
import { detail, resendName } from "../../core/messages/resend-events.ts";
import { listAttachments } from "../../store/messages/attachments.ts";
import { getEvent } from "../../store/events/events.ts";
import { receivedFor } from "../../store/lists/received-for.ts";
import { getMessage, type Message } from "../../store/messages/messages.ts";
import type { Db } from "../../store/engine/client.ts";
import type { WebhookDelivery } from "../../store/webhooks/webhook-deliveries.ts";
import type { SharedPayload } from "./shared-payloads.ts";

/** An event, or the sample of one. */
type Happened = Pick<MessageEvent, "type" | "email" | "data" | "createdAt">;

/** Returns the body of a delivery in Resend's dialect. Returns null if its message or event is gone. */
export async function resendPayload(
  { db }: { db: Db },
  delivery: WebhookDelivery,
): Promise<SharedPayload | null> {
  const { type, senderId, messageId, eventId, data, createdAt } = delivery;
  if (data !== null) return payloadOf({ type, email: null, data, createdAt }, { email_id: data.messageId });
  if (messageId === null || eventId === null) return null;
  const message = await getMessage(db, senderId, messageId);
  const event = message === null ? null : await getEvent(db, senderId, messageId, eventId);
  if (message === null || event === null) return null;
  const isArrival = event.type === "inbound_received";
  return payloadOf(event, { ...factsOf(message), ...(isArrival ? await arrivalFacts(db, message) : {}) });
}

function payloadOf(event: Happened, facts: Record<string, unknown>): SharedPayload {
  const base = {
    type: resendName(event) ?? `email.${event.type}`,
    created_at: new Date(event.createdAt).toISOString(),
  };
  const bare = { email_id: facts.email_id, ...(event.email === null ? {} : { to: [event.email] }) };
  const full = JSON.stringify({ ...base, data: { ...facts, ...detailsOf(event) } });
  // A webhook without content learns what happened to which message and recipient, and nothing else.
  const reduced = JSON.stringify({ ...base, data: bare });
  const octets = (withContent: boolean) => Buffer.from(withContent ? full : reduced);
  return { octets, turn: null, release: () => undefined };
}

function factsOf(message: Message): Record<string, unknown> {
  return {
    email_id: message.id,
    created_at: new Date(message.createdAt).toISOString(),
    message_id: message.rfcMessageId ?? "",
    from: mailboxText(message.from),
    to: texts(message.to),
    subject: message.subject,
    ...(message.templateId === null ? {} : { template_id: message.templateId }),
    ...(message.tags.length === 0
      ? {}
      : { tags: Object.fromEntries(message.tags.map(({ name, value }) => [name, value])) }),
  };
}

function texts(mailboxes: readonly Mailbox[]): string[] {
  return mailboxes.map(mailboxText);
}

async function arrivalFacts(db: Db, message: Message): Promise<Record<string, unknown>> {
  const { senderId, id } = message;
  const attachments = await listAttachments(db, senderId, id);
  return {
    cc: texts(message.cc),
    bcc: texts(message.bcc),
    received_for: (await receivedFor(db, senderId, [message])).get(id) ?? [],
    attachments: attachments.map((attachment) => ({
      id: attachment.id,
      filename: attachment.filename,
      content_type: attachment.contentType,
      content_disposition: attachment.disposition,
      content_id: attachment.contentId,
    })),
  };
}

/** Returns the details that Resend has for some types of events. */
function detailsOf({ type, data, createdAt }: Happened): Record<string, unknown> {
  const of = (name: string) => detail(data, type, name);
  const message = of("diagnostic") ?? of("reason") ?? "";
  switch (type) {
    case "bounce":
      return {
        bounce: { message, type: of("type") === "hard" ? "Permanent" : "Transient", subType: of("category") },
      };
    case "click":
      return {
        click: {
          ipAddress: of("ip"),
          link: of("url"),
          userAgent: of("userAgent"),
          timestamp: new Date(createdAt).toISOString(),
        },
      };
    case "failed":
    case "rendering_failure":
      return { failed: { reason: message } };
    case "rejected":
      return resendName({ type, data }) === "email.suppressed"
        ? { suppressed: { message: "The recipient is on the suppression list.", type: of("reason") } }
        : { failed: { reason: message } };
    default:
      return {};
  }
}
