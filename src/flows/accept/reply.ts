import { addressKey, type Mailbox, normalizeAddress, normalizeDomain } from "../../core/addresses.ts";
import { AppError, invalid, notFound } from "../../core/errors.ts";
import { firstChars } from "../../core/text.ts";
import { idFloor } from "../../core/ids.ts";
import { entriesOf, MAX_NAME_CHARS } from "../../core/messages/address-input.ts";
import type { InvitationAnswer } from "../../core/messages/invitation.ts";
import type { ReadItem, SendItem } from "../../core/messages/send-item.ts";
import { MAX_HEADER_VALUE_BYTES } from "../../core/messages/send-rules.ts";
import { HOUR_MS, MINUTE_MS } from "../../core/time/units.ts";
import { messageIdsIn } from "../../mail/reading/header-block.ts";
import { getInbox } from "../../store/threads/inboxes.ts";
import { getContentStart } from "../../store/messages/message-content.ts";
import type { Statement } from "../../store/engine/client.ts";
import { isBroken } from "../../store/engine/guards.ts";
import { getMessage, type Message } from "../../store/messages/messages.ts";
import type { Project } from "../../store/projects/projects.ts";
import { countSent, fewSentGuard, type Span } from "../../store/threads/thread-volume.ts";
import { getThread, lastMessageId } from "../../store/threads/threads.ts";
import { largeReadBudget } from "../../store/contents/large-reads.ts";
import { answeredFrom, usedAddresses } from "./answering-address.ts";
import { type IsOwnAddress, ownAddresses, type ThreadEntry, type ThreadInbox } from "./threading.ts";
import { invitationReply } from "../read/invitation-reply.ts";
import { commitSend, type PreparedSend } from "./accept.ts";
import { replySubject } from "./reply-subject.ts";
import { readWhole } from "../mime/read-whole.ts";
import type { Sending } from "./sending.ts";

/** The fields of a reply that a client gives. The rest follows from the message replied to. */
export interface ReplyRequest
  extends Pick<SendItem, "text" | "html" | "templateId" | "data" | "calendar" | "undoSeconds">,
    Pick<SendItem, "cc" | "bcc" | "attachments" | "headers" | "tags"> {
  /** Addresses in place of those that the message asks for. Empty or left out: those. */
  to?: SendItem["to"];
  replyAll?: boolean;
  /** The message replied to. If left out, the last inbound one of the thread. */
  messageId?: string;
  /** Answers the invitation of that message. */
  invitation?: InvitationAnswer;
}

/** Maximum number of replies per thread and minute, so that two programs do not answer each other forever. */
const MAX_REPLIES_PER_MINUTE = 20;
/**
 * Maximum number of automatic replies (RFC 3834 §5) per thread and hour, because programs may also answer each
 * other slowly.
 */
const MAX_AUTOMATIC_REPLIES_PER_HOUR = 10;
/** Message-IDs of a References field: the first and the newest (RFC 5322 §3.6.4). */
export const MAX_REFERENCES = 20;
/** Fields that name the message replied to. A client's own would contradict it. */
const REFERENCE_FIELDS = /^(?:in-reply-to|references)$/i;

/** A reply before it has been checked. */
export interface ComposedReply {
  item: SendItem;
  /** Number of its headers that the client did not give. */
  ownHeaders: number;
  inbox: ThreadInbox;
}

/**
 * Makes the send of a reply: from the inbox, to the addresses that the message asks for, with its subject and
 * references. The client's fields keep their places, duplicates included, so that an error names the place.
 * @throws AppError 404 for no such thread or message, 409 if the message names no address to answer, 422 without
 *   content, 429 over the replies of a minute
 */
