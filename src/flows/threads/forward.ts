import { AppError, existing } from "../../core/errors.ts";
import { type Mailbox, mailboxText } from "../../core/addresses.ts";
import { firstChars } from "../../core/text.ts";
import { MAX_SUBJECT_CHARS, type SendAttachment, type SendItem } from "../../core/messages/send-item.ts";
import { largeReadBudget } from "../../store/contents/large-reads.ts";
import { listAttachments } from "../../store/messages/attachments.ts";
import { isContentRemoved } from "../../store/messages/content-release.ts";
import { getContent } from "../../store/messages/message-content.ts";
import { getMessage, type Message } from "../../store/messages/messages.ts";
import { getInbox, type Inbox } from "../../store/threads/inboxes.ts";
import { readWhole } from "../mime/read-whole.ts";
import { attachmentBytes, type Bytes, messageBytes } from "../read/bytes.ts";
import { answeredFrom, usedAddresses } from "../accept/answering-address.ts";
import type { ThreadEntry } from "../accept/threading.ts";
import type { Sending } from "../accept/sending.ts";

/** The fields that a client gives. */
export interface ForwardRequest extends Pick<SendItem, "to" | "text" | "html" | "undoSeconds"> {
  as: "inline" | "attachment";
}

/** A forwarded message before it has been checked, and the thread of the original; null: it has none. */
export interface ComposedForward {
  item: SendItem;
  place: Omit<ThreadEntry, "guard"> | null;
}

/** Prefixes of mail programs in several languages. */
const PREFIXES = /^(?:\s*(?:fwd?|wg|tr|rv|enc|vs|pd)\s?[:：])+/iu;
/** Largest file name, characters, and what a file without a usable name or type is called. */
const MAX_FILENAME_CHARS = 255;
const TYPE = /^[A-Za-z0-9!#$&^_.+-]+\/[A-Za-z0-9!#$&^_.+-]+$/;
const CONTENT_ID = /^[A-Za-z0-9@._+-]{1,255}$/;

/**
 * Makes the send that forwards a message: from its inbox, or for a sent one from its From.
 * @throws AppError 404 for no such message; 409 `invalid_state` if it came to no inbox or its content is gone; 422 if it is too
 *   large; 503 if too many reads wait
 */
export async function composeForward(
  deps: Sending,
  senderId: string,
  id: string,
  request: ForwardRequest,
): Promise<ComposedForward> {
  const message = existing("message", await getMessage(deps.db, senderId, id));
  const { to, undoSeconds } = request;
  const { inboxId, threadId } = message;
  const inbox = inboxId === null ? null : await getInbox(deps.db, senderId, inboxId);
  const item: SendItem = {
    from: await fromOf(deps, message, inbox),
    to,
    subject: firstChars(`Fwd: ${message.subject.replace(PREFIXES, "").trim()}`, MAX_SUBJECT_CHARS).trimEnd(),
    ...(await contentOf(deps, senderId, message, request)),
  };
  if (undoSeconds !== undefined) item.undoSeconds = undoSeconds;
  return { item, place: inbox === null || threadId === null ? null : { threadId, inbox } };
}

async function fromOf({ db }: Sending, message: Message, inbox: Inbox | null): Promise<Mailbox> {
  if (inbox !== null) {
    const email = answeredFrom(inbox.address, message, await usedAddresses(db, inbox.address, message));
    return inbox.displayName === "" ? { email } : { email, name: inbox.displayName };
  }
  if (message.direction === "outbound") return message.from;
  throw invalidState(
    "This message came to no inbox of the project, so there is no address to forward it from.",
  );
}

function invalidState(message: string): AppError {
  return new AppError("conflict", message, { code: "invalid_state" });
}

type Content = Pick<SendItem, "text" | "html" | "attachments">;

async function contentOf(
  deps: Sending,
  senderId: string,
  message: Message,
  { as, text, html }: ForwardRequest,
): Promise<Content> {
  const room = { left: deps.limits.maxMessageBytes };
  if (as === "inline") return inline(deps, senderId, message, { text, html }, room);
  const bytes = await messageBytes(deps, senderId, message.id);
  if (bytes === null) throw invalidState("The content of this message is gone.");
  const filename = `${firstChars(message.subject.replace(/[^\p{L}\p{N} ._-]+/gu, " ").trim(), 100) || "message"}.eml`;
  const file = { filename, contentType: "message/rfc822", content: await base64Of(bytes, room) };
  return { text: text ?? "", ...(html === undefined ? {} : { html }), attachments: [file] };
}

async function inline(
  deps: Sending,
  senderId: string,
  message: Message,
  given: Pick<ForwardRequest, "text" | "html">,
  room: { left: number },
): Promise<Content> {
  const budget = largeReadBudget(deps.memory.largeReads, senderId);
  const content = await getContent({ ...deps, readWhole }, senderId, message.id, budget);
  const files = await listAttachments(deps.db, senderId, message.id);
  if (content === null || (await isContentRemoved(deps.db, senderId, message.id)))
    throw invalidState("The content of this message is gone.");
  const attachments: SendAttachment[] = [];
  for (const { id, filename, contentType, contentId, disposition } of files) {
    const found = await attachmentBytes(deps, senderId, message.id, id);
    if (found === null) throw invalidState("A file of this message is gone.");
    attachments.push({
      filename: firstChars(filename, MAX_FILENAME_CHARS) || "attachment",
      contentType: TYPE.test(contentType) ? contentType : "application/octet-stream",
      content: await base64Of(found.bytes, room),
      ...(contentId !== null && CONTENT_ID.test(contentId) ? { contentId } : {}),
      disposition,
    });
  }
  return { ...quoted(message, content, given), attachments };
}

/** Returns the bodies: what the client writes, the header of the original, and the original. */
function quoted(
  message: Message,
  { text, html }: { text: string | null; html: string | null },
  given: Pick<ForwardRequest, "text" | "html">,
): Pick<Content, "text" | "html"> {
  const lines = ["---------- Forwarded message ----------", ...headerOf(message)];
  const plain = [given.text ?? "", lines.join("\n"), text ?? ""].filter((part) => part !== "").join("\n\n");
  if (html === null && given.html === undefined) return { text: plain };
  const before = given.html ?? paragraphs(given.text ?? "");
  const original = html ?? paragraphs(text ?? "");
  return {
    text: plain,
    html: `${before}<br><div>${lines.map((line) => Bun.escapeHTML(line)).join("<br>")}</div><br>${original}`,
  };
}

function paragraphs(text: string): string {
  return text === "" ? "" : `<div>${Bun.escapeHTML(text).replaceAll("\n", "<br>")}</div>`;
}

function headerOf({ from, to, cc, subject, createdAt }: Message): string[] {
  return [
    `From: ${mailboxText(from)}`,
    `Date: ${new Date(createdAt).toUTCString()}`,
    `Subject: ${subject}`,
    `To: ${to.map(mailboxText).join(", ")}`,
    ...(cc.length === 0 ? [] : [`Cc: ${cc.map(mailboxText).join(", ")}`]),
  ];
}

/** Reads bytes as base64. Throws 422 if they exceed the octets that are left. */
async function base64Of({ size, pieces }: Bytes, room: { left: number }): Promise<string> {
  room.left -= size;
  if (room.left < 0)
    throw new AppError("validation_error", "This message is too large to be forwarded.", {
      code: "message_too_large",
    });
  const read: Uint8Array[] = [];
  for await (const piece of pieces) read.push(piece);
  return Buffer.concat(read).toString("base64");
}
