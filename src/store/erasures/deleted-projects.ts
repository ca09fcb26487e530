import type { Db, Statement } from "../engine/client.ts";
import type { GoingMessage } from "../messages/retention.ts";

/**
 * Returns the statements that end a project at once: it is hidden and sends nothing, its keys are revoked, and its webhooks get
 * nothing more. Its rows go later, in steps.
 */
export function endProject(accountId: string, id: string, now: number): Statement[] {
  return [
    {
      // The external id is free for another project at once.
      sql: `UPDATE senders SET deleted_at = ?1, suspended_at = COALESCE(suspended_at, ?1), external_id = id
        WHERE account_id = ?2 AND id = ?3 AND deleted_at IS NULL`,
      args: [now, accountId, id],
    },
    { sql: "UPDATE api_keys SET revoked_at = ? WHERE sender_id = ? AND revoked_at IS NULL", args: [now, id] },
    {
      sql: "UPDATE webhooks SET deleted_at = ?, enabled = 0 WHERE sender_id = ? AND deleted_at IS NULL",
      args: [now, id],
    },
    // Peers get a refusal at once, not a 250 for mail that is deleted.
    { sql: "UPDATE domains SET receiving = 0 WHERE sender_id = ? AND receiving = 1", args: [id] },
  ];
}

/** Returns a project that is being deleted, of any account; null if there is none. */
export async function endedProject(db: Db): Promise<string | null> {
  const sql = "SELECT id FROM senders INDEXED BY senders_deleted WHERE deleted_at IS NOT NULL LIMIT 1";
  return (await db.first<{ id: string }>(sql))?.id ?? null;
}

/** Returns at most `limit` messages of a project, whatever their state. */
export async function anyMessages(db: Db, senderId: string, limit: number): Promise<GoingMessage[]> {
  const rows = await db.all<{ id: string; thread_id: string | null }>(
    "SELECT id, thread_id FROM messages WHERE sender_id = ? LIMIT ?",
    [senderId, limit],
  );
  return rows.map((row) => ({ id: row.id, threadId: row.thread_id, isMoving: false }));
}

const OWN = "sender_id = ?1";
const OF_INBOX = "inbox_id IN (SELECT id FROM inboxes WHERE sender_id = ?1)";
const OF_BROADCAST = "broadcast_id IN (SELECT id FROM broadcasts WHERE sender_id = ?1)";
const OF_KEY = "key_id IN (SELECT id FROM api_keys WHERE sender_id = ?1)";

/** The tables of a project besides its messages and webhooks, which other steps delete, in the order of their references. */
const TABLES: readonly [table: string, key: string, where: string][] = [
  // First, because they make contacts and suppressions.
  ["import_parts", "import_id, ord", OWN],
  ["imports", "id", OWN],
  ["fan_outs", "sender_id, id", OWN],
  ["thread_references", "inbox_id, rfc_message_id", OF_INBOX],
  ["thread_notes", "id", OWN],
  ["drafts", "id", OWN],
  ["threads", "id", OWN],
  ["rules", "id", OWN],
  ["listed_senders", "id", OWN],
  ["forward_addresses", "id", OWN],
  ["rule_effects", "message_id, ord", OWN],
  ["inboxes", "id", OWN],
  ["contacts", "id", OWN],
  ["contact_properties", "id", OWN],
  ["topics", "id", OWN],
  ["audience_columns", "id", OWN],
  ["segments", "id", OWN],
  ["broadcast_figures", "broadcast_id, hour", OF_BROADCAST],
  ["broadcast_variant_figures", "broadcast_id, variant", OF_BROADCAST],
  ["broadcast_bodies", "broadcast_id", OWN],
  ["broadcasts", "id", OWN],
  ["suppressions", "id", OWN],
  ["templates", "id", OWN],
  ["complaints", "sender_id, email", OWN],
  ["usage", "sender_id, day", OWN],
  ["reputation", "sender_id, day", OWN],
  ["stats", "sender_id, hour", OWN],
  ["stats_destinations", "sender_id, day, domain, outcome", OWN],
  ["stats_domains", "sender_id, day", OWN],
  ["stats_providers", "sender_id, day, provider", OWN],
  ["idempotency", "scope, endpoint, key", "scope = ?1"],
  ["watched_projects", "sender_id", OWN],
  ["event_log", "seq", OWN],
  ["erasures", "id", OWN],
  ["erased_unsubscriptions", "sender_id, address", OWN],
  ["notices", "id", OWN],
  ["start_tokens", "key_id", OF_KEY],
  ["api_keys", "id", OWN],
  ["domains", "id", OWN],
];

/** Deletes at most `limit` rows of the next table that has some. Returns false if none has. */
export async function deleteRows(db: Db, senderId: string, limit: number): Promise<boolean> {
  for (const [table, key, where] of TABLES) {
    const sql = `DELETE FROM ${table} WHERE (${key}) IN (SELECT ${key} FROM ${table} WHERE ${where} LIMIT ?2)`;
    const [written] = await db.write([{ sql, args: [senderId, limit] }]);
    if ((written?.changes ?? 0) > 0) return true;
  }
  return false;
}

/** Deletes the project itself, once no message or webhook is left. */
export async function deleteProject(db: Db, senderId: string): Promise<void> {
  const left =
    "SELECT 1 FROM messages WHERE sender_id = ?1 UNION ALL SELECT 1 FROM webhooks WHERE sender_id = ?1";
  await db.write([
    // The limit of an address outlives the project: else who deletes it could mail an address again at once.
    { sql: "UPDATE join_links SET sender_id = '' WHERE sender_id = ?", args: [senderId] },
    {
      sql: `DELETE FROM senders WHERE id = ?1 AND deleted_at IS NOT NULL AND NOT EXISTS (${left})`,
      args: [senderId],
    },
    {
      sql: `DELETE FROM holdings WHERE owner_id IN (?1, 'captured ' || ?1)
        AND NOT EXISTS (SELECT 1 FROM senders WHERE id = ?1)`,
      args: [senderId],
    },
  ]);
}