export async function composeReply(
  deps: Sending,
  senderId: string,
  threadId: string,
  request: ReplyRequest,
  now: number,
): Promise<ComposedReply> {
  const thread = await getThread(deps.db, senderId, threadId);
  const inbox = thread === null ? null : await getInbox(deps.db, senderId, thread.inboxId);
  if (thread === null || inbox === null) throw notFound("thread");
  const parent = await parentOf(deps, senderId, threadId, request.messageId);
  await refuseLoops(deps, senderId, threadId, limitFor(request.headers, now));
  const { html, templateId, data, bcc, attachments, tags, undoSeconds } = request;
  if (request.invitation !== undefined && request.calendar !== undefined)
    throw invalid("calendar", "must be absent, because `invitation` makes the calendar object.");
  const used = await usedAddresses(deps.db, inbox.address, parent);
  const email = answeredFrom(inbox.address, parent, used);
  const isOwn = ownAddresses(inbox.address, used);
  const answer =
    request.invitation === undefined
      ? null
      : await invitationReply(deps, parent, { email, isOwn }, request.invitation);
  const calendar = answer?.calendar ?? request.calendar;
  const text = request.text ?? (html === undefined ? answer?.text : undefined);
  if (text === undefined && html === undefined && templateId === undefined)
    throw invalid("html", "One of html, text and templateId is required.", "missing_field");
  const given = Object.entries(request.headers ?? {}).filter(([name]) => !REFERENCE_FIELDS.test(name));
  const references = await referenceHeaders(deps, parent);
  const item: SendItem = {
    from: inbox.displayName === "" ? { email } : { email, name: inbox.displayName },
    ...(answer === null
      ? addresseesOfReply(parent, isOwn, request)
      : { to: [{ email: answer.to }], cc: entriesOf(request.cc) }),
    subject: replySubject(parent.subject),
    headers: { ...Object.fromEntries(given), ...references },
  };
  if (text !== undefined) item.text = text;
  if (html !== undefined) item.html = html;
  if (templateId !== undefined) item.templateId = templateId;
  if (data !== undefined) item.data = data;
  if (bcc !== undefined) item.bcc = bcc;
  if (attachments !== undefined) item.attachments = attachments;
  if (calendar !== undefined) item.calendar = calendar;
  if (tags !== undefined) item.tags = tags;
  if (undoSeconds !== undefined) item.undoSeconds = undoSeconds;
  return { item, ownHeaders: Object.keys(references).length, inbox };
}

interface ReplyLimit {
  most: number;
  span: Span;
  /** Words for the limit, such as `20 replies a minute`. */
  words: string;
  retryAfterSeconds: number;
}

/** Returns the limit for a reply: the usual one, or that of automatic replies. */
function limitFor(headers: Readonly<Record<string, string>> | undefined, now: number): ReplyLimit {
  const automatic = Object.entries(headers ?? {}).find(
    ([name]) => name.toLowerCase() === "auto-submitted",
  )?.[1];
  if (automatic === undefined || automatic.trim().toLowerCase() === "no")
    return {
      most: MAX_REPLIES_PER_MINUTE,
      span: last(MINUTE_MS, now),
      retryAfterSeconds: 60,
      words: `${MAX_REPLIES_PER_MINUTE} replies a minute`,
    };
  return {
    most: MAX_AUTOMATIC_REPLIES_PER_HOUR,
    span: last(HOUR_MS, now),
    retryAfterSeconds: 3600,
    words: `${MAX_AUTOMATIC_REPLIES_PER_HOUR} automatic replies an hour`,
  };
}

async function refuseLoops(
  deps: Sending,
  senderId: string,
  threadId: string,
  { most, span, words, retryAfterSeconds }: ReplyLimit,
): Promise<void> {
  if ((await countSent(deps.db, senderId, threadId, span)) < most) return;
  throw new AppError("rate_limited", `A thread takes ${words}.`, { retryAfterSeconds });
}

/**
 * Returns a reply's thread with the guard that it may take one more. Another process may have answered it since this
 * one read it.
 */
export function replyEntry(
  senderId: string,
  { threadId, inbox }: Omit<ThreadEntry, "guard">,
  now: number,
): ThreadEntry {
  return {
    threadId,
    inbox,
    guard: fewSentGuard(senderId, threadId, last(MINUTE_MS, now), MAX_REPLIES_PER_MINUTE),
  };
}

/**
 * Returns the last `ms`, and the next minute: another process's clock may be ahead by that. Later messages are from
 * before the clock was set back.
 */
function last(ms: number, now: number): Span {
  return { floor: idFloor("msg", now - ms), ceiling: idFloor("msg", now + MINUTE_MS) };
}

/**
 * Commits a prepared reply with its idempotent answer.
 * @throws AppError 429 over the replies of a minute
 */
export async function commitReply(
  deps: Sending,
  project: Project,
  reply: PreparedSend,
  record: readonly Statement[],
): Promise<void> {
  await commitSend(deps, project, reply, record).catch((error: unknown) => {
    throw isBroken(error, "message_conflict") ? tooManyReplies() : error;
  });
}

function tooManyReplies(): AppError {
  return new AppError("rate_limited", `A thread takes ${MAX_REPLIES_PER_MINUTE} replies a minute.`, {
    retryAfterSeconds: 60,
  });
}

async function parentOf(
  deps: Sending,
  senderId: string,
  threadId: string,
  messageId: string | undefined,
): Promise<Message> {
  const id = messageId ?? (await lastMessageId(deps.db, senderId, threadId));
  const message = id === null ? null : await getMessage(deps.db, senderId, id);
  if (message?.threadId === threadId) return message;
  throw notFound(messageId === undefined ? "thread" : "message");
}

