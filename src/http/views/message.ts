import type { Extracts } from "../../flows/read/extracts.ts";
import type { MessageRecord } from "../../flows/read/record.ts";
import type { Invitation } from "../../core/messages/invitation.ts";
import { shownSender } from "../../core/messages/sender.ts";
import { isOfBroadcast } from "../../core/audience/broadcasts.ts";
import type { Message } from "../../store/messages/messages.ts";
import { Type } from "@sinclair/typebox";
import type { ForwardedCopy } from "../../core/messages/forwarded.ts";
import type { Mailbox } from "../../core/addresses.ts";
import { MESSAGE_STATUSES } from "../../core/messages/states.ts";
import { EVENT_TYPES, type MessageEvent } from "../../core/messages/events.ts";
import { Highlights } from "./highlights.ts";
import type { MessageSummary } from "../../store/lists/message-list.ts";
import { waitsForApproval } from "../../store/messages/approvals.ts";
import type { Recipient } from "../../store/messages/recipients.ts";
import { Nullable, OneOf, showTime, Timestamp } from "../routing/schemas.ts";
import {
  Address,
  AppliedRuleView,
  AttachmentView,
  AuthView,
  EnvelopeView,
  ForwardView,
  InvitationView,
  SenderView,
  showForward,
  SpamView,
  UnreadView,
} from "./received.ts";
import { EventDetails } from "./webhook-event.ts";

const Direction = OneOf(["inbound", "outbound"]);
const Status = OneOf(MESSAGE_STATUSES);
/** A message as lists show it. */
export const MessageSummaryView = Type.Object(
  {
    id: Type.String(),
    from: Type.String({ description: "Sender address." }),
    fromName: Nullable(Type.String({ description: "Sender name." })),
    to: Type.Array(Type.String(), { description: "Recipient addresses." }),
    toName: Nullable(Type.String({ description: "Name of the first recipient.", examples: ["Ben Ford"] })),
    subject: Type.String(),
    status: Status,
    direction: Direction,
    awaitingApproval: Type.Optional(
      Type.Literal(true, { description: "Present while it waits until another key approves it." }),
    ),
    createdAt: Timestamp,
    highlights: Highlights,
  },
  { title: "MessageSummary", description: "A message as lists show it." },
);

const RecipientView = Type.Object(
  {
    email: Type.String(),
    kind: OneOf(["to", "cc", "bcc"]),
    status: Status,
    reason: Nullable(Type.String({ description: "Reason of the status, e.g. `suppressed`." })),
    attempts: Type.Integer(),
    mx: Nullable(Type.String()),
    tls: Nullable(Type.String()),
    smtpCode: Nullable(Type.Integer()),
    enhancedCode: Nullable(Type.String()),
    diagnostic: Nullable(Type.String()),
    lastEventAt: Nullable(Timestamp),
  },
  { title: "Recipient" },
);

const EventView = Type.Object(
  {
    id: Type.String(),
    type: OneOf(EVENT_TYPES),
    createdAt: Timestamp,
    email: Nullable(Type.String()),
    data: EventDetails,
  },
  { title: "MessageEvent" },
);

export const MessageView = Type.Object(
  {
    ...Type.Omit(MessageSummaryView, ["highlights"]).properties,
    senderId: Type.String(),
    messageId: Nullable(Type.String({ description: "Header Message-ID, with angle brackets." })),
    cc: Type.Array(Type.String()),
    bcc: Type.Array(Type.String()),
    replyTo: Type.Array(Type.String()),
    html: Nullable(Type.String()),
    text: Nullable(Type.String()),
    headers: Type.Record(Type.String(), Type.String()),
    tags: Type.Array(Type.Object({ name: Type.String(), value: Type.String() })),
    attachments: Type.Array(AttachmentView),
    templateId: Nullable(Type.String()),
    broadcastId: Type.Optional(Type.String({ description: "The broadcast that it is part of." })),
    data: Nullable(Type.Record(Type.String(), Type.Unknown())),
    scheduledAt: Nullable(Timestamp),
    sentAt: Nullable(Timestamp),
    threadId: Nullable(Type.String()),
    inboxId: Nullable(Type.String()),
    size: Type.Integer(),
    testMode: Type.Optional(Type.Boolean()),
    topicId: Type.Optional(Type.String({ description: "The topic that its unsubscribe link leaves." })),
    stream: Type.Optional(
      Type.Union([Type.Literal("transactional"), Type.Literal("bulk")], {
        description: "Only of outbound messages.",
      }),
    ),
    recipients: Type.Array(RecipientView),
    events: Type.Array(EventView, { description: "Oldest first." }),
    envelope: Type.Optional(Nullable(EnvelopeView)),
    auth: Type.Optional(Nullable(AuthView)),
    sender: Type.Optional(Nullable(SenderView)),
    spam: Type.Optional(Nullable(SpamView)),
    invitation: Type.Optional(Nullable(InvitationView)),
    unread: Type.Optional(Nullable(UnreadView)),
    rules: Type.Optional(
      Type.Array(AppliedRuleView, { description: "The rules that a received message met, in their order." }),
    ),
    forwarded: Type.Optional(
      Type.Array(ForwardView, { description: "What rules have forwarded of a received message, and where." }),
    ),
    forwardOf: Type.Optional(
      Type.Object(
        { emailId: Type.String(), ruleId: Type.String() },
        { description: "The received message that a rule has forwarded as this one." },
      ),
    ),
    replyText: Type.Optional(Nullable(Type.String({ description: "The new text, without quoted text." }))),
    links: Type.Optional(
      Type.Array(Type.Object({ url: Type.String(), text: Type.String() }), {
        description:
          "Web addresses in the message, in order, each once, as they were before tracking; at most 100. Of received, captured and test-mode mail.",
      }),
    ),
    codes: Type.Optional(
      Type.Array(Type.String(), {
        description:
          "Codes to verify an address or to sign in, the most likely first; at most 5. Of the same mail.",
      }),
    ),
    addresses: Type.Object(
      {
        from: Address,
        to: Type.Array(Address),
        cc: Type.Array(Address),
        bcc: Type.Array(Address),
        replyTo: Type.Array(Address),
      },
      { description: "The same addresses with their display names." },
    ),
  },
  { title: "Message", description: "A message with its body and its events." },
);

