import { AppError } from "../../core/errors.ts";
import type { ReadItem } from "../../core/messages/send-item.ts";
import type { NewAttachment } from "../../store/messages/attachments.ts";
import { CHUNK_OCTETS, type NewContent } from "../../store/contents/content-bytes.ts";
import type { MessageBody } from "../../store/contents/message-body.ts";
import { isBroken } from "../../store/engine/guards.ts";
import { type PrepareDeps, prepareBody, prepareContent } from "../../store/messages/prepare-content.ts";
import { base64Pieces, shownAttachment } from "./attachment.ts";

/** The content of a send: that of its item, or a message that was submitted whole. */
export interface SendContent {
  /** Returns whether it may have to be written before the commit. False is certain. */
  mayWriteAhead(): boolean;
  /** Returns its bodies, or their beginnings, for a preview. */
  texts(): Promise<Pick<MessageBody, "html" | "text">>;
  /** Stores it for the commit. @param owner see `holderOf`. @param now milliseconds */
  keep(deps: PrepareDeps, owner: string, now: number): Promise<KeptContent>;
}

/** A content that is ready for the commit of its message. */
export interface KeptContent {
  body: NewContent | null;
  attachments: NewAttachment[];
  /** Octets that the record shows. */
  size: number;
  /** Set if the message was submitted whole. */
  whole?: SubmittedWhole;
}

/** A message that was submitted whole. */
export interface SubmittedWhole {
  raw: NewContent;
  /** How it came. */
  envelope: Record<string, unknown>;
  /** Its own Message-ID with angle brackets. If left out, it has none, and gets ours. */
  rfcMessageId?: string | null;
}

/** Maximum octets of UTF-8 per unit of UTF-16, and octets that a stored body adds to its strings. */
const MAX_OCTETS_PER_UNIT = 3;
const MAX_BODY_END_OCTETS = 64;

/** Returns the content of a send item. */
export function contentOfItem(item: ReadItem): SendContent {
  return {
    mayWriteAhead: () => mayWriteAhead(item),
    texts: async () => ({ html: item.html ?? null, text: item.text ?? null }),
    async keep(deps, senderId, now) {
      const body = await keepBodyOf(deps, senderId, item);
      const attachments = await keepAttachments(deps, senderId, item, now);
      return { body, attachments, size: contentSize(item, attachments) };
    },
  };
}

/** Returns whether content of a send item may have to be written before its commit. False is certain. */
export function mayWriteAhead({ html, text, attachments = [] }: ReadItem): boolean {
  const units = (html?.length ?? 0) + (text?.length ?? 0);
  return (
    units * MAX_OCTETS_PER_UNIT + MAX_BODY_END_OCTETS > CHUNK_OCTETS ||
    attachments.some(({ content }) => content.length > CHUNK_OCTETS)
  );
}

/** Stores the bodies of a send for its commit. Returns null if it has none. */
async function keepBodyOf(
  deps: PrepareDeps,
  senderId: string,
  { html, text }: ReadItem,
): Promise<NewContent | null> {
  if (html === undefined && text === undefined) return null;
  return prepareBody(deps, senderId, { html: html ?? null, text: text ?? null });
}

/** Stores the attachments of a send for its commit, one after another, so that few of their bytes are in memory. */
async function keepAttachments(
  deps: PrepareDeps,
  senderId: string,
  item: ReadItem,
  now: number,
): Promise<NewAttachment[]> {
  const kept: NewAttachment[] = [];
  for (const posted of item.attachments ?? []) {
    const bytes = base64Pieces(posted.content);
    const content = await prepareContent(deps, senderId, bytes);
    kept.push({ ...shownAttachment(posted, now), size: bytes.length, content });
  }
  return kept;
}

/** Returns the octets of bodies and attachments. */
function contentSize(item: ReadItem, attachments: readonly NewAttachment[]): number {
  let size = Buffer.byteLength(item.html ?? "") + Buffer.byteLength(item.text ?? "");
  for (const attachment of attachments) size += attachment.size;
  return size;
}

/**
 * Throws a commit's error for the caller. If content was written ahead and is gone, the process was held for an hour in
 * between, so the caller gets 503.
 */
export function contentGone(error: unknown): never {
  if (!isBroken(error, "content_gone")) throw error;
  throw new AppError("service_unavailable", "The send took too long. Try again.", { retryAfterSeconds: 1 });
}
