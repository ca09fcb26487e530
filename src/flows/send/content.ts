import { AppError } from "../../core/errors.ts";
import type { SendItem } from "../../core/send-item.ts";
import type { NewAttachment } from "../../store/attachments.ts";
import { CHUNK_OCTETS, type NewContent } from "../../store/contents/content-bytes.ts";
import { isContentGone } from "../../store/contents/contents.ts";
import { type KeepDeps, keepBody, keepContent } from "../contents/keep.ts";
import { base64Pieces, shownAttachment } from "./attachment.ts";

/** Octets of UTF-8 that a unit of UTF-16 becomes at most, and octets behind the texts of a body that a send has. */
const MAX_OCTETS_PER_UNIT = 3;
const MAX_BODY_END_OCTETS = 64;

/** Whether something of a send may have to be written ahead of its commit; false is certain. */
export function mayWriteAhead({ html, text, attachments = [] }: SendItem): boolean {
  const units = (html?.length ?? 0) + (text?.length ?? 0);
  return (
    units * MAX_OCTETS_PER_UNIT + MAX_BODY_END_OCTETS > CHUNK_OCTETS ||
    attachments.some(({ content }) => content.length > CHUNK_OCTETS)
  );
}

/** The bodies of a send, ready for its commit; null where it has none. */
export async function keepBodyOf(
  deps: KeepDeps,
  senderId: string,
  { html, text }: SendItem,
): Promise<NewContent | null> {
  if (html === undefined && text === undefined) return null;
  return keepBody(deps, senderId, { html: html ?? null, text: text ?? null });
}

/** The attachments of a send, ready for its commit: one after another, so that few of their bytes are in memory. */
export async function keepAttachments(
  deps: KeepDeps,
  senderId: string,
  item: SendItem,
  now: number,
): Promise<NewAttachment[]> {
  const kept: NewAttachment[] = [];
  for (const posted of item.attachments ?? []) {
    const bytes = base64Pieces(posted.content);
    const content = await keepContent(deps, senderId, bytes);
    kept.push({ ...shownAttachment(posted, now), size: bytes.length, content });
  }
  return kept;
}

/** Octets of bodies and attachments. */
export function contentSize(item: SendItem, attachments: readonly NewAttachment[]): number {
  let size = Buffer.byteLength(item.html ?? "") + Buffer.byteLength(item.text ?? "");
  for (const attachment of attachments) size += attachment.size;
  return size;
}

/**
 * Throws the error of a commit as the caller is to see it: a content that was written ahead of it and is gone asks for
 * somebody who holds the process for an hour in between.
 */
export function contentGone(error: unknown): never {
  if (!isContentGone(error)) throw error;
  throw new AppError("service_unavailable", "The send took too long. Try again.", { retryAfter: 1 });
}
