import { addressKey, type Mailbox } from "../../core/addresses.ts";
import { AppError, invalid, notFound } from "../../core/errors.ts";
import { idFloor } from "../../core/ids.ts";
import { MAX_NAME_CHARS, type SendItem } from "../../core/send-item.ts";
import { MAX_HEADER_VALUE_BYTES, MAX_SUBJECT_CHARS } from "../../core/send-rules.ts";
import type { Inbox } from "../../store/inboxes.ts";
import { getInbox } from "../../store/inboxes.ts";
import { getContent, getMessage, type Message } from "../../store/messages.ts";
import { countSentSince, getThread, lastMessageId } from "../../store/threads.ts";
import type { AcceptDeps } from "./accept.ts";

/** What a client says in a reply; the rest comes of the message replied to. */
export interface ReplyRequest
  extends Pick<SendItem, "text" | "html" | "cc" | "bcc" | "attachments" | "headers" | "tags"> {
  replyAll?: boolean;
  /** The message replied to; the last inbound one of the thread where none is named. */
  messageId?: string;
}

/** Replies a thread takes in a minute: two programs that answer each other must not go on for ever. */
export const MAX_REPLIES_PER_MINUTE = 20;
const MINUTE_MS = 60_000;
/** Message-IDs of a References field: the first and the newest (RFC 5322 §3.6.4). */
const MAX_REFERENCES = 20;

/**
 * The send that a reply is: from the inbox, to whom the message asks, under its subject and references.
 * @throws AppError 404 for no such thread or message, 429 over the replies of a minute
 */
export async function composeReply(
  deps: AcceptDeps,
  senderId: string,
  threadId: string,
  request: ReplyRequest,
  now: number,
): Promise<SendItem> {
  const thread = await getThread(deps.db, senderId, threadId);
  const inbox = thread === null ? null : await getInbox(deps.db, senderId, thread.inboxId);
  if (thread === null || inbox === null) throw notFound("thread");
  await refuseLoops(deps, senderId, threadId, now);
  const parent = await parentOf(deps, senderId, threadId, request.messageId);
  const { text, html, bcc, attachments, tags } = request;
  const to = answerTo(parent, inbox);
  const item: SendItem = {
    from:
      inbox.displayName === "" ? { email: inbox.address } : { email: inbox.address, name: inbox.displayName },
    to,
    cc: [...(request.replyAll ? othersOf(parent, inbox, to) : []), ...(request.cc ?? [])],
    subject: (/^re:/i.test(parent.subject) ? parent.subject : `Re: ${parent.subject}`).slice(
      0,
      MAX_SUBJECT_CHARS,
    ),
    headers: { ...request.headers, ...(await referenceHeaders(deps, parent)) },
  };
  if (text !== undefined) item.text = text;
  if (html !== undefined) item.html = html;
  if (bcc !== undefined) item.bcc = bcc;
  if (attachments !== undefined) item.attachments = attachments;
  if (tags !== undefined) item.tags = tags;
  return item;
}

async function refuseLoops(deps: AcceptDeps, senderId: string, threadId: string, now: number): Promise<void> {
  const sent = await countSentSince(deps.db, senderId, threadId, idFloor("msg", now - MINUTE_MS));
  if (sent < MAX_REPLIES_PER_MINUTE) return;
  throw new AppError("rate_limited", `A thread takes ${MAX_REPLIES_PER_MINUTE} replies a minute.`, {
    retryAfter: 60,
  });
}

async function parentOf(
  deps: AcceptDeps,
  senderId: string,
  threadId: string,
  messageId: string | undefined,
): Promise<Message> {
  const id = messageId ?? (await lastMessageId(deps.db, senderId, threadId));
  const message = id === null ? null : await getMessage(deps.db, senderId, id);
  if (message?.threadId === threadId) return message;
  throw messageId === undefined
    ? notFound("thread")
    : invalid("messageId", "The thread has no such message.");
}

/** Reply-To, else From (RFC 5322 §3.6.3); for a message of our own, those it went to. */
function answerTo(parent: Message, inbox: Inbox): Mailbox[] {
  if (parent.direction === "outbound" || addressKey(parent.from.email) === inbox.address) return parent.to;
  return (parent.replyTo.length > 0 ? parent.replyTo : [parent.from]).map(clipped);
}

/** Everybody else of the message, but the inbox. */
function othersOf(parent: Message, inbox: Inbox, to: readonly Mailbox[]): Mailbox[] {
  const known = new Set([inbox.address, ...to.map((mailbox) => addressKey(mailbox.email))]);
  const others = [...parent.to, ...parent.cc].filter((mailbox) => {
    const key = addressKey(mailbox.email);
    return !known.has(key) && known.add(key);
  });
  return others.map(clipped);
}

async function referenceHeaders(deps: AcceptDeps, parent: Message): Promise<Record<string, string>> {
  if (parent.rfcMessageId === null) return {};
  const content = await getContent(deps.db, parent.senderId, parent.id);
  const field = Object.entries(content?.headers ?? {}).find(([name]) => name.toLowerCase() === "references");
  const before = field?.[1].match(/<[^<>\s]+>/g) ?? (parent.inReplyTo === null ? [] : [parent.inReplyTo]);
  const references = [...before, parent.rfcMessageId];
  // The oldest but the first go, as in every mail program: a field must not grow for ever.
  while (references.length > MAX_REFERENCES || (references.length > 2 && tooLong(references)))
    references.splice(1, 1);
  return { "In-Reply-To": parent.rfcMessageId, References: references.join(" ") };
}

function tooLong(references: readonly string[]): boolean {
  return Buffer.byteLength(references.join(" ")) > MAX_HEADER_VALUE_BYTES;
}

/** The mailbox with its display name cut to what a send takes. */
function clipped({ email, name }: Mailbox): Mailbox {
  return name === undefined ? { email } : { email, name: name.slice(0, MAX_NAME_CHARS) };
}
