import type { Db } from "../../src/store/engine/client.ts";
import { type Holdings, holdingsOf } from "../../src/store/projects/holdings.ts";

/** Returns what the counters say that a project holds, and what the tables themselves say. */
export async function recounted(db: Db, senderId: string): Promise<{ counters: Holdings; tables: Holdings }> {
  const one = async (sql: string): Promise<number> =>
    (await db.first<{ n: number | null }>(sql, [senderId]))?.n ?? 0;
  const count = (table: string, more = "") =>
    one(`SELECT count(*) AS n FROM ${table} WHERE sender_id = ? ${more}`);
  const octets = (table: string, flat: number, texts: readonly string[], more = "", owner = "sender_id") =>
    one(`SELECT sum(${[flat, ...texts.map((text) => `COALESCE(octet_length(${text}), 0)`)].join(" + ")}) AS n
      FROM ${table} WHERE ${owner} = ? ${more}`);
  // All are read in one tick of the event loop, so they share a read transaction: the service may be writing.
  const [counters, templates, webhooks, inboxes, domains, apiKeys, contacts, suppressions, ...stored] =
    await Promise.all([
      holdingsOf(db, senderId),
      count("templates"),
      count("webhooks", "AND deleted_at IS NULL"),
      count("inboxes", "AND address <> id"),
      count("domains"),
      count("api_keys", "AND revoked_at IS NULL"),
      count("contacts"),
      count("suppressions"),
      one("SELECT sum(256 + size) AS n FROM contents WHERE sender_id = ?"),
      one("SELECT sum(row_octets) AS n FROM messages WHERE sender_id = ?"),
      octets("templates", 512, ["name", "subject", "html", "text", "variables"]),
      octets("contacts", 512, [
        "email",
        "first_name",
        "last_name",
        "metadata",
        "properties",
        "topics",
        "consent",
      ]),
      one("SELECT -6 * count(*) AS n FROM contacts WHERE sender_id = ?"),
      octets("suppressions", 512, ["note"]),
      octets("thread_notes", 512, ["text"]),
      octets("drafts", 512, ["item"]),
      octets("broadcast_bodies", 1024, ["html", "text"]),
      octets("webhooks", 512, ["url", "event_types"]),
      octets("inboxes", 512, ["display_name"]),
      octets("domains", 4096, []),
      octets("domain_records", 512, ["name", "value"]),
      octets("api_keys", 512, []),
      octets("webhook_deliveries", 512, ["data", "last_response", "last_error", "attempt_log"]),
      octets("events", 512, ["data"], "AND type IN ('open', 'click')"),
      octets("idempotency", 256, ["endpoint", "key", "body"], "", "scope"),
    ]);
  const storedOctets = stored.reduce((sum, part) => sum + part, 0);
  const rows = { templates, webhooks, inboxes, domains, apiKeys, contacts, suppressions };
  return { counters, tables: { storedOctets, ...rows } };
}
