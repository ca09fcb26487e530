import { addressKey, type Mailbox, normalizeAddress, normalizeDomain } from "../../core/addresses.ts";
import { AppError, invalid, notFound } from "../../core/errors.ts";
import { firstChars } from "../../core/first-chars.ts";
import { idFloor } from "../../core/ids.ts";
import { MAX_NAME_CHARS, type SendItem } from "../../core/send-item.ts";
import { MAX_HEADER_VALUE_BYTES } from "../../core/send-rules.ts";
import { MINUTE_MS } from "../../core/time-units.ts";
import { messageIdsIn } from "../../mail/reading/header-block.ts";
import { getInbox, type Inbox } from "../../store/inboxes.ts";
import { getContent } from "../../store/contents/message-content.ts";
import type { Statement } from "../../store/engine/client.ts";
import { getMessage, isMessageBarred, type Message } from "../../store/messages.ts";
import type { Sender } from "../../store/senders.ts";
import { countSent, fewSentGuard, getThread, lastMessageId, type Span } from "../../store/threads.ts";
import { reachesInbox, type ThreadEntry } from "../threading.ts";
import { type AcceptDeps, commitSend, type PreparedSend } from "./accept.ts";
import { replySubject } from "./reply-subject.ts";

/** What a client says in a reply; the rest comes of the message replied to. */
export interface ReplyRequest
  extends Pick<SendItem, "text" | "html" | "cc" | "bcc" | "attachments" | "headers" | "tags"> {
  replyAll?: boolean;
  /** The message replied to; the last inbound one of the thread where none is named. */
  messageId?: string;
}

/** Replies a thread takes in a minute: two programs that answer each other must not go on for ever. */
const MAX_REPLIES_PER_MINUTE = 20;
/** Message-IDs of a References field: the first and the newest (RFC 5322 §3.6.4). */
export const MAX_REFERENCES = 20;
/** Fields that say what is answered; a client's own would contradict the message it names. */
const REFERENCE_FIELDS = /^(?:in-reply-to|references)$/i;

/** A reply before it has been checked. */
export interface ComposedReply {
  item: SendItem;
  /** How many of its headers are ours. */
  ownHeaders: number;
}

/**
 * The send that a reply is: from the inbox, to whom the message asks, under its subject and references. What the client
 * gives stands in its own place, doubles included, so that what is wrong with it is told by its place.
 * @throws AppError 404 for no such thread or message, 409 where the message names nobody to answer, 422 without content,
 *   429 over the replies of a minute
 */
export async function composeReply(
  deps: AcceptDeps,
  senderId: string,
  threadId: string,
  request: ReplyRequest,
  now: number,
): Promise<ComposedReply> {
  const thread = await getThread(deps.db, senderId, threadId);
  const inbox = thread === null ? null : await getInbox(deps.db, senderId, thread.inboxId);
  if (thread === null || inbox === null) throw notFound("thread");
  const parent = await parentOf(deps, senderId, threadId, request.messageId);
  await refuseLoops(deps, senderId, threadId, now);
  const { text, html, bcc, attachments, tags } = request;
  if (text === undefined && html === undefined)
    throw invalid("html", "One of html and text is required.", "missing_field");
  const given = Object.entries(request.headers ?? {}).filter(([name]) => !REFERENCE_FIELDS.test(name));
  const references = await referenceHeaders(deps, parent);
  const item: SendItem = {
    from:
      inbox.displayName === "" ? { email: inbox.address } : { email: inbox.address, name: inbox.displayName },
    ...addresseesOfReply(parent, inbox, request),
    subject: replySubject(parent.subject),
    headers: { ...Object.fromEntries(given), ...references },
  };
  if (text !== undefined) item.text = text;
  if (html !== undefined) item.html = html;
  if (bcc !== undefined) item.bcc = bcc;
  if (attachments !== undefined) item.attachments = attachments;
  if (tags !== undefined) item.tags = tags;
  return { item, ownHeaders: Object.keys(references).length };
}

async function refuseLoops(deps: AcceptDeps, senderId: string, threadId: string, now: number): Promise<void> {
  const sent = await countSent(deps.db, senderId, threadId, lastMinute(now));
  if (sent >= MAX_REPLIES_PER_MINUTE) throw tooManyReplies();
}

/** A reply's thread, for as long as it takes one more: other processes may have answered it since this one looked. */
export function replyEntry(senderId: string, threadId: string, now: number): ThreadEntry {
  return { threadId, guard: fewSentGuard(senderId, threadId, lastMinute(now), MAX_REPLIES_PER_MINUTE) };
}

/** The minute up to now. Another clock may be ahead by as much; what lies further ahead is of one that was put back. */
function lastMinute(now: number): Span {
  return { floor: idFloor("msg", now - MINUTE_MS), ceiling: idFloor("msg", now + MINUTE_MS) };
}

