import { newId } from "../../core/ids.ts";
import { fieldsOf } from "../../mail/raw-headers.ts";
import { toHeaderField } from "../../mail/header-block.ts";
import type { NewAttachment } from "../../store/attachments.ts";
import type { Message, MessageContent } from "../../store/messages.ts";
import type { InboxRef } from "../../store/sending.ts";
import type { Inspection, ReadMail } from "./inspect.ts";

/** How a mail came in: the SMTP envelope, as the record shows it. */
export interface InboundEnvelope {
  mailFrom: string;
  rcptTo: string[];
  ip: string;
  helo: string;
  tls: string | null;
}

/** An inbox that a mail goes to, and the addresses of the transaction that led there. */
export interface InboundTargetInbox {
  inbox: InboxRef;
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
export interface Place {
  inbox: InboxRef;
  status: Extract<Message["status"], "delivered" | "inbound_rejected">;
  threadId: string | null;
  /** Milliseconds. */
  at: number;
}

/** The message that a mail is in one inbox. */
export function inboundMessage(
  { envelope, trace, raw, inspection, testMode }: InboundMail,
  { inbox, status, threadId, at }: Place,
): Message {
  const { mail } = inspection;
  return {
    id: newId("msg", at),
    senderId: inbox.senderId,
    direction: "inbound",
    status,
    from: mail.from ?? { email: envelope.mailFrom },
    to: mail.to,
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
  addresses: readonly string[],
): MessageContent {
  const { mail, replyText, authentication } = inspection;
  return {
    html: mail.html,
    text: mail.text,
    headers: shownHeaders(trace, mail),
    data: null,
    envelope: { ...envelope, rcptTo: [...addresses] },
    auth: { ...authentication.verdict },
    replyText,
    rendered: false,
  };
}

/** Header fields shown in a record at most; the raw message has them all. */
const MAX_SHOWN_HEADERS = 200;

/**
 * The header fields by name; of a name that comes twice, the topmost: so the Authentication-Results shown are ours, and
 * never one that the mail brought along (RFC 8601 §5).
 */
function shownHeaders(trace: string, mail: ReadMail): Record<string, string> {
  const own = fieldsOf(Buffer.from(trace, "utf8").toString("latin1")).map(toHeaderField);
  const headers = new Map<string, string>();
  const seen = new Set<string>();
  for (const { name, value } of [...own, ...mail.fields.slice(0, MAX_SHOWN_HEADERS)]) {
    if (seen.has(name.toLowerCase())) continue;
    seen.add(name.toLowerCase());
    headers.set(name, value);
  }
  return Object.fromEntries(headers);
}

/** The attachments as they are listed; their bytes are read out of the raw message. */
export function inboundAttachments({ attachments }: ReadMail, at: number): NewAttachment[] {
  return attachments.map((attachment) => ({ ...attachment, id: newId("att", at), bytes: null }));
}