/**
 * Returns the addresses of a reply.
 * @throws AppError 409 if there is none
 */
function addresseesOfReply(
  parent: Message,
  isOwn: IsOwnAddress,
  request: ReplyRequest,
): Pick<SendItem, "to" | "cc"> {
  const given = entriesOf(request.to);
  const to = given.length > 0 ? given : answerTo(parent, isOwn);
  if (to.length === 0)
    throw new AppError("conflict", "The message replied to has no address to answer.", {
      code: "invalid_state",
    });
  const others = request.replyAll ? reachable([...parent.to, ...parent.cc], isOwn) : [];
  return { to, cc: [...entriesOf(request.cc), ...others] };
}

/**
 * Removes duplicates from `to` and `cc` of a checked reply. The addresses of the message replied to come first.
 * @param own how many of `cc`, the first, the client gave
 */
export function withoutDoubles(item: ReadItem, own: number): ReadItem {
  const taken = new Set(item.to.map(({ email }) => addressKey(email)));
  const copies = item.cc ?? [];
  const cc = [...copies.slice(own), ...copies.slice(0, own)].filter(({ email }) => {
    const key = addressKey(email);
    return !taken.has(key) && taken.add(key);
  });
  return { ...item, cc };
}

/**
 * Returns the addresses to answer: Reply-To, else From (RFC 5322 §3.6.3). For a message that we sent, its
 * recipients.
 * @throws AppError 409 if Reply-To is an address that we do not send to, because From may not be read
 */
function answerTo(parent: Message, isOwn: IsOwnAddress): Mailbox[] {
  if (parent.direction === "outbound" || isOwn(parent.from.email)) return reachable(parent.to, isOwn);
  const asked = reachable(parent.replyTo, isOwn);
  if (asked.length > 0) return asked;
  const unsendable = parent.replyTo.find(({ email }) => hasQuotedLocalPart(email));
  if (unsendable === undefined) return reachable([parent.from], isOwn);
  throw new AppError("conflict", "The message asks for answers at an address that cannot be sent to.", {
    code: "invalid_state",
  });
}

/** Returns whether the local part needs quotes (RFC 5322 §3.4.1). The reading of messages leaves such addresses out. */
function hasQuotedLocalPart(email: string): boolean {
  const at = email.lastIndexOf("@");
  return at > 0 && normalizeAddress(email) === null && normalizeDomain(email.slice(at + 1)) !== null;
}

/** Returns those mailboxes that can be sent to, once each, without the inbox itself. */
function reachable(mailboxes: readonly Mailbox[], isOwn: IsOwnAddress): Mailbox[] {
  const found = new Map<string, Mailbox>();
  for (const { email, name } of mailboxes) {
    const key = addressKey(email);
    if (normalizeAddress(email) === null || isOwn(email) || found.has(key)) continue;
    found.set(key, name === undefined ? { email } : { email, name: firstChars(name, MAX_NAME_CHARS) });
  }
  return [...found.values()];
}

/** Returns In-Reply-To and References (RFC 5322 §3.6.4). If the parent has no Message-ID, there are none. */
async function referenceHeaders(deps: Sending, parent: Message): Promise<Record<string, string>> {
  if (parent.rfcMessageId === null) return {};
  // Reads only the header fields, which are stored after the bodies.
  const budget = largeReadBudget(deps.memory.largeReads, parent.senderId);
  const content = await getContentStart({ ...deps, readWhole }, parent.senderId, parent.id, 0, budget);
  const field = Object.entries(content?.headers ?? {}).find(([name]) => name.toLowerCase() === "references");
  const named = messageIdsIn(field?.[1] ?? "");
  const before = named.length > 0 || parent.inReplyTo === null ? named : [parent.inReplyTo];
  const references = [...new Set(before)].filter((id) => id !== parent.rfcMessageId);
  return {
    "In-Reply-To": parent.rfcMessageId,
    References: bounded([...references, parent.rfcMessageId]).join(" "),
  };
}

/** Returns the first reference and the newest ones, as mail programs do, so that the field does not grow forever. */
function bounded(references: readonly string[]): string[] {
  const [first, ...rest] = references;
  if (first === undefined) return [];
  const kept = rest.slice(-(MAX_REFERENCES - 1));
  const room = MAX_HEADER_VALUE_BYTES - Buffer.byteLength(first);
  while (kept.length > 1 && Buffer.byteLength(kept.join(" ")) >= room) kept.shift();
  return [first, ...kept];
}
