import { MAX_CALENDAR_CHARS } from "../../core/messages/calendar.ts";
import type { Invitation } from "../../core/messages/invitation.ts";
import type { AnswerToGive } from "../../mail/reading/invitation.ts";
import type { Attachment } from "../../store/messages/attachments.ts";
import { tooManyReads } from "../../store/contents/large-reads.ts";
import { isContentRemoved } from "../../store/messages/content-release.ts";
import type { Making } from "../mime/making.ts";
import type { Readings } from "../mime/reading-tasks.ts";
import type { MessageRecord } from "./record.ts";
import { attachmentBytes } from "./bytes.ts";

type Received = Pick<MessageRecord, "message" | "attachments">;

/**
 * Returns the invitation of a received message for its record.
 * @returns null if it has none that can be read, or its content has passed its retention
 * @throws AppError 503 if too many reads wait
 */
export async function invitationIn(deps: Making, received: Received): Promise<Invitation | null> {
  const { id, senderId } = received.message;
  if (calendarFile(received) === undefined || (await isContentRemoved(deps.db, senderId, id))) return null;
  const calendar = await calendarIn(deps, received);
  return calendar === null ? null : (await readCalendar(deps, calendar)).invitation;
}

/**
 * Returns the bytes of a received message's first calendar file, which may be an alternative of the body; null if it has none.
 * @throws AppError 404 if its content has passed its retention; 503 if too many reads wait
 */
export async function calendarIn(deps: Making, received: Received): Promise<Uint8Array | null> {
  const { id, senderId } = received.message;
  const file = calendarFile(received);
  const found = file === undefined ? null : await attachmentBytes(deps, senderId, id, file.id);
  return found === null ? null : Buffer.concat(await Array.fromAsync(found.bytes.pieces));
}

/** Reads a calendar object, and makes the answer if one is given. @throws AppError 503 if too many reads wait */
export async function readCalendar(
  deps: Making,
  raw: Uint8Array,
  answer: AnswerToGive | null = null,
): Promise<Readings["invitation"]["found"]> {
  const read = await deps.inspect({ kind: "invitation", raw, answer });
  if (read === null) throw tooManyReads();
  return read;
}

/** Types that programs give to an invitation, the usual one first. Some give none, but the name of the file. */
const TYPES = ["text/calendar", "application/ics", "text/x-vcalendar"];

function calendarFile({ message: { direction }, attachments }: Received): Attachment | undefined {
  if (direction !== "inbound") return undefined;
  const files = attachments.filter(({ size }) => size <= MAX_CALENDAR_CHARS);
  const typed = TYPES.flatMap((type) => files.find(({ contentType }) => contentType === type) ?? []);
  return typed[0] ?? files.find(({ filename }) => /\.ics$/i.test(filename));
}
