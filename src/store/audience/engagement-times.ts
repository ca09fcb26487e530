import type { Statement } from "../engine/client.ts";

const ENGAGED = {
  sent: "UPDATE contacts SET last_sent_at = ? WHERE sender_id = ? AND email_key = ?",
  opened: "UPDATE contacts SET last_opened_at = ? WHERE sender_id = ? AND email_key = ?",
  clicked: "UPDATE contacts SET last_clicked_at = ? WHERE sender_id = ? AND email_key = ?",
} as const;

/** Returns the statement that stores when a contact was sent a message, or opened one or clicked. For other addresses it is a look-up. */
export function noteEngagement(
  what: keyof typeof ENGAGED,
  senderId: string,
  emailKey: string,
  at: number,
): Statement {
  return { sql: ENGAGED[what], args: [at, senderId, emailKey] };
}
