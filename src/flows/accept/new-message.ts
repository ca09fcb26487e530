import { type Mailbox, normalizeAddress } from "../../core/addresses.ts";
import { newId } from "../../core/ids.ts";
import { ownMessageId } from "../../core/messages/message-id.ts";
import { type ReadItem, streamOf } from "../../core/messages/send-item.ts";
import type { CheckedSend } from "../../core/messages/send-rules.ts";
import { type RecipientStatus, rollUp } from "../../core/messages/states.ts";
import { wellFormed } from "../../core/text.ts";
import type { Message, NewMessageContent } from "../../store/messages/messages.ts";
import type { Project } from "../../store/projects/projects.ts";
import type { NewRecipient } from "../../store/messages/recipients.ts";
import type { KeptContent } from "./content.ts";
import { referencesOf } from "./join-thread.ts";
import { inboxAddressOf } from "./threading.ts";

function toMailbox(address: Mailbox): Mailbox {
  const email = normalizeAddress(address.email) ?? address.email;
  return address.name ? { email, name: address.name.toWellFormed() } : { email };
}

/** The header From, parsed once. */
export interface From {
  mailbox: Mailbox;
  domain: string;
  inboxAddress: string;
}

/** Reads the header From of a send. */
export function fromOf({ from }: ReadItem): From {
  const mailbox = toMailbox(from);
  const { email } = mailbox;
  return { mailbox, domain: email.slice(email.lastIndexOf("@") + 1), inboxAddress: inboxAddressOf(email) };
}

/** Returns the content of a message to store. */
export function newContentOf(
  { headers = {}, data }: ReadItem,
  { body, whole }: KeptContent,
  rendered: boolean,
): NewMessageContent {
  return {
    body,
    rendered,
    headers: wellFormed(headers),
    data: data === undefined ? null : wellFormed(data),
    ...(whole === undefined ? {} : { raw: whole.raw, envelope: whole.envelope }),
  };
}

/** A message to send, before its first attempt. */
export type OutboundMessage = Message & { status: RecipientStatus };

interface Parts {
  recipients: readonly NewRecipient[];
  kept: KeptContent;
  captured: boolean;
  /** The key that answers for the message; null: none. */
  keyId: string | null;
  now: number;
}

/** Makes the record of a message to send. */
export function newMessage(
  project: Project,
  send: CheckedSend,
  from: From,
  { recipients, kept, captured, keyId, now }: Parts,
): OutboundMessage {
  const { item, scheduledAt } = send;
  const id = newId("msg", now);
  return {
    id,
    senderId: project.id,
    direction: "outbound",
    status: rollUp(recipients.map((recipient) => recipient.status)),
    from: from.mailbox,
    to: item.to.map(toMailbox),
    cc: (item.cc ?? []).map(toMailbox),
    bcc: (item.bcc ?? []).map(toMailbox),
    replyTo: (item.replyTo ?? []).map(toMailbox),
    subject: item.subject ?? "",
    tags: item.tags ?? [],
    rfcMessageId:
      kept.whole?.rfcMessageId === undefined ? ownMessageId(id, from.domain) : kept.whole.rfcMessageId,
    inReplyTo: referencesOf(item).at(-1) ?? null,
    threadId: null,
    inboxId: null,
    templateId: item.templateId ?? null,
    keyId,
    scheduledAt,
    sentAt: null,
    size: kept.size,
    testMode: captured,
    trackOpens: item.tracking?.opens ?? project.trackOpens,
    trackClicks: item.tracking?.clicks ?? project.trackClicks,
    unsubscribeLink: item.unsubscribeLink ?? false,
    topicId: item.topicId ?? null,
    stream: streamOf(item),
    textFromHtml: kept.whole === undefined && project.textFromHtml,
    contentEnds: item.keepContent === false,
    trust: null,
    createdAt: now,
  };
}
