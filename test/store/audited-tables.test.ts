import { afterAll, beforeAll, expect, test } from "bun:test";
import { ALL_AUDITED as AUDITED } from "../../src/store/engine/audited-members.ts";
import { testDatabase, type TestDatabase } from "../support/database.ts";

/** Tables whose changes leave no entry in the audit trail, by why. */
const NOT_AUDITED: Readonly<Record<string, readonly string[]>> = {
  "the trail itself": ["audit_log", "audit_actor"],
  "mail and what happened to it": [
    "message_content",
    "webhook_deliveries",
    "attachments",
    "contents",
    "content_chunks",
    "stray_objects",
    "recipients",
    "attempts",
    "engagement",
    "events",
    "thread_references",
    "fan_outs",
    "report_rows",
    "taken_reports",
    "complaints",
    "erased_unsubscriptions",
    "rule_effects",
    "join_links",
    "import_parts",
    "broadcast_bodies",
  ],
  "counts and copies that follow from other rows": [
    "usage",
    "reputation",
    "stats",
    "stats_destinations",
    "stats_providers",
    "stats_domains",
    "stats_steps",
    "holdings",
    "audience_columns",
    "audience_numbers",
    "audience_values",
    "broadcast_messages",
    "broadcast_figures",
    "broadcast_variants",
    "broadcast_variant_figures",
    "messages_changed",
    "word_places",
    "word_progress",
    "words_changed",
    "configuration_version",
    "watched_projects",
    "event_log",
    "guards",
    "warm_ups",
    "lane_figures",
    "zones",
    "zone_notices",
  ],
  "the service's own work": [
    "installation",
    "instances",
    "idempotency",
    "mta_sts_policies",
    "start_tokens",
    "sign_in_links",
    "acme_accounts",
    "certificates",
    "domain_orders",
    "acme_challenges",
    "notices",
    "schema_migrations",
  ],
};

/** Columns that identify a row or follow from it. */
const OF_THE_ROW: ReadonlySet<string> = new Set([
  "id",
  "token",
  "account_id",
  "sender_id",
  "domain_id",
  "created_at",
  "updated_at",
]);

/** Columns that are not watched, because the service keeps its own notes there. */
const NOTES: Readonly<Record<string, readonly string[]>> = {
  senders: ["warned_at"],
  accounts: ["erasure_key"],
  erasures: ["sealed_email", "project_at", "message_at", "blocked", "pages_left", "counts", "ended_at"],
  api_keys: ["key_prefix", "last4", "secret_hash", "last_used_at", "created_by"],
  domains: [
    "delegation_found",
    "delegation_seen_at",
    "delegation_token",
    "dmarc_moves",
    "verified_at",
    "failing_since",
    "checked_at",
    "next_check_at",
  ],
  dkim_keys: ["public_key", "private_key", "retire_at"],
  inboxes: ["received_count"],
  rules: ["failures"],
  forward_addresses: ["email_key", "asked_at", "mails"],
  // Texts that an erasure must find, and what is saved every few seconds.
  thread_notes: ["author", "text"],
  drafts: ["author", "item", "version"],
  webhooks: ["previous_secret", "previous_secret_until", "failing_since"],
  templates: ["variables"],
  contacts: ["email_key", "unsubscribed_at", "consent", "last_sent_at", "last_opened_at", "last_clicked_at"],
  // Its start copies some; the rest is progress.
  broadcasts: [
    "key_id",
    "filter",
    "variables",
    "octets",
    "audience",
    "started_at",
    "ended_at",
    "last_contact_id",
    "next_at",
    "recipients",
    "skipped",
    "problem",
  ],
  contact_properties: ["walked_to"],
  topics: ["walked_to"],
  suppressions: ["message_id"],
  members: ["invited_by", "last_seen_at"],
  member_sessions: ["last_used_at", "expires_at"],
};

let database: TestDatabase;
beforeAll(async () => {
  database = await testDatabase();
});
afterAll(() => database.remove());

test("each table is in the audit trail, or named with the reason why not", async () => {
  const tables = await database.db.all<{ name: string }>(
    "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' AND name NOT GLOB 'message_terms*' AND name NOT GLOB 'message_words*'",
  );
  const known = [...AUDITED.map(({ table }) => table), ...Object.values(NOT_AUDITED).flat()].sort();
  expect(tables.map(({ name }) => name).sort()).toEqual(known);
});

test.each(AUDITED.filter(({ busy }) => busy === undefined))(
  "each column of $table is watched, or named",
  async ({ table, fields, marks = [] }) => {
    const columns = await database.db.all<{ name: string }>(`PRAGMA table_info(${table})`);
    const watched = new Set([...Object.keys(fields), ...marks, ...(NOTES[table] ?? [])]);
    const names = columns.map(({ name }) => name);
    expect(names.filter((name) => !watched.has(name) && !OF_THE_ROW.has(name))).toEqual([]);
  },
);
