import { AppError } from "../../core/errors.ts";
import type { Calendar } from "../../core/messages/calendar.ts";
import type { InvitationAnswer } from "../../core/messages/invitation.ts";
import { listAttachments } from "../../store/messages/attachments.ts";
import type { Message } from "../../store/messages/messages.ts";
import { calendarIn, readCalendar } from "./invitations.ts";
import type { Making } from "../mime/making.ts";

/** The answer to an invitation, as a reply carries it. */
export interface InvitationReply {
  /** The organizer, who gets it (RFC 5546 §3.2.3). */
  to: string;
  /** The body of a reply that gives none. */
  text: string;
  calendar: Calendar;
}

const SAID: Readonly<Record<InvitationAnswer, string>> = {
  accepted: "Accepted",
  tentative: "Tentatively accepted",
  declined: "Declined",
};

/**
 * Makes the answer to the invitation in a received message, in the name of an address of the inbox.
 * @throws AppError 409 if the message has no invitation, or one that nobody waits for an answer to
 */
export async function invitationReply(
  deps: Making,
  parent: Message,
  { email: from, isOwn }: { email: string; isOwn: (email: string) => boolean },
  answer: InvitationAnswer,
): Promise<InvitationReply> {
  const attachments = await listAttachments(deps.db, parent.senderId, parent.id);
  const raw = await calendarIn(deps, { message: parent, attachments });
  const invitation = raw === null ? null : (await readCalendar(deps, raw)).invitation;
  const organizer = invitation?.organizer ?? null;
  if (raw === null || invitation === null || organizer === null || invitation.method !== "REQUEST")
    throw notInvited("The message replied to has no invitation that asks for an answer.");
  // The organizer knows the inbox by the address that was invited, which may have a label.
  const attendee = invitation.attendees.find(({ email }) => isOwn(email))?.email ?? from;
  const { reply } = await readCalendar(deps, raw, { answer, attendee, at: deps.clock.now() });
  if (reply === null) throw notInvited("The invitation in the message replied to cannot be read.");
  const { summary } = invitation;
  return {
    to: organizer,
    text: summary === null ? `${SAID[answer]}.` : `${SAID[answer]}: ${summary}`,
    calendar: { method: "REPLY", content: reply },
  };
}

function notInvited(message: string): AppError {
  return new AppError("conflict", message, { code: "invalid_state" });
}
