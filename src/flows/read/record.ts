import type { MessageEvent } from "../../core/events.ts";
import { type Attachment, listAttachments } from "../../store/attachments.ts";
import type { ContentDeps } from "../../store/contents/content-read.ts";
import { listEvents } from "../../store/events.ts";
import { getContent } from "../../store/contents/message-content.ts";
import { getMessage, type Message, type MessageContent } from "../../store/messages.ts";
import { listRecipients, type Recipient } from "../../store/recipients.ts";
import { withOwnFields } from "../receive/shown-headers.ts";

/** Everything that the full record of a message shows. */
export interface MessageRecord {
  message: Message;
  content: MessageContent;
  attachments: Attachment[];
  recipients: Recipient[];
  events: MessageEvent[];
  /** Whether it has more of them than were asked for. */
  moreEvents: boolean;
}

/**
 * The full record of a message of the project; null where it has none of that id.
 * @param mostEvents of its events, the first
 */
export async function readRecord(
  deps: ContentDeps,
  senderId: string,
  id: string,
  mostEvents = Number.POSITIVE_INFINITY,
): Promise<MessageRecord | null> {
  const { db } = deps;
  const message = await getMessage(db, senderId, id);
  const content = message === null ? null : await getContent(deps, senderId, id);
  if (message === null || content === null) return null;
  const [attachments, recipients, events] = await Promise.all([
    listAttachments(db, senderId, id),
    listRecipients(db, senderId, id),
    listEvents(db, senderId, id, mostEvents + 1),
  ]);
  const headers = withOwnFields(content.trace, content.headers);
  const shown = { events: events.slice(0, mostEvents), moreEvents: events.length > mostEvents };
  return { message, content: { ...content, headers }, attachments, recipients, ...shown };
}
