// The tables that `postrider export` writes and `postrider import` reads. An operator who moves an installation to
// another engine or machine, or one project to another installation, would miss it: a backup is one file, whole, for
// the same engine. test/store/transfer.test.ts fails if a table is in neither of the two lists below.

/** How the rows of a table are exported and imported. */
export interface Kind {
  table: string;
  /** Columns of the primary key. A row whose key exists is already there. */
  key: readonly string[];
  /** Condition for the rows of the project `?1`; null if none belong to a project. */
  project: string | null;
  /** Condition for the rows that are exported. Default: all. */
  where?: string;
  /** Imported only into an installation that was never started, because each has its own. */
  first?: true;
  /** Exported with `--messages` only. */
  messages?: true;
  /** Columns that are left out, because each database has its own values. */
  omit?: readonly string[];
  /** SQL of columns that are exported with another value than the stored one; `t` is the table. */
  as?: Readonly<Record<string, string>>;
  /**
   * A column that gets its value after the INSERT, so that no trigger counts the row again in exported figures: the value
   * until then, and the values that a trigger counts (default: all but NULL).
   */
  quiet?: { column: string; until: string | null; counted?: readonly string[] };
  /** Columns that name a content. Each row adds a reference to it. */
  contents?: readonly string[];
  /** Rows per read. Default `ROWS_PER_READ`; fewer if rows are large. */
  rows?: number;
}

const OF_DOMAIN = "domain_id IN (SELECT id FROM domains WHERE sender_id = ?1)";
const OF_MESSAGE = "message_id IN (SELECT id FROM messages WHERE sender_id = ?1)";
const OF_CONTENT = `key IN (SELECT body FROM message_content WHERE ${OF_MESSAGE}
  UNION SELECT raw FROM message_content WHERE ${OF_MESSAGE}
  UNION SELECT content FROM attachments WHERE ${OF_MESSAGE})`;
const OF_PROJECT = "sender_id = ?1";
const OF_BROADCAST = "broadcast_id IN (SELECT id FROM broadcasts WHERE sender_id = ?1)";

/** What the trigger `holdings_attempts_insert` has added to `row_octets`. It adds it again when attempts are imported. */
const ATTEMPTS_OCTETS = `CASE WHEN t.direction = 'inbound' OR t.test_mode = 0 THEN COALESCE((
  SELECT SUM(256 + octet_length(COALESCE(a.transcript, '')) + 3 * octet_length(COALESCE(a.diagnostic, '')))
  FROM attempts a WHERE a.message_id = t.id), 0) ELSE 0 END`;

