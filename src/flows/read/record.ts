import type { MessageEvent } from "../../core/messages/events.ts";
import { type Attachment, listAttachments } from "../../store/messages/attachments.ts";
import { listEvents } from "../../store/events/events.ts";
import { waitingBudget } from "../../store/contents/memory-budget.ts";
import { isOfBroadcast } from "../../core/audience/broadcasts.ts";
import { RenderingFailure } from "../../core/templates/render.ts";
import { templateOfBroadcast } from "../../store/audience/broadcasts.ts";
import { getContent, isRendered } from "../../store/messages/message-content.ts";
import { getMessage, type Message, type MessageContent } from "../../store/messages/messages.ts";
import { listRecipients, type Recipient } from "../../store/messages/recipients.ts";
import { type Forward, forwardsOf } from "../../store/rules/rule-effects.ts";
import { readLarge, type LargeContents } from "../../store/contents/large-reads.ts";
import { withOwnFields } from "../../mail/reading/shown-headers.ts";
import type { Making } from "../mime/making.ts";
import { LINK_VARIABLE } from "../mime/unsubscribe.ts";
import { readWhole } from "../mime/read-whole.ts";

export interface MessageRecord {
  message: Message;
  content: MessageContent;
  attachments: Attachment[];
  recipients: Recipient[];
  events: MessageEvent[];
  /** Forwards of a received message by rules. */
  forwards: Forward[];
  /** True if there are more events than these. */
  moreEvents: boolean;
}

export interface RecordLimits {
  /** The number of events, oldest first. If left out, all. */
  mostEvents?: number;
  /** Called with the bytes of the body before it is read. Throws if there is no room for them. */
  expect?: (octets: number) => void;
}

/** The sources of records. Readers of messages that may be of a broadcast give a renderer, because its output is not stored. */
export type RecordDeps = LargeContents & Partial<Pick<Making, "renderer">>;

/**
 * Reads the full record of a message, or null if the project has none of that id. If the body is large, the read waits
 * for admission.
 * @throws AppError 503 if too many reads wait
 */
export async function readRecord(
  deps: RecordDeps,
  senderId: string,
  id: string,
  limits: RecordLimits = {},
): Promise<MessageRecord | null> {
  const { db } = deps;
  const { mostEvents = Number.POSITIVE_INFINITY, expect } = limits;
  const budget = waitingBudget(async (octets, read) => {
    expect?.(octets);
    return readLarge(deps.memory.largeReads, senderId, octets, read);
  });
  const content = await getContent({ ...deps, readWhole }, senderId, id, budget);
  if (content === null) return null;
  // Read in one tick of the event loop, so that all show the same state of the message.
  const [forwards, message, attachments, recipients, events] = await Promise.all([
    content.arrival?.rules?.length ? forwardsOf(db, senderId, id) : [],
    getMessage(db, senderId, id),
    listAttachments(db, senderId, id),
    listRecipients(db, senderId, id),
    listEvents(db, senderId, id, mostEvents + 1),
  ]);
  if (message === null) return null;
  // If the template was rendered during the read, the body is from before and the subject from after. Read again.
  if (message.templateId !== null && !content.rendered && (await isRendered(db, senderId, id)))
    return readRecord(deps, senderId, id, limits);
  const headers = withOwnFields(content.trace, content.headers);
  const bodies = await broadcastBodies(deps, message, content);
  const shown = { events: events.slice(0, mostEvents), moreEvents: events.length > mostEvents };
  const shownContent = { ...content, ...bodies, headers };
  return { message, content: shownContent, attachments, recipients, forwards, ...shown };
}

/** Returns the bodies of a message of a broadcast as they leave, with the variable in place of its link; nothing for other messages. */
async function broadcastBodies(
  { db, renderer }: RecordDeps,
  { senderId, templateId }: Message,
  { data }: MessageContent,
): Promise<Partial<Pick<MessageContent, "html" | "text">>> {
  if (renderer === undefined || !isOfBroadcast(templateId)) return {};
  const source = await templateOfBroadcast(db, senderId, templateId);
  if (source === null) return {};
  try {
    const { html, text } = await renderer.template(senderId, source, {
      ...data,
      unsubscribeUrl: LINK_VARIABLE,
    });
    return { html, text };
  } catch (error) {
    // Its status says `rendering_failure`.
    if (error instanceof RenderingFailure) return {};
    throw error;
  }
}
