import type { Db, Statement } from "../engine/client.ts";
import { erasedForms } from "./erased-addresses.ts";

/*
 * Unsubscriptions of erased addresses, as keyed hashes. Their contacts are gone. A contact that is subscribed since, because a
 * client has said so, comes before them.
 */

/**
 * Returns the statement that keeps the unsubscription of a contact before the contact is erased. One who has left a topic counts
 * as unsubscribed, because the topic would be known of the erased person.
 */
export function keepUnsubscription(senderId: string, key: string, erased: string): Statement {
  return {
    sql: `INSERT INTO erased_unsubscriptions (sender_id, address)
      SELECT sender_id, ?3 FROM contacts WHERE sender_id = ?1 AND email_key = ?2
        AND (subscribed = 0 OR EXISTS (SELECT 1 FROM json_each(topics) WHERE value = 0))
      ON CONFLICT DO NOTHING`,
    args: [senderId, key, erased],
  };
}

/** Returns those of the address keys that had unsubscribed from the project when they were erased. */
export async function unsubscribedBeforeErasure(
  db: Db,
  senderId: string,
  keys: readonly string[],
): Promise<Set<string>> {
  const any = "SELECT 1 FROM erased_unsubscriptions WHERE sender_id = ? LIMIT 1";
  if ((await db.first(any, [senderId])) === null) return new Set();
  return unsubscribedAmong(db, senderId, await erasedForms(db, senderId, keys));
}

/** Returns the same, if the caller has the forms of the keys (`erasedForms`). */
export async function unsubscribedAmong(
  db: Db,
  senderId: string,
  forms: ReadonlyMap<string, string>,
): Promise<Set<string>> {
  const rows = await db.all<{ address: string }>(
    `SELECT address FROM erased_unsubscriptions WHERE sender_id = ?
      AND address IN (SELECT value FROM json_each(?))`,
    [senderId, JSON.stringify([...forms.keys()])],
  );
  return new Set(rows.flatMap(({ address }) => forms.get(address) ?? []));
}
