import type { Clock } from "../../core/time/clock.ts";
import { withoutContent } from "../../core/messages/event-content.ts";
import type { EventType, MessageEvent } from "../../core/messages/events.ts";
import { shownSender } from "../../core/messages/sender.ts";
import { listAttachments } from "../../store/messages/attachments.ts";
import type { Clipped } from "../../store/contents/body-start.ts";
import { isContentRemoved } from "../../store/messages/content-release.ts";
import { getContentStart } from "../../store/messages/message-content.ts";
import { getEvent } from "../../store/events/events.ts";
import { getMessage, type Message } from "../../store/messages/messages.ts";
import type { WebhookDelivery } from "../../store/webhooks/webhook-deliveries.ts";
import { largeReadBudget, type LargeContents } from "../../store/contents/large-reads.ts";
import type { MadePayload, SharedPayload, SharedPayloads } from "./shared-payloads.ts";
import { readWhole } from "../mime/read-whole.ts";

/** Maximum octets of UTF-8 that an `inbound_received` event carries of each body. */
export const MAX_PUSHED_BODY_BYTES = 256 * 1024;
/**
 * Octets of JSON that one octet of a string may take. A control character becomes `\\u0001` (RFC 8259 §7).
 */
const MOST_JSON_OCTETS = 6;
/** Octets of UTF-8 that one octet of a message may become. */
const MOST_TEXT_OCTETS = 4;
/** Bytes that a payload takes without its bodies: addresses, subject, attachments, results of checks. */
const PAYLOAD_FACTS_OCTETS = 64 * 1024;

export interface PayloadDeps extends LargeContents {
  clock: Clock;
  payloads: SharedPayloads;
}

/**
 * Returns the `data` of a delivery's payload as JSON, to be released after the push. Returns null if its message or
 * event is gone.
 */
export async function payloadData(
  deps: PayloadDeps,
  delivery: WebhookDelivery,
): Promise<SharedPayload | null> {
  const { type, senderId, messageId, eventId } = delivery;
  if (delivery.data !== null) return ownPayload(type, delivery.data);
  if (messageId === null || eventId === null) return null;
  const message = await getMessage(deps.db, senderId, messageId);
  if (message === null) return null;
  const data = () => eventData(deps, message, eventId);
  if (type === "inbound_received") {
    const make = async () => madePayload(type, await data());
    return deps.payloads.take({ eventId, senderId, most: mostOctets(message), make });
  }
  const own = await data();
  return own === null ? null : ownPayload(type, own);
}

/** Returns a small payload that only one push uses. */
function ownPayload(type: EventType, data: Record<string, unknown>): SharedPayload {
  const octets = (withContent: boolean) => jsonOctets(withContent ? data : withoutContent(type, data));
  return { octets, turn: null, release: () => undefined };
}

/** Returns a payload in both forms, with content and without. */
function madePayload(type: EventType, data: Record<string, unknown> | null): MadePayload | null {
  if (data === null) return null;
  const [full, bare] = [jsonOctets(data), jsonOctets(withoutContent(type, data))];
  return { octets: (withContent) => (withContent ? full : bare), size: full.length + bare.length };
}

/** Returns the most bytes that the payload of an incoming message may take while it is made. */
export function mostOctets({ size }: Pick<Message, "size">): number {
  const texts = Math.min(size * MOST_TEXT_OCTETS, 2 * MAX_PUSHED_BODY_BYTES);
  return PAYLOAD_FACTS_OCTETS + texts * MOST_JSON_OCTETS;
}

function jsonOctets(data: Record<string, unknown>): Uint8Array {
  return Buffer.from(JSON.stringify(data));
}

async function eventData(
  deps: PayloadDeps,
  message: Message,
  eventId: string,
): Promise<Record<string, unknown> | null> {
  const event = await getEvent(deps.db, message.senderId, message.id, eventId);
  if (event === null) return null;
  return {
    ...commonData(message, event),
    ...event.data,
    ...(event.type === "inbound_received" ? { inbound_received: await arrivalData(deps, message) } : {}),
  };
}

/** Returns the fields that the `data` of every event has. */
export function commonData(
  message: Pick<Message, "tags" | "testMode">,
  event: MessageEvent,
): Record<string, unknown> {
  return {
    messageId: event.messageId,
    senderId: event.senderId,
    ...(event.email === null ? {} : { email: event.email }),
    occurredAt: new Date(event.createdAt).toISOString(),
    tags: message.tags,
    ...(message.testMode ? { testMode: true } : {}),
  };
}

/** Returns what the event of an arrived message shows of it. */
export async function arrivalData(deps: LargeContents, message: Message): Promise<Record<string, unknown>> {
  const { senderId, id } = message;
  const budget = largeReadBudget(deps.memory.largeReads, senderId);
  const content = await getContentStart({ ...deps, readWhole }, senderId, id, MAX_PUSHED_BODY_BYTES, budget);
  const { text, html } = content ?? { text: NO_TEXT, html: NO_TEXT };
  const isEmpty = text.part === null && html.part === null;
  return {
    inboxId: message.inboxId,
    threadId: message.threadId,
    from: message.from,
    to: message.to,
    subject: message.subject,
    text: text.part,
    html: html.part,
    // A message whose content has passed its retention must not look like one without any.
    truncated: text.cut || html.cut || (isEmpty && (await isContentRemoved(deps.db, senderId, id))),
    attachments: await listAttachments(deps.db, senderId, id),
    auth: content?.auth ?? null,
    spam: content?.arrival?.spam ?? null,
    sender: shownSender(message.from.email, content?.arrival?.sender),
  };
}

const NO_TEXT: Clipped = { part: null, cut: false };
