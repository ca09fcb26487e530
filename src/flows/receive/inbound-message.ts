import { newId } from "../../core/ids.ts";
import type { ReadyRules } from "../../core/rules/match.ts";
import type { AppliedRule } from "../../core/rules/ruling.ts";
import type { Spam } from "../../core/messages/spam.ts";
import { type SenderFacts, UNAUTHENTICATED } from "../../core/messages/sender.ts";
import type { NewAttachment } from "../../store/messages/attachments.ts";
import type { NewContent } from "../../store/contents/content-bytes.ts";
import { type Message, type NewMessageContent, NOT_SENT } from "../../store/messages/messages.ts";
import type { InboxRef } from "../../store/messages/sending.ts";
import type { Inspection, ReadMail } from "../mime/inspect.ts";
import type { RoleMailbox } from "./role-mailbox.ts";

/** The SMTP envelope of a received message, as its record shows it. */
export interface InboundEnvelope {
  mailFrom: string;
  rcptTo: string[];
  ip: string;
  helo: string;
  tls: string | null;
}

/** An inbox or role mailbox that a message goes to, and the recipients of the transaction that it was addressed by. */
export interface InboundTargetInbox {
  inbox: InboxRef | RoleMailbox;
  addresses: readonly string[];
}

/** A received message that is not stored yet. */
export interface InboundMail {
  envelope: InboundEnvelope;
  /** The trace fields that we add at the top. */
  trace: string;
  /** The bytes as received. */
  raw: Uint8Array;
  inspection: Inspection;
  spam: Spam | null;
  /** The rules of the projects that it goes to. A project may be missing. */
  rules: ReadonlyMap<string, ReadyRules>;
  testMode: boolean;
}

/** The target of a message, and its status there. */
export interface InboundPlacement extends InboundTargetInbox {
  status: Extract<Message["status"], "delivered" | "inbound_rejected">;
  threadId: string | null;
  /** Left out: nothing proves the sender. */
  sender?: SenderFacts | undefined;
  /** Milliseconds. */
  at: number;
}

/** Makes the record of a message in one inbox. */
export function inboundMessage(
  { envelope, trace, raw, inspection, testMode }: InboundMail,
  { inbox, addresses, status, threadId, sender = UNAUTHENTICATED, at }: InboundPlacement,
): Message {
  const { mail } = inspection;
  const namesNobody = mail.to.length === 0 && mail.cc.length === 0;
  return {
    ...NOT_SENT,
    trust: sender.trust,
    id: newId("msg", at),
    senderId: inbox.senderId,
    direction: "inbound",
    status,
    from: mail.from ?? { email: envelope.mailFrom },
    // If the header names no recipients, use those of the envelope.
    to: namesNobody ? addresses.map((email) => ({ email })) : mail.to,
    cc: mail.cc,
    bcc: [],
    replyTo: mail.replyTo,
    subject: mail.subject,
    tags: [],
    rfcMessageId: mail.messageId,
    inReplyTo: mail.inReplyTo,
    threadId,
    inboxId: inbox.id,
    size: Buffer.byteLength(trace) + raw.length,
    testMode,
    createdAt: at,
  };
}

/** The findings about a message for one inbox. */
export interface ArrivedFacts {
  rules?: readonly AppliedRule[];
  /** Left out: nothing proves the sender. */
  sender?: SenderFacts | undefined;
}

/**
 * Makes the content of a message.
 * @param addresses the recipients in this project; it must not see those of other projects
 */
export function inboundContent(
  { envelope, trace, inspection, spam }: InboundMail,
  { body, raw }: { body: NewContent; raw: NewContent | null },
  addresses: readonly string[],
  { rules = [], sender = UNAUTHENTICATED }: ArrivedFacts = {},
): NewMessageContent {
  return {
    body,
    envelope: { ...envelope, rcptTo: [...addresses] },
    auth: { ...inspection.authentication.verdict },
    arrival: { spam, rules, sender, unread: inspection.mail.unread },
    trace,
    raw,
  };
}

/** Lists the attachments. Their bytes stay in the raw message. */
export function inboundAttachments({ attachments }: ReadMail, at: number): NewAttachment[] {
  return attachments.map((attachment) => ({ ...attachment, id: newId("att", at), content: null }));
}
