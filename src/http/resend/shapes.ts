import { type Mailbox, mailboxText } from "../../core/addresses.ts";

/** The id of the one segment, which has all contacts. */
export const ALL = "all";

/** Returns addresses with their display names, or null if there are none. */
export function mailboxTexts(mailboxes: readonly Mailbox[]): string[] | null {
  return mailboxes.length === 0 ? null : mailboxes.map(mailboxText);
}