/** The exported tables, in the order of the file: a row refers only to rows before it. */
export const KINDS: readonly Kind[] = [
  // First, so that no change of this installation has taken its numbers.
  { table: "audit_log", key: ["seq"], project: null, first: true },
  { table: "accounts", key: ["id"], project: "id = (SELECT account_id FROM senders WHERE id = ?1)" },
  { table: "senders", key: ["id"], project: "id = ?1" },
  {
    table: "routes",
    key: ["id"],
    project: `id IN (SELECT value FROM senders, json_each(route_ids) WHERE senders.id = ?1
      UNION SELECT value FROM domains, json_each(route_ids) WHERE sender_id = ?1)`,
  },
  { table: "api_keys", key: ["id"], project: OF_PROJECT },
  { table: "members", key: ["id"], project: null },
  // After the import their webhook has another secret, so it is chosen again.
  { table: "notice_settings", key: ["account_id"], project: null, omit: ["webhook_id"] },
  { table: "notices", key: ["id"], project: OF_PROJECT },
  { table: "lanes", key: ["name"], project: null },
  { table: "warm_ups", key: ["lane"], project: null },
  { table: "mta_sts_policies", key: ["domain"], project: null },
  // Before domains, because the trigger of a served domain adds its zone with serial 0.
  {
    table: "zones",
    key: ["name"],
    project: "name IN (SELECT name FROM domains WHERE sender_id = ?1 AND served = 1)",
    as: { due_at: "0" },
  },
  { table: "domains", key: ["id"], project: OF_PROJECT },
  { table: "report_rows", key: ["id"], project: OF_DOMAIN },
  {
    table: "taken_reports",
    key: ["domain_id", "kind", "counts", "reporter", "report_id"],
    project: OF_DOMAIN,
  },
  { table: "domain_records", key: ["id"], project: OF_PROJECT },
  { table: "dkim_keys", key: ["token"], project: OF_DOMAIN },
  { table: "acme_accounts", key: ["directory"], project: null },
  // A pending order is begun again, because its challenges are not exported.
  {
    table: "certificates",
    key: ["id"],
    project: OF_DOMAIN,
    as: { order_url: "NULL", order_key: "NULL", order_at: "NULL" },
  },
  { table: "inboxes", key: ["id"], project: OF_PROJECT },
  { table: "rules", key: ["id"], project: OF_PROJECT },
  { table: "listed_senders", key: ["id"], project: OF_PROJECT },
  { table: "forward_addresses", key: ["id"], project: OF_PROJECT },
  { table: "webhooks", key: ["id"], project: OF_PROJECT },
  { table: "templates", key: ["id"], project: OF_PROJECT },
  { table: "contact_properties", key: ["id"], project: OF_PROJECT },
  { table: "topics", key: ["id"], project: OF_PROJECT },
  { table: "segments", key: ["id"], project: OF_PROJECT },
  { table: "contacts", key: ["id"], project: OF_PROJECT },
  {
    table: "broadcasts",
    key: ["id"],
    project: OF_PROJECT,
    // Two installations must not send it.
    as: { status: "CASE WHEN t.status IN ('scheduled', 'sending') THEN 'paused' ELSE t.status END" },
  },
  { table: "broadcast_bodies", key: ["broadcast_id"], project: OF_PROJECT, rows: 8 },
  { table: "broadcast_figures", key: ["broadcast_id", "hour"], project: OF_BROADCAST },
  { table: "broadcast_variant_figures", key: ["broadcast_id", "variant"], project: OF_BROADCAST },
  { table: "suppressions", key: ["id"], project: OF_PROJECT },
  { table: "erased_unsubscriptions", key: ["sender_id", "address"], project: OF_PROJECT },
  { table: "erasures", key: ["id"], project: OF_PROJECT },
  { table: "usage", key: ["sender_id", "day"], project: OF_PROJECT },
  { table: "complaints", key: ["sender_id", "email"], project: OF_PROJECT },
  { table: "stats", key: ["sender_id", "hour"], project: OF_PROJECT },
  {
    table: "stats_destinations",
    key: ["sender_id", "day", "domain", "outcome"],
    project: OF_PROJECT,
  },
  { table: "stats_providers", key: ["sender_id", "day", "provider"], project: OF_PROJECT },
  // After `stats`, in which its rows are counted.
  {
    table: "reputation",
    key: ["sender_id", "day"],
    project: OF_PROJECT,
    quiet: { column: "hour", until: null },
  },
  {
    table: "contents",
    key: ["key"],
    project: OF_CONTENT,
    messages: true,
    omit: ["id"],
    // Each row that names it adds its reference. What is in the object store is exported as chunks.
    as: {
      refs: "0",
      encoding: "CASE stored_in WHEN 'object' THEN 'plain' ELSE encoding END",
      stored_in: "CASE stored_in WHEN 'object' THEN 'chunks' ELSE stored_in END",
      object: "NULL",
    },
    rows: 16,
  },
  { table: "content_chunks", key: ["key", "ord"], project: OF_CONTENT, messages: true, rows: 8 },
  { table: "threads", key: ["id"], project: OF_PROJECT, messages: true },
  { table: "thread_notes", key: ["id"], project: OF_PROJECT, messages: true },
  { table: "drafts", key: ["id"], project: OF_PROJECT, messages: true, rows: 8 },
  {
    table: "thread_references",
    key: ["inbox_id", "rfc_message_id"],
    project: OF_PROJECT,
    messages: true,
  },
  {
    table: "messages",
    key: ["id"],
    project: OF_PROJECT,
    messages: true,
    // A chore indexes messages that have no position.
    omit: ["position", "word_place"],
    as: { row_octets: `t.row_octets - (${ATTEMPTS_OCTETS})` },
  },
  {
    table: "message_content",
    key: ["message_id"],
    project: OF_MESSAGE,
    messages: true,
    contents: ["body", "raw"],
  },
  { table: "attachments", key: ["id"], project: OF_MESSAGE, messages: true, contents: ["content"] },
  { table: "broadcast_variants", key: ["message_id"], project: OF_MESSAGE, messages: true },
  // Replies leave within a second, and their authors are known for a day.
  {
    table: "rule_effects",
    key: ["message_id", "ord"],
    project: OF_MESSAGE,
    where: "author IS NULL AND due_at IS NULL",
    messages: true,
  },
  {
    table: "recipients",
    key: ["message_id", "ord"],
    project: OF_MESSAGE,
    messages: true,
    quiet: { column: "last_event_at", until: null },
  },
  {
    table: "attempts",
    key: ["message_id", "ord", "attempt"],
    project: OF_MESSAGE,
    messages: true,
    rows: 50,
  },
  // Before events: an open counts in figures only if none was before.
  { table: "engagement", key: ["message_id", "ord"], project: OF_MESSAGE, messages: true },
  {
    table: "events",
    key: ["message_id", "id"],
    project: OF_MESSAGE,
    messages: true,
    quiet: { column: "type", until: "importing", counted: ["inbound_received", "unsubscribed"] },
  },
  { table: "webhook_deliveries", key: ["id"], project: OF_PROJECT, messages: true },
  { table: "fan_outs", key: ["sender_id", "id"], project: OF_PROJECT, messages: true, rows: 8 },
  {
    table: "idempotency",
    key: ["scope", "endpoint", "key"],
    project: "scope = ?1",
    // Answers with a secret are sealed as a whole, and then no JSON.
    where: "(body = '' OR json_valid(body))",
    messages: true,
  },
];

