/** The answers to an invitation, by the names of PARTSTAT (RFC 5545 §3.2.12) in lower case. */
export const INVITATION_ANSWERS = ["accepted", "tentative", "declined"] as const;
export type InvitationAnswer = (typeof INVITATION_ANSWERS)[number];
/** Maximum number of attendees that are shown of an invitation. */
export const MAX_ATTENDEES = 100;
/** An event that a message invites to, changes, cancels or answers (RFC 5546). */
export interface Invitation {
  /** In upper case, such as `REQUEST`. */
  method: string;
  uid: string;
  summary: string | null;
  location: string | null;
  /** As written: a UTC time ends in Z, others are local times of `timeZone`, and a date is a whole day. */
  start: string | null;
  end: string | null;
  /** The name of the zone as written. Null: the times are UTC, or those of each reader. */
  timeZone: string | null;
  recurring: boolean;
  organizer: string | null;
  /** `answer` is the PARTSTAT in lower case, such as `needs-action`. */
  attendees: { email: string; answer: string }[];
}