/** Returns a message as lists show it. `awaiting`: it waits for an approval. */
export function showSummary(summary: MessageSummary, awaiting: boolean): Record<string, unknown> {
  return { ...summary, ...waits(awaiting), createdAt: showTime(summary.createdAt) };
}

function waits(awaiting: boolean): Record<string, unknown> {
  return awaiting ? { awaitingApproval: true } : {};
}

function emails(mailboxes: readonly Mailbox[]): string[] {
  return mailboxes.map((mailbox) => mailbox.email);
}

function showRecipient(recipient: Recipient): Record<string, unknown> {
  const { email, kind, status, reason, attempts, mx, tls, smtpCode, enhancedCode, diagnostic } = recipient;
  const lastEventAt = showTime(recipient.lastEventAt);
  return { email, kind, status, reason, attempts, mx, tls, smtpCode, enhancedCode, diagnostic, lastEventAt };
}

function showEvent({ id, type, createdAt, email, data }: MessageEvent): Record<string, unknown> {
  return { id, type, createdAt: showTime(createdAt), email, data };
}

/** A message of a broadcast names that as its template. */
function templateOf({ templateId }: Message): { templateId: string | null; broadcastId?: string } {
  return isOfBroadcast(templateId) ? { templateId: null, broadcastId: templateId } : { templateId };
}

/** Returns how a message that leaves as it came reached us. */
function sentWhole({ forward, ...envelope }: Record<string, unknown>): Record<string, unknown> {
  if (forward === undefined) return { envelope };
  const { emailId, ruleId } = forward as ForwardedCopy;
  return { envelope, forwardOf: { emailId, ruleId } };
}

/** Findings in a message's parts. */
export interface ReadFromParts extends Partial<Extracts> {
  invitation: Invitation | null;
}

/** Returns the full record of a message, with what was read from its parts if it is given. */
export function showMessage(
  parts: MessageRecord,
  read: ReadFromParts | null = null,
): Record<string, unknown> {
  const { message, content } = parts;
  const { from, to, cc, bcc, replyTo } = message;
  const { invitation = null, ...extracts } = read ?? {};
  return {
    id: message.id,
    senderId: message.senderId,
    direction: message.direction,
    status: message.status,
    from: from.email,
    fromName: from.name ?? null,
    to: emails(to),
    toName: to[0]?.name ?? null,
    cc: emails(cc),
    bcc: emails(bcc),
    replyTo: emails(replyTo),
    addresses: { from, to, cc, bcc, replyTo },
    subject: message.subject,
    messageId: message.rfcMessageId,
    html: content.html,
    text: content.text,
    headers: content.headers,
    tags: message.tags,
    attachments: parts.attachments,
    ...templateOf(message),
    data: content.data,
    scheduledAt: showTime(message.scheduledAt),
    sentAt: showTime(message.sentAt),
    threadId: message.threadId,
    inboxId: message.inboxId,
    size: message.size,
    ...extracts,
    ...(message.testMode ? { testMode: true } : {}),
    ...(message.direction === "outbound" ? { stream: message.stream } : {}),
    ...(message.topicId === null ? {} : { topicId: message.topicId }),
    ...waits(parts.recipients.some(({ reason }) => waitsForApproval(reason))),
    createdAt: showTime(message.createdAt),
    recipients: parts.recipients.map(showRecipient),
    events: parts.events.map(showEvent),
    ...(message.direction === "inbound"
      ? {
          envelope: content.envelope,
          auth: content.auth,
          sender: shownSender(from.email, content.arrival?.sender),
          spam: content.arrival?.spam ?? null,
          rules: content.arrival?.rules ?? [],
          ...(read === null ? {} : { invitation }),
          forwarded: parts.forwards.map(showForward),
          unread: content.arrival?.unread ?? null,
          replyText: content.replyText,
        }
      : content.envelope === null
        ? {}
        : sentWhole(content.envelope)),
  };
}
