import type { MessageEvent } from "../../core/events.ts";
import { type Attachment, listAttachments } from "../../store/attachments.ts";
import type { ContentDeps } from "../../store/contents/content-read.ts";
import { listEvents } from "../../store/events.ts";
import { getContent, type InRoom, isRendered } from "../../store/contents/message-content.ts";
import { getMessage, type Message, type MessageContent } from "../../store/messages.ts";
import { listRecipients, type Recipient } from "../../store/recipients.ts";
import { type LargeMails, withRoomFor } from "./large-mails.ts";
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

export interface RecordDeps extends ContentDeps {
  memory: { largeMails: LargeMails };
}

/** How much of a record is read. */
export interface RecordLimits {
  /** Events, the first ones; left out: all. */
  mostEvents?: number;
  /** Is told the octets of the body before it is read; throws where there is no room for them. */
  expect?: (octets: number) => void;
}

/**
 * The full record of a message of the project; null where it has none of that id. Large bodies are read in turn.
 * @throws AppError 503 where too much mail waits to be read
 */
export async function readRecord(
  deps: RecordDeps,
  senderId: string,
  id: string,
  limits: RecordLimits = {},
): Promise<MessageRecord | null> {
  const { db } = deps;
  const { mostEvents = Number.POSITIVE_INFINITY, expect } = limits;
  const inRoom: InRoom = async (octets, read) => {
    expect?.(octets);
    return withRoomFor(deps.memory.largeMails, senderId, octets, read);
  };
  const content = await getContent(deps, senderId, id, inRoom);
  if (content === null) return null;
  // In one turn, so that all say the same of how far the message has come.
  const [message, attachments, recipients, events] = await Promise.all([
    getMessage(db, senderId, id),
    listAttachments(db, senderId, id),
    listRecipients(db, senderId, id),
    listEvents(db, senderId, id, mostEvents + 1),
  ]);
  if (message === null) return null;
  // A template is rendered once: what of it was read before goes not with a subject from after it.
  if (message.templateId !== null && !content.rendered && (await isRendered(db, senderId, id)))
    return readRecord(deps, senderId, id, limits);
  const headers = withOwnFields(content.trace, content.headers);
  const shown = { events: events.slice(0, mostEvents), moreEvents: events.length > mostEvents };
  return { message, content: { ...content, headers }, attachments, recipients, ...shown };
}
