import type { Db } from "../engine/client.ts";

/** Maximum number of a thread's sent messages whose recipients are compared, newest first. */
export const MAX_SENT_COMPARED = 100;

const KNOWN = `SELECT 1 FROM contacts WHERE sender_id = ?1 AND email_key = ?2
  UNION ALL SELECT 1 FROM (SELECT id FROM messages WHERE thread_id = ?3 AND sender_id = ?1 AND direction = 'outbound'
      ORDER BY id DESC LIMIT ${MAX_SENT_COMPARED}) m
    CROSS JOIN recipients r ON r.message_id = m.id WHERE lower(r.email) = ?2
  LIMIT 1`;

/**
 * Returns whether an address is a contact of the project, or a recipient of what the project has sent in the thread.
 * @param threadId null for a new thread
 */
export async function isKnownAddress(
  db: Db,
  senderId: string,
  addressKey: string,
  threadId: string | null,
): Promise<boolean> {
  return (await db.first(KNOWN, [senderId, addressKey, threadId])) !== null;
}
