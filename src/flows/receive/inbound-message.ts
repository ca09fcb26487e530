import { newId } from "../../core/ids.ts";
import type { NewAttachment } from "../../store/attachments.ts";
import type { NewContent } from "../../store/contents/content-bytes.ts";
import type { Message, NewMessageContent } from "../../store/messages.ts";
import type { InboxRef } from "../../store/sending.ts";
import type { Inspection, ReadMail } from "./inspect.ts";
import type { RoleMailbox } from "./role-mailbox.ts";

/** How a mail came in: the SMTP envelope, as the record shows it. */
export interface InboundEnvelope {
  mailFrom: string;
  rcptTo: string[];
  ip: string;
  helo: string;
  tls: string | null;
}

/** An inbox, or a role mailbox in its place, that a mail goes to, and the addresses of the transaction that led there. */
export interface InboundTargetInbox {
  inbox: InboxRef | RoleMailbox;
  addresses: readonly string[];
}

/** A mail on its way in. */
export interface InboundMail {
  envelope: InboundEnvelope;
  /** The fields that we put in front of it. */
  trace: string;
  /** The bytes as received. */
  raw: Uint8Array;
  inspection: Inspection;
  testMode: boolean;
}

/** Where a mail goes, and how it ends there. */
export interface Place extends InboundTargetInbox {
  status: Extract<Message["status"], "delivered" | "inbound_rejected">;
  threadId: string | null;
  /** Milliseconds. */
  at: number;
}

/** The message that a mail is in one inbox. */
export function inboundMessage(
  { envelope, trace, raw, inspection, testMode }: InboundMail,
  { inbox, addresses, status, threadId, at }: Place,
): Message {
  const { mail } = inspection;
  const namesNobody = mail.to.length === 0 && mail.cc.length === 0;
  return {
    id: newId("msg", at),
    senderId: inbox.senderId,
    direction: "inbound",
    status,
    from: mail.from ?? { email: envelope.mailFrom },
    // A mail may hide its recipients, or name none: this one is known from the envelope.
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
    templateId: null,
    scheduledAt: null,
    sentAt: null,
    size: Buffer.byteLength(trace) + raw.length,
    testMode,
    trackOpens: false,
    trackClicks: false,
    unsubscribeLink: false,
    createdAt: at,
  };
}

/**
 * What stands beside the message.
 * @param addresses those of the transaction that led there: whom else it named is no business of this project
 */
export function inboundContent(
  { envelope, trace, inspection }: InboundMail,
  { body, raw }: { body: NewContent; raw: NewContent | null },
  addresses: readonly string[],
): NewMessageContent {
  return {
    body,
    envelope: { ...envelope, rcptTo: [...addresses] },
    auth: { ...inspection.authentication.verdict },
    trace,
    raw,
  };
}

/** The attachments as they are listed; their bytes are read out of the raw message. */
export function inboundAttachments({ attachments }: ReadMail, at: number): NewAttachment[] {
  return attachments.map((attachment) => ({ ...attachment, id: newId("att", at), content: null }));
}