/** Commits a prepared reply with its idempotent answer. Throws 429 over the replies of a minute. */
export async function commitReply(
  deps: AcceptDeps,
  project: Sender,
  reply: PreparedSend,
  record: readonly Statement[],
): Promise<void> {
  await commitSend(deps, project, reply, record).catch((error: unknown) => {
    throw isMessageBarred(error) ? tooManyReplies() : error;
  });
}

function tooManyReplies(): AppError {
  return new AppError("rate_limited", `A thread takes ${MAX_REPLIES_PER_MINUTE} replies a minute.`, {
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
  throw notFound(messageId === undefined ? "thread" : "message");
}

/** Whom a reply goes to. Throws 409 where that is nobody. */
function addresseesOfReply(
  parent: Message,
  inbox: Inbox,
  request: ReplyRequest,
): Pick<SendItem, "to"> & { cc: Mailbox[] } {
  const to = answerTo(parent, inbox);
  if (to.length === 0)
    throw new AppError("conflict", "The message replied to names nobody to answer.", {
      code: "invalid_state",
    });
  const others = request.replyAll ? reachable([...parent.to, ...parent.cc], inbox) : [];
  return { to, cc: [...(request.cc ?? []), ...others] };
}

/**
 * A reply that has been checked, each of its `to` and `cc` once: those of the message replied to, then the client's own.
 * @param own how many of `cc`, the first, are the client's
 */
export function withoutDoubles(item: SendItem, own: number): SendItem {
  const taken = new Set(item.to.map(({ email }) => addressKey(email)));
  const copies = item.cc ?? [];
  const cc = [...copies.slice(own), ...copies.slice(0, own)].filter(({ email }) => {
    const key = addressKey(email);
    return !taken.has(key) && taken.add(key);
  });
  return { ...item, cc };
}

/**
 * Reply-To, else From (RFC 5322 §3.6.3); for a message of our own, those it went to. Throws 409 where Reply-To is an address
 * that we do not send to: From may be one that nobody reads.
 */
function answerTo(parent: Message, inbox: Inbox): Mailbox[] {
  if (parent.direction === "outbound" || reachesInbox(inbox.address, parent.from.email))
    return reachable(parent.to, inbox);
  const asked = reachable(parent.replyTo, inbox);
  if (asked.length > 0) return asked;
  const unsendable = parent.replyTo.find(({ email }) => hasQuotedLocalPart(email));
  if (unsendable === undefined) return reachable([parent.from], inbox);
  throw new AppError("conflict", "The message asks for answers at an address that cannot be sent to.", {
    code: "invalid_state",
  });
}

/** Whether the local part is one that only quotes allow (RFC 5322 §3.4.1); readers leave them out. */
function hasQuotedLocalPart(email: string): boolean {
  const at = email.lastIndexOf("@");
  return at > 0 && normalizeAddress(email) === null && normalizeDomain(email.slice(at + 1)) !== null;
}

/** Those of a mail's mailboxes that can be sent to, once each, without the inbox itself. */
function reachable(mailboxes: readonly Mailbox[], inbox: Inbox): Mailbox[] {
  const found = new Map<string, Mailbox>();
  for (const { email, name } of mailboxes) {
    const key = addressKey(email);
    if (normalizeAddress(email) === null || reachesInbox(inbox.address, email) || found.has(key)) continue;
    found.set(key, name === undefined ? { email } : { email, name: firstChars(name, MAX_NAME_CHARS) });
  }
  return [...found.values()];
}

/** In-Reply-To and References as RFC 5322 §3.6.4 makes them of the parent's; none for a parent without Message-ID. */
async function referenceHeaders(deps: AcceptDeps, parent: Message): Promise<Record<string, string>> {
  if (parent.rfcMessageId === null) return {};
  const content = await getContent(deps, parent.senderId, parent.id);
  const field = Object.entries(content?.headers ?? {}).find(([name]) => name.toLowerCase() === "references");
  const named = messageIdsIn(field?.[1] ?? "");
  const before = named.length > 0 || parent.inReplyTo === null ? named : [parent.inReplyTo];
  const references = [...new Set(before)].filter((id) => id !== parent.rfcMessageId);
  return {
    "In-Reply-To": parent.rfcMessageId,
    References: bounded([...references, parent.rfcMessageId]).join(" "),
  };
}

/** The first reference and the newest, as in every mail program: a field must not grow for ever. */
function bounded(references: readonly string[]): string[] {
  const [first, ...rest] = references;
  if (first === undefined) return [];
  const kept = rest.slice(-(MAX_REFERENCES - 1));
  const room = MAX_HEADER_VALUE_BYTES - Buffer.byteLength(first);
  while (kept.length > 1 && Buffer.byteLength(kept.join(" ")) >= room) kept.shift();
  return [first, ...kept];
}
