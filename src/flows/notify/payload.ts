import type { Clock } from "../../core/clock.ts";
import type { MessageEvent } from "../../core/events.ts";
import { getEvent } from "../../store/events.ts";
import { listAttachments } from "../../store/attachments.ts";
import type { ContentDeps } from "../../store/contents/content-read.ts";
import { isLetGo } from "../../store/contents/content-release.ts";
import { getContent } from "../../store/contents/message-content.ts";
import { getMessage, type Message } from "../../store/messages.ts";
import type { WebhookDelivery } from "../../store/webhook-deliveries.ts";

/** Octets of UTF-8 that an `inbound_received` event carries of each body. */
export const MAX_PUSHED_BODY_BYTES = 256 * 1024;

/** The `data` of a delivery's payload; null where what it tells of is gone. */
export async function payloadData(
  deps: ContentDeps & { clock: Clock },
  delivery: WebhookDelivery,
): Promise<Record<string, unknown> | null> {
  if (delivery.data !== null) return delivery.data;
  const { senderId, messageId, eventId } = delivery;
  if (messageId === null || eventId === null) return null;
  const message = await getMessage(deps.db, senderId, messageId);
  const event = await getEvent(deps.db, senderId, messageId, eventId);
  if (message === null || event === null) return null;
  return {
    ...commonData(message, event),
    ...event.data,
    ...(event.type === "inbound_received" ? { inbound_received: await arrivalData(deps, message) } : {}),
  };
}

function commonData(message: Message, event: MessageEvent): Record<string, unknown> {
  return {
    messageId: message.id,
    senderId: message.senderId,
    ...(event.email === null ? {} : { email: event.email }),
    occurredAt: new Date(event.createdAt).toISOString(),
    tags: message.tags,
    ...(message.testMode ? { testMode: true } : {}),
  };
}

async function arrivalData(deps: ContentDeps, message: Message): Promise<Record<string, unknown>> {
  const content = await getContent(deps, message.senderId, message.id);
  const text = clip(content?.text ?? null);
  const html = clip(content?.html ?? null);
  const isEmpty = text.part === null && html.part === null;
  return {
    inboxId: message.inboxId,
    threadId: message.threadId,
    from: message.from,
    to: message.to,
    subject: message.subject,
    text: text.part,
    html: html.part,
    // A mail whose content has passed its retention must not pass for one without any.
    truncated: text.cut || html.cut || (isEmpty && (await isLetGo(deps.db, message.senderId, message.id))),
    attachments: await listAttachments(deps.db, message.senderId, message.id),
    auth: content?.auth ?? null,
  };
}

/** The first `MAX_PUSHED_BODY_BYTES` of a body, not cut within a character; `cut` where that is not all of it. */
export function clip(part: string | null): { part: string | null; cut: boolean } {
  if (part === null || part.length * 3 <= MAX_PUSHED_BODY_BYTES) return { part, cut: false };
  // Each unit of UTF-16 takes an octet or more: what lies beyond so many units is cut off in any case.
  const bytes = Buffer.from(part.slice(0, MAX_PUSHED_BODY_BYTES + 1));
  if (bytes.length <= MAX_PUSHED_BODY_BYTES) return { part, cut: false };
  let end = MAX_PUSHED_BODY_BYTES;
  // A byte 10xxxxxx continues a character that began before it.
  while (end > 0 && ((bytes[end] ?? 0) & 0xc0) === 0x80) end--;
  return { part: bytes.subarray(0, end).toString(), cut: true };
}
