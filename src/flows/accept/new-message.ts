import { type Mailbox, normalizeAddress } from "../../core/addresses.ts";
import { newId } from "../../core/ids.ts";
import { ownMessageId } from "../../core/messages/message-id.ts";
import { type Addressee, type ReadItem, streamOf } from "../../core/messages/send-item.ts";
import type { CheckedSend } from "../../core/messages/send-rules.ts";
import { type RecipientStatus, rollUp } from "../../core/messages/states.ts";
import { wellFormed } from "../../core/text.ts";
import type { Message, NewMessageContent } from "../../store/messages/messages.ts";
import type { Project } from "../../store/projects/projects.ts";
import type { NewRecipient } from "../../store/messages/recipients.ts";
import type { SendFacts } from "../../store/messages/sending.ts";
import { raiseApproval } from "../../store/notices/notices.ts";
import { APPROVAL_MS, AWAITING_APPROVAL } from "../../store/messages/approvals.ts";
import type { Statement } from "../../store/engine/client.ts";
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
  /** The domain in whose name the message leaves: its own, unless it is a forward. */
  domain: string;
  inboxAddress: string;
}

/** Reads the header From of a send. @param viaDomain see `SendOptions` */
export function fromOf({ from }: ReadItem, viaDomain?: string): From {
  const mailbox = toMailbox(from);
  const { email } = mailbox;
  return {
    mailbox,
    domain: viaDomain ?? email.slice(email.lastIndexOf("@") + 1),
    inboxAddress: inboxAddressOf(email),
  };
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
  /** The template that it is rendered from. If left out, that of the item. */
  templateId?: string;
  /** See `SendOptions`. */
  viaDomain?: string | null | undefined;
  now: number;
}

/** Makes the record of a message to send. */
export function newMessage(
  project: Project,
  send: CheckedSend,
  from: From,
  { recipients, kept, captured, keyId, templateId = send.item.templateId, viaDomain = null, now }: Parts,
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
    templateId: templateId ?? null,
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
    viaDomain,
    createdAt: now,
  };
}

/** Returns a recipient of a send with its first state. */
export function toRecipient(
  { email, key, domain, kind }: Addressee,
  ord: number,
  facts: SendFacts,
  {
    send,
    needsApproval,
    routedBy,
    now,
  }: { send: CheckedSend; needsApproval: boolean; routedBy: string | null; now: number },
): NewRecipient {
  const { item, scheduledAt } = send;
  const recipient = { ord, email, domain, kind, routedBy, bulk: streamOf(item) === "bulk" };
  const reason = refusalOf(key, facts);
  if (reason !== null) return { ...recipient, status: "rejected", reason, dueAt: null };
  if (needsApproval)
    return { ...recipient, status: "accepted", reason: AWAITING_APPROVAL, dueAt: now + APPROVAL_MS };
  const status = scheduledAt === null ? "queued" : "accepted";
  return { ...recipient, status, reason, dueAt: scheduledAt ?? now };
}

/** Returns the statements that tell people if recipients wait for an approval. */
export function approvalNotice(
  messageId: string,
  senderId: string,
  recipients: readonly NewRecipient[],
  at: number,
): Statement[] {
  const { length: waiting } = recipients.filter(({ reason }) => reason === AWAITING_APPROVAL);
  if (waiting === 0) return [];
  return [raiseApproval(newId("ntc", at), { senderId, messageId, recipients: waiting, at })];
}

/**
 * Returns why an address gets no message: it is suppressed, or it unsubscribed from messages with a link. Returns null
 * if it gets one.
 */
function refusalOf(key: string, { suppressed, unsubscribed }: SendFacts): string | null {
  if (suppressed.has(key)) return "suppressed";
  return unsubscribed.has(key) ? "unsubscribed" : null;
}
