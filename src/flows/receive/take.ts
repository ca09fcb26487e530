import type { Clock } from "../../core/clock.ts";
import { newId } from "../../core/ids.ts";
import { type ParsedMail, parseMail } from "../../mail/parse.ts";
import { replyText } from "../../mail/reply-text.ts";
import type { Job, Queue } from "../../queue/port.ts";
import type { Db, Statement } from "../../store/client.ts";
import { countReceived } from "../../store/inboxes.ts";
import type { NewAttachment } from "../../store/attachments.ts";
import { insertMessage, type Message, type MessageContent } from "../../store/messages.ts";
import type { InboxRef } from "../../store/sending.ts";
import { findThread, stepThread } from "../../store/threads.ts";
import { hint } from "../hint.ts";
import { announce } from "../notify/announce.ts";

export interface TakeDeps {
  db: Db;
  clock: Clock;
  queue: Queue;
}

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

/** A mail that has arrived in one inbox. */
export interface Arrival {
  messageId: string;
  threadId: string;
}

/**
 * Takes a mail into custody: one message in each inbox, its thread, its event and its webhook deliveries, all in one
 * write. When this resolves the bytes are on disk.
 * @param raw the bytes as received, with the trace fields that we put in front
 */
export async function takeMail(
  deps: TakeDeps,
  targets: readonly InboundTargetInbox[],
  envelope: InboundEnvelope,
  raw: Uint8Array,
  testMode = false,
): Promise<Arrival[]> {
  const mail = await parseMail(raw);
  const arrivals: Arrival[] = [];
  const statements: Statement[] = [];
  const pushes: Job[] = [];
  for (const { inbox, addresses } of targets) {
    // Whom else the transaction named is no business of this project.
    const own = { ...envelope, rcptTo: [...addresses] };
    // Bodies and bytes are kept once, at the first message: a mail to a hundred inboxes is not a hundred mails on disk.
    const contentOf = arrivals[0]?.messageId ?? null;
    const stored = await arrive(deps, inbox, own, { mail, raw, contentOf, testMode });
    arrivals.push(stored.arrival);
    statements.push(...stored.statements);
    pushes.push(...stored.pushes);
  }
  await deps.db.write(statements);
  hint(deps.queue, "push", pushes);
  return arrivals;
}

/** A mail as each of its inboxes stores it. */
interface ArrivingMail {
  mail: ParsedMail;
  raw: Uint8Array;
  /** The message of the same mail that keeps its content; null for that one itself. */
  contentOf: string | null;
  testMode: boolean;
}

interface StoredArrival {
  arrival: Arrival;
  statements: Statement[];
  pushes: Job[];
}

async function arrive(
  deps: TakeDeps,
  inbox: InboxRef,
  envelope: InboundEnvelope,
  { mail, raw, contentOf, testMode }: ArrivingMail,
): Promise<StoredArrival> {
  const now = deps.clock.now();
  const references = mail.inReplyTo === null ? mail.references : [...mail.references, mail.inReplyTo];
  const threadId = (await findThread(deps.db, inbox.senderId, inbox.id, references)) ?? newId("thr", now);
  const message = inboundMessage(inbox, envelope, mail, threadId, raw.length, testMode, now);
  const announced = await announce(deps, inbox.senderId, [
    { messageId: message.id, type: "inbound_received", email: null },
  ]);
  return {
    arrival: { messageId: message.id, threadId },
    statements: [
      ...insertMessage(message, toContent(mail, envelope), attachmentsOf(mail, now), raw, contentOf),
      stepThread({
        threadId,
        inboxId: inbox.id,
        senderId: inbox.senderId,
        messageId: message.id,
        subject: message.subject,
        preview: mail.preview,
        participants: participantsOf(message, inbox),
        hasAttachments: mail.attachments.length > 0,
        inbound: true,
        at: now,
      }),
      ...(testMode ? [] : [countReceived(inbox.senderId, inbox.id)]),
      ...announced.statements,
    ],
    pushes: announced.pushes,
  };
}

function inboundMessage(
  inbox: InboxRef,
  envelope: InboundEnvelope,
  mail: ParsedMail,
  threadId: string,
  size: number,
  testMode: boolean,
  now: number,
): Message {
  return {
    id: newId("msg", now),
    senderId: inbox.senderId,
    direction: "inbound",
    status: "delivered",
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
    size,
    testMode,
    trackOpens: false,
    trackClicks: false,
    unsubscribeLink: false,
    createdAt: now,
  };
}

function toContent(mail: ParsedMail, envelope: InboundEnvelope): MessageContent {
  return {
    html: mail.html,
    text: mail.text,
    headers: headersOf(mail),
    data: null,
    envelope: { ...envelope },
    auth: null,
    replyText: mail.text === null ? null : replyText(mail.text),
    rendered: false,
  };
}

/** Header fields shown in a record at most; the raw message has them all. */
const MAX_SHOWN_HEADERS = 200;

/** The header fields by name; of a name that comes twice, the topmost. */
function headersOf(mail: ParsedMail): Record<string, string> {
  const headers = new Map<string, string>();
  for (const { name, value } of mail.fields.slice(0, MAX_SHOWN_HEADERS)) {
    if (!headers.has(name)) headers.set(name, value);
  }
  return Object.fromEntries(headers);
}

function attachmentsOf(mail: ParsedMail, now: number): NewAttachment[] {
  return mail.attachments.map(({ filename, contentType, disposition, contentId, size }) => ({
    id: newId("att", now),
    filename,
    contentType,
    disposition,
    contentId,
    size,
    bytes: null,
  }));
}

/** Everybody in the conversation but the inbox itself. */
function participantsOf(message: Message, inbox: InboxRef): string[] {
  return [message.from, ...message.to, ...message.cc]
    .map((mailbox) => mailbox.email)
    .filter((email) => email !== "" && email.toLowerCase() !== inbox.address);
}