/** The tables that are not exported, and why. */
export const NOT_EXPORTED: Readonly<Record<string, string>> = {
  audit_actor: "who acts in the current transaction",
  schema_migrations: "the import makes the schema",
  installation: "facts about this installation: its version, its backups",
  instances: "the processes that run",
  lane_figures: "figures of processes for the current day",
  domain_orders: "orders of certificates in progress",
  acme_challenges: "orders of certificates in progress",
  zone_notices: "every start notifies the secondaries of every zone",
  stray_objects: "uploads in progress to this installation's object store",
  stats_domains: "counted by triggers",
  join_links: "links that were mailed today",
  audience_columns: "copied by triggers",
  audience_numbers: "copied by triggers",
  audience_values: "copied by triggers",
  broadcast_messages: "copied by triggers",
  stats_steps: "the same in every database",
  holdings: "counted by triggers",
  configuration_version: "counted by triggers",
  guards: "never has a row",
  message_terms: "the search index, which a chore makes again",
  messages_changed: "messages to index again, and all are",
  message_words: "the index of words, which a chore makes again",
  word_places: "the index of words, which a chore makes again",
  word_progress: "the index of words, which a chore makes again",
  words_changed: "messages to index again, and all are",
  start_tokens: "links that sign a browser in within an hour",
  member_sessions: "browsers that have signed in here",
  sign_in_links: "links that sign a browser in within an hour",
  watched_projects: "clients that follow events now",
  event_log: "events for clients that follow them now",
  imports: "files that are imported now, and results of the last days",
  import_parts: "files that are imported now, and results of the last days",
};

/** Rows per read, unless a kind says otherwise. */
export const ROWS_PER_READ = 200;

/** The kinds by the name of their table. */
export const KIND_OF: ReadonlyMap<string, Kind> = new Map(KINDS.map((kind) => [kind.table, kind]));

/** The table that a column refers to. If that row was refused, so is a row with the column. */
export const PARENTS: Readonly<Record<string, string>> = {
  account_id: "accounts",
  sender_id: "senders",
  domain_id: "domains",
  inbox_id: "inboxes",
  thread_id: "threads",
  message_id: "messages",
  webhook_id: "webhooks",
  broadcast_id: "broadcasts",
};
