import { MAX_CALENDAR_CHARS } from "../../core/messages/calendar.ts";
import type { Invitation } from "../../core/messages/invitation.ts";
import type { AnswerToGive } from "../../mail/reading/invitation.ts";
import type { Attachment } from "../../store/messages/attachments.ts";
import { tooManyReads } from "../../store/contents/large-reads.ts";
import { isContentRemoved } from "../../store/messages/content-release.ts";
import type { Making } from "../mime/making.ts";
import type { MessageRecord } from "./record.ts";
import { attachmentBytes } from "./bytes.ts";

/** An invitation in a message, and the answer that was asked for. */
export interface FoundInvitation {
  invitation: Invitation;
  /** The calendar object of the answer; null if none was asked for. */
  reply: string | null;
}

/**
 * Reads the invitation of a received message: its first calendar file, which also holds one that is an alternative of the body.
 * @returns null if it has none that can be read, or its content has passed its retention
 * @throws AppError 503 if too many reads wait
 */
export async function invitationIn(
  deps: Making,
  { message: { id, senderId, direction }, attachments }: Pick<MessageRecord, "message" | "attachments">,
  answer: AnswerToGive | null = null,
): Promise<FoundInvitation | null> {
  const file = direction === "inbound" ? attachments.find(isCalendar) : undefined;
  if (file === undefined || (await isContentRemoved(deps.db, senderId, id))) return null;
  const found = await attachmentBytes(deps, senderId, id, file.id);
  if (found === null) return null;
  const pieces = await Array.fromAsync(found.bytes.pieces);
  const read = await deps.inspect({ kind: "invitation", raw: Buffer.concat(pieces), answer });
  if (read === null) throw tooManyReads();
  return read.invitation === null ? null : { invitation: read.invitation, reply: read.reply };
}

function isCalendar({ contentType, size }: Attachment): boolean {
  return contentType === "text/calendar" && size <= MAX_CALENDAR_CHARS;
}
