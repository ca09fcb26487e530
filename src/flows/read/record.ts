import type { MessageEvent } from "../../core/events.ts";
import { type Attachment, listAttachments } from "../../store/attachments.ts";
import type { Db } from "../../store/client.ts";
import { listEvents } from "../../store/events.ts";
import { getContent, getMessage, type Message, type MessageContent } from "../../store/messages.ts";
import { listRecipients, type Recipient } from "../../store/recipients.ts";

/** Everything that the full record of a message shows. */
export interface MessageRecord {
  message: Message;
  content: MessageContent;
  attachments: Attachment[];
  recipients: Recipient[];
  events: MessageEvent[];
}

/** The full record of a message of the project; null where it has none of that id. */
export async function readRecord(db: Db, senderId: string, id: string): Promise<MessageRecord | null> {
  const message = await getMessage(db, senderId, id);
  const content = message === null ? null : await getContent(db, senderId, id);
  if (message === null || content === null) return null;
  const [attachments, recipients, events] = await Promise.all([
    listAttachments(db, senderId, id),
    listRecipients(db, senderId, id),
    listEvents(db, senderId, id),
  ]);
  return { message, content, attachments, recipients, events };
}
