-- Postrider's schema. Times (`_at`) are integer milliseconds since the Unix epoch, UTC.
-- Ids sort by creation time, so "newest first" is a descending walk over an id.
-- JSON columns hold what the API shows, in the API's own spelling.
--
-- This is the schema of version 1.0.0. Later versions change it by further files (docs/architecture.md).
--
-- A later version can change the tables that grow with mail, audience and time without reading them.
-- They are not STRICT, because SQLite checks every row of a STRICT table before it adds a column.
-- A list of values that may grow is a CHECK without commas, which libSQL's ALTER COLUMN can replace.

-- erasure_key: keys the hashes that erased addresses leave in lists of suppressions.
CREATE TABLE accounts (
  id TEXT PRIMARY KEY,
  name TEXT NOT NULL,
  owner_email TEXT NOT NULL,
  erasure_key TEXT NOT NULL DEFAULT (lower(hex(randomblob(32)))),
  created_at INTEGER NOT NULL
) STRICT;

-- A project. `sender_id` in other tables names it.
-- warned_at: when the log last said that the project is near suspension.
-- content_days, event_days: its retention; NULL: that of the installation. deleted_at: since when it is being deleted in steps.
CREATE TABLE senders (
  id TEXT PRIMARY KEY,
  account_id TEXT NOT NULL REFERENCES accounts (id),
  external_id TEXT NOT NULL,
  name TEXT NOT NULL,
  plan TEXT NOT NULL,
  trust_tier TEXT NOT NULL,
  daily_quota INTEGER,
  track_opens INTEGER NOT NULL DEFAULT 1 CHECK (track_opens IN (0, 1, 2)),
  track_clicks INTEGER NOT NULL DEFAULT 1 CHECK (track_clicks IN (0, 1)),
  text_from_html INTEGER NOT NULL DEFAULT 1 CHECK (text_from_html IN (0, 1)),
  route_ids TEXT NOT NULL DEFAULT '[]',
  suspended_at INTEGER,
  warned_at INTEGER,
  content_days INTEGER CHECK (content_days > 0),
  event_days INTEGER CHECK (event_days > 0),
  deleted_at INTEGER,
  created_at INTEGER NOT NULL,
  UNIQUE (account_id, external_id)
) STRICT;
CREATE INDEX senders_content_days ON senders (content_days) WHERE content_days IS NOT NULL;
CREATE INDEX senders_event_days ON senders (event_days) WHERE event_days IS NOT NULL;
CREATE INDEX senders_deleted ON senders (id) WHERE deleted_at IS NOT NULL;
CREATE INDEX senders_by_account ON senders (account_id, id);
CREATE INDEX senders_warned ON senders (warned_at) WHERE warned_at IS NOT NULL;

-- Ways out of an account. route_ids of `senders` and `domains` names them in order.
-- sealed_proof: what proves the events of the relay's provider: a secret, a key or a topic.
-- sealed_relay_url: the URL of a relay with its login, sealed by the master key. relay_host: its host and port, which may be shown.
CREATE TABLE routes (
  id TEXT PRIMARY KEY,
  account_id TEXT NOT NULL REFERENCES accounts (id),
  name TEXT NOT NULL,
  kind TEXT NOT NULL CHECK (kind IN ('mx', 'relay')),
  sealed_relay_url TEXT,
  relay_host TEXT,
  pool TEXT,
  rate_per_second REAL,
  warm_up TEXT,
  events_provider TEXT CHECK (events_provider IN ('ses', 'postmark', 'mailgun', 'sendgrid')),
  sealed_proof TEXT,
  created_at INTEGER NOT NULL,
  UNIQUE (account_id, name),
  CHECK ((events_provider IS NULL) = (sealed_proof IS NULL)),
  CHECK ((kind = 'relay') = (sealed_relay_url IS NOT NULL))
) STRICT;
CREATE INDEX routes_by_account ON routes (account_id, id);

CREATE TABLE api_keys (
  id TEXT PRIMARY KEY,
  account_id TEXT NOT NULL REFERENCES accounts (id),
  sender_id TEXT REFERENCES senders (id),
  name TEXT NOT NULL,
  key_prefix TEXT NOT NULL,
  last4 TEXT NOT NULL,
  secret_hash TEXT NOT NULL UNIQUE,
  scopes TEXT NOT NULL DEFAULT '[]',
  allow_recipients TEXT,
  approval INTEGER NOT NULL DEFAULT 0 CHECK (approval IN (0, 1)),
  last_used_at INTEGER,
  revoked_at INTEGER,
  created_at INTEGER NOT NULL
) STRICT;
CREATE INDEX api_keys_by_account ON api_keys (account_id, id);

-- Facts about the whole installation: the version that started last, its backups, its master key, and a restore whose mail
-- is held.
CREATE TABLE installation (
  name TEXT PRIMARY KEY,
  value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- One row per running process. A claim on a recipient or a webhook delivery names its instance.
-- master_keys: ids of the master keys that it has and uses, with spaces; the first one seals.
-- If the heartbeat stops for 60 s, or the process is dead when another starts on the host, its claims are freed.
CREATE TABLE instances (
  id TEXT PRIMARY KEY,
  host TEXT NOT NULL,
  pid INTEGER NOT NULL,
  heartbeat_at INTEGER NOT NULL,
  started_at INTEGER NOT NULL,
  master_keys TEXT NOT NULL DEFAULT ''
) STRICT;

-- How far the lanes of outgoing mail have come down from their limits. A lane without a row is steady.
-- Of two states the one with the higher version counts. changed_by: the instance that wrote it. rank: 2 for a provider's
-- or a relay's, 1 for one that is not at its limits. If there are too many, those of a low rank are deleted first.
CREATE TABLE lanes (
  name TEXT PRIMARY KEY,
  state TEXT NOT NULL,
  version INTEGER NOT NULL,
  changed_by TEXT NOT NULL,
  changed_at INTEGER NOT NULL,
  rank INTEGER NOT NULL DEFAULT 0
) STRICT, WITHOUT ROWID;

-- How far a new address of ours has come with a provider: the day (UTC, days since 1970) and the step of its cap.
-- target: messages a day to which it grows.
-- blocked: the provider has refused the address on that day.
CREATE TABLE warm_ups (
  lane TEXT PRIMARY KEY,
  day INTEGER NOT NULL,
  step INTEGER NOT NULL,
  target INTEGER NOT NULL,
  blocked INTEGER NOT NULL DEFAULT 0 CHECK (blocked IN (0, 1))
) STRICT, WITHOUT ROWID;

-- Figures of each lane in each process on a day (UTC, days since 1970), and how many recipients wait in it.
CREATE TABLE lane_figures (
  day INTEGER NOT NULL,
  lane TEXT NOT NULL,
  instance_id TEXT NOT NULL,
  accepted INTEGER NOT NULL DEFAULT 0,
  deferred INTEGER NOT NULL DEFAULT 0,
  refused INTEGER NOT NULL DEFAULT 0,
  waiting INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (day, lane, instance_id)
) STRICT, WITHOUT ROWID;

-- A name receives mail for one project only, because a message to it must have one owner.
-- delegation_token: the label of the NS record that proves control of the name for this registration alone.
-- served: control was proven, and our name server answers for the zone.
-- dmarc_policy: what that zone publishes. dmarc_auto: reports move it. dmarc_moves: JSON, the latest moves, newest first.
CREATE TABLE domains (
  id TEXT PRIMARY KEY,
  account_id TEXT NOT NULL REFERENCES accounts (id),
  sender_id TEXT NOT NULL REFERENCES senders (id),
  name TEXT NOT NULL,
  status TEXT NOT NULL CHECK (status IN ('pending', 'verified')),
  dkim_verified INTEGER NOT NULL DEFAULT 0 CHECK (dkim_verified IN (0, 1)),
  spf_verified INTEGER NOT NULL DEFAULT 0 CHECK (spf_verified IN (0, 1)),
  dmarc_verified INTEGER NOT NULL DEFAULT 0 CHECK (dmarc_verified IN (0, 1)),
  mx_verified INTEGER NOT NULL DEFAULT 0 CHECK (mx_verified IN (0, 1)),
  return_path_verified INTEGER NOT NULL DEFAULT 0 CHECK (return_path_verified IN (0, 1)),
  links_verified INTEGER NOT NULL DEFAULT 0 CHECK (links_verified IN (0, 1)),
  route_ids TEXT NOT NULL DEFAULT '[]',
  receiving INTEGER NOT NULL DEFAULT 0 CHECK (receiving IN (0, 1)),
  delegated INTEGER NOT NULL DEFAULT 0 CHECK (delegated IN (0, 1)),
  delegation_found INTEGER NOT NULL DEFAULT 0 CHECK (delegation_found IN (0, 1)),
  delegation_seen_at INTEGER,
  delegation_token TEXT NOT NULL DEFAULT (lower(hex(randomblob(16)))),
  served INTEGER NOT NULL DEFAULT 0 CHECK (served IN (0, 1)),
  dmarc_auto INTEGER NOT NULL DEFAULT 0 CHECK (dmarc_auto IN (0, 1)),
  dmarc_policy TEXT NOT NULL DEFAULT 'none' CHECK (dmarc_policy IN ('none', 'quarantine', 'reject')),
  dmarc_moves TEXT NOT NULL DEFAULT '[]',
  verified_at INTEGER,
  failing_since INTEGER,
  checked_at INTEGER,
  next_check_at INTEGER,
  created_at INTEGER NOT NULL,
  UNIQUE (account_id, name),
  CHECK (served = 0 OR delegated = 1),
  CHECK (delegated = 1 OR (dmarc_auto = 0 AND dmarc_policy = 'none'))
) STRICT;
CREATE INDEX domains_by_name ON domains (name);
CREATE INDEX domains_by_check ON domains (next_check_at) WHERE next_check_at IS NOT NULL;
CREATE INDEX domains_by_sender ON domains (sender_id, id);
CREATE UNIQUE INDEX domains_receiving ON domains (name) WHERE receiving = 1;
CREATE INDEX domains_by_return_path ON domains (name) WHERE return_path_verified = 1;
-- The name server answers for a name with the records of one domain.
CREATE UNIQUE INDEX domains_served ON domains (name) WHERE served = 1;

-- Reports that receivers send about a domain's mail, added up by day. counts: one of DMARC_REPORTERS is proven to have sent it.
CREATE TABLE report_rows (
  id TEXT PRIMARY KEY NOT NULL,
  domain_id TEXT NOT NULL REFERENCES domains (id) ON DELETE CASCADE,
  kind TEXT NOT NULL CHECK (kind IN ('dmarc', 'tls')),
  day TEXT NOT NULL,
  counts INTEGER NOT NULL CHECK (counts IN (0, 1)),
  reporter TEXT NOT NULL,
  source TEXT NOT NULL,
  result TEXT NOT NULL,
  disposition TEXT NOT NULL,
  messages INTEGER NOT NULL,
  UNIQUE (domain_id, kind, day, counts, reporter, source, result, disposition)
);
CREATE INDEX report_rows_by_domain ON report_rows (domain_id, kind, id);
CREATE INDEX report_rows_by_day ON report_rows (day);

-- Reports that are in these sums, so that each counts once.
CREATE TABLE taken_reports (
  domain_id TEXT NOT NULL REFERENCES domains (id) ON DELETE CASCADE,
  kind TEXT NOT NULL,
  day TEXT NOT NULL,
  counts INTEGER NOT NULL,
  reporter TEXT NOT NULL,
  report_id TEXT NOT NULL,
  PRIMARY KEY (domain_id, kind, counts, reporter, report_id)
) WITHOUT ROWID;
CREATE INDEX taken_reports_by_day ON taken_reports (day, domain_id, kind, counts);

-- The customers' own records in zones that are delegated to us.
CREATE TABLE domain_records (
  id TEXT PRIMARY KEY,
  sender_id TEXT NOT NULL,
  domain_id TEXT NOT NULL REFERENCES domains (id) ON DELETE CASCADE,
  type TEXT NOT NULL CHECK (type IN ('A', 'AAAA', 'CNAME', 'TXT', 'MX', 'CAA')),
  name TEXT NOT NULL,
  value TEXT NOT NULL,
  ttl INTEGER NOT NULL,
  priority INTEGER,
  created_at INTEGER NOT NULL
) STRICT;
CREATE INDEX domain_records_by_domain ON domain_records (domain_id, id);
CREATE INDEX domain_records_by_name ON domain_records (domain_id, name, type);

-- If `domain_id` is NULL, the key is the installation's own: it signs for the onboarding domain and our own zone.
CREATE TABLE dkim_keys (
  token TEXT PRIMARY KEY,
  domain_id TEXT REFERENCES domains (id) ON DELETE CASCADE,
  selector TEXT NOT NULL,
  algorithm TEXT NOT NULL CHECK (algorithm IN ('rsa', 'ed25519')),
  public_key TEXT NOT NULL,
  private_key TEXT NOT NULL,
  status TEXT NOT NULL CHECK (status IN ('pending', 'active', 'retired')),
  retire_at INTEGER,
  created_at INTEGER NOT NULL
) STRICT;
CREATE INDEX dkim_keys_by_domain ON dkim_keys (domain_id);

-- An address is unique per domain, not over all domains: a project may register a name that it cannot verify.
CREATE TABLE inboxes (
  id TEXT PRIMARY KEY,
  sender_id TEXT NOT NULL REFERENCES senders (id),
  domain_id TEXT NOT NULL REFERENCES domains (id),
  address TEXT NOT NULL,
  display_name TEXT NOT NULL DEFAULT '',
  type TEXT NOT NULL CHECK (type IN ('sending', 'agent')),
  received_count INTEGER NOT NULL DEFAULT 0,
  created_at INTEGER NOT NULL,
  UNIQUE (domain_id, address)
) STRICT;
CREATE INDEX inboxes_by_sender ON inboxes (sender_id, id);

-- unread: an inbound message has arrived since the client marked the thread as read.
-- The index by activity holds all that a search of an inbox's threads compares, so that the search reads no rows.
CREATE TABLE threads (
  id TEXT PRIMARY KEY NOT NULL,
  sender_id TEXT NOT NULL,
  inbox_id TEXT NOT NULL REFERENCES inboxes (id) ON DELETE CASCADE,
  subject TEXT NOT NULL,
  preview TEXT NOT NULL,
  participants TEXT NOT NULL DEFAULT '[]',
  message_count INTEGER NOT NULL DEFAULT 0,
  has_attachments INTEGER NOT NULL DEFAULT 0 CHECK (has_attachments IN (0, 1)),
  last_message_id TEXT,
  last_message_at INTEGER NOT NULL,
  last_inbound_at INTEGER,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  unread INTEGER NOT NULL DEFAULT 0 CHECK (unread IN (0, 1)),
  archived INTEGER NOT NULL DEFAULT 0 CHECK (archived IN (0, 1))
);
CREATE INDEX threads_by_activity ON threads
  (inbox_id, last_message_at, id, subject, participants, preview, unread, archived);
CREATE INDEX threads_by_project ON threads (sender_id, last_message_at, id, unread, archived);

-- Message-IDs that messages of an inbox name, but that no message there carries, with the thread of the first that named it.
-- If the message itself arrives later, it joins that thread (RFC 5322 §3.6.4).
CREATE TABLE thread_references (
  inbox_id TEXT NOT NULL REFERENCES inboxes (id) ON DELETE CASCADE,
  rfc_message_id TEXT NOT NULL,
  sender_id TEXT NOT NULL,
  thread_id TEXT NOT NULL,
  PRIMARY KEY (inbox_id, rfc_message_id)
) WITHOUT ROWID;
CREATE INDEX thread_references_by_thread ON thread_references (thread_id);

-- Fields for lists and pages. Bodies and raw bytes are in message_content.
-- Comparisons instead of IN lists in tables that each message writes: for a list of more than two values, SQLite builds a
-- table in memory whenever a statement checks it.
-- row_octets: what the rows of the message add to `stored_octets` of its project; its contents are counted apart.
-- content_ends: 1 until the content has gone that the send wanted to go once every recipient is final.
-- position: the place in the search index, sixteen places per millisecond since the Unix epoch. NULL until the message is indexed.
CREATE TABLE messages (
  id TEXT PRIMARY KEY NOT NULL,
  sender_id TEXT NOT NULL REFERENCES senders (id),
  direction TEXT NOT NULL CHECK (direction IN ('inbound', 'outbound')),
  status TEXT NOT NULL CHECK (
    status = 'accepted' OR status = 'queued' OR status = 'sending' OR status = 'sent' OR status = 'delivery_delayed'
    OR status = 'delivered' OR status = 'bounced' OR status = 'complained' OR status = 'rejected'
    OR status = 'rendering_failure' OR status = 'failed' OR status = 'inbound_rejected'),
  from_email TEXT NOT NULL,
  from_name TEXT,
  to_list TEXT NOT NULL,
  cc_list TEXT NOT NULL DEFAULT '[]',
  bcc_list TEXT NOT NULL DEFAULT '[]',
  reply_to_list TEXT NOT NULL DEFAULT '[]',
  subject TEXT NOT NULL,
  tags TEXT NOT NULL DEFAULT '[]',
  rfc_message_id TEXT,
  in_reply_to TEXT,
  thread_id TEXT,
  inbox_id TEXT,
  template_id TEXT,
  key_id TEXT,
  scheduled_at INTEGER,
  sent_at INTEGER,
  size INTEGER NOT NULL DEFAULT 0,
  test_mode INTEGER NOT NULL DEFAULT 0 CHECK (test_mode IN (0, 1)),
  track_opens INTEGER NOT NULL DEFAULT 0 CHECK (track_opens BETWEEN 0 AND 2),
  track_clicks INTEGER NOT NULL DEFAULT 0 CHECK (track_clicks IN (0, 1)),
  unsubscribe_link INTEGER NOT NULL DEFAULT 0 CHECK (unsubscribe_link IN (0, 1)),
  stream TEXT NOT NULL DEFAULT 'transactional' CHECK (stream IN ('transactional', 'bulk')),
  text_from_html INTEGER NOT NULL DEFAULT 0 CHECK (text_from_html IN (0, 1)),
  content_ends INTEGER NOT NULL DEFAULT 0 CHECK (content_ends IN (0, 1)),
  row_octets INTEGER NOT NULL DEFAULT 0,
  created_at INTEGER NOT NULL,
  position INTEGER
);
CREATE INDEX messages_content_ends ON messages (id) WHERE content_ends = 1;
CREATE INDEX messages_by_sender ON messages (sender_id, id);
CREATE INDEX messages_by_status ON messages (sender_id, status, id);
CREATE INDEX messages_sent ON messages (sender_id, id) WHERE direction = 'outbound';
CREATE INDEX messages_received ON messages (sender_id, status, id) WHERE direction = 'inbound';
CREATE INDEX messages_by_thread ON messages (thread_id, id) WHERE thread_id IS NOT NULL;
CREATE INDEX messages_by_rfc_id ON messages (inbox_id, rfc_message_id) WHERE inbox_id IS NOT NULL;
-- With the status, so that a search for one reads no others of the messages that it finds.
CREATE INDEX messages_by_position ON messages (position, status) WHERE position IS NOT NULL;
CREATE INDEX messages_unindexed ON messages (sender_id, id) WHERE position IS NULL;

-- body, raw: keys of contents. trace: the fields that we put in front of a message we received; raw is the rest.
-- rendered: 1 if the body is the output of a template, which every later attempt and recipient gets as well.
-- content_removed_at: when retention removed body, raw bytes and attachments; the message row stays.
CREATE TABLE message_content (
  message_id TEXT PRIMARY KEY NOT NULL REFERENCES messages (id) ON DELETE CASCADE,
  body BLOB,
  headers TEXT NOT NULL DEFAULT '{}',
  data TEXT,
  envelope TEXT,
  auth TEXT,
  rendered INTEGER NOT NULL DEFAULT 0 CHECK (rendered IN (0, 1)),
  trace TEXT,
  raw BLOB,
  content_removed_at INTEGER
);
CREATE INDEX message_content_present ON message_content (message_id) WHERE content_removed_at IS NULL;

-- content: a key of contents. If it is NULL, the part is read from the raw message, at position `ord` of the parse.
CREATE TABLE attachments (
  id TEXT PRIMARY KEY NOT NULL,
  message_id TEXT NOT NULL REFERENCES messages (id) ON DELETE CASCADE,
  ord INTEGER NOT NULL,
  filename TEXT NOT NULL,
  content_type TEXT NOT NULL,
  disposition TEXT NOT NULL CHECK (disposition IN ('attachment', 'inline')),
  content_id TEXT,
  size INTEGER NOT NULL,
  content BLOB
);
CREATE INDEX attachments_by_message ON attachments (message_id, ord);

-- Bodies, raw messages and attachments, each kept once per project; small ones of received messages once per write.
-- sender_id: the project. For captured mail, a different value made from it, which no quota counts. key: SHA-256
-- over sender_id and the SHA-256 of the bytes as they are read back. That of a small content of a received message
-- begins with the time in milliseconds (6 octets) in place of the hash's first octets. refs: how many messages and
-- attachments name it. At 0 it may be removed, one hour after created_at. created_at is renewed when the last of
-- them lets go of it. stored_in: this row, content_chunks, or in the object store under the name `object`.
CREATE TABLE contents (
  id INTEGER PRIMARY KEY,
  key BLOB NOT NULL UNIQUE,
  sender_id TEXT NOT NULL,
  refs INTEGER NOT NULL,
  size INTEGER NOT NULL,
  encoding TEXT NOT NULL CHECK (encoding IN ('plain', 'zstd')),
  stored_in TEXT NOT NULL CHECK (stored_in = 'row' OR stored_in = 'chunks' OR stored_in = 'object'),
  created_at INTEGER NOT NULL,
  object TEXT,
  bytes BLOB
);
CREATE INDEX contents_unused ON contents (created_at) WHERE refs = 0;

-- Only contents of this size are worth an object: an object for each small one would cost more than its pages.
CREATE INDEX contents_movable ON contents (id) WHERE stored_in = 'chunks' OR (stored_in = 'row' AND length(bytes) >= 16384);

-- The pieces of a large content, 256 KiB each as read. Each is encoded by itself, so that reading can stream.
CREATE TABLE content_chunks (
  key BLOB NOT NULL,
  ord INTEGER NOT NULL,
  bytes BLOB NOT NULL,
  PRIMARY KEY (key, ord)
) WITHOUT ROWID;

-- Objects that no content names: being uploaded, or (doomed) waiting to be removed from the object store.
CREATE TABLE stray_objects (
  object TEXT PRIMARY KEY,
  since INTEGER NOT NULL,
  doomed INTEGER NOT NULL DEFAULT 0 CHECK (doomed IN (0, 1))
) STRICT, WITHOUT ROWID;
CREATE INDEX stray_objects_by_age ON stray_objects (doomed, since);

-- The outbox: one row per recipient of an outbound message.
-- due_at: when a worker must look at it next; NULL while it is claimed and once it is final.
-- claimed_by: the instance that delivers it now. A settle that has lost its claim changes nothing.
-- routed_by: the From domain, if it had routes of its own when the message was accepted; the route of a released message.
-- bulk: 1 if the message's stream is bulk, so that due rows can be ordered without reading the message. One index
-- serves both the count and the sweep of what is due, in the sweep's order.
CREATE TABLE recipients (
  message_id TEXT NOT NULL REFERENCES messages (id) ON DELETE CASCADE,
  ord INTEGER NOT NULL,
  sender_id TEXT NOT NULL,
  email TEXT NOT NULL,
  domain TEXT NOT NULL,
  kind TEXT NOT NULL CHECK (kind = 'to' OR kind = 'cc' OR kind = 'bcc'),
  bulk INTEGER NOT NULL DEFAULT 0 CHECK (bulk IN (0, 1)),
  routed_by TEXT,
  status TEXT NOT NULL CHECK (
    status = 'accepted' OR status = 'queued' OR status = 'sending' OR status = 'sent' OR status = 'delivery_delayed'
    OR status = 'delivered' OR status = 'bounced' OR status = 'complained' OR status = 'rejected'
    OR status = 'rendering_failure' OR status = 'failed'),
  reason TEXT,
  attempts INTEGER NOT NULL DEFAULT 0,
  due_at INTEGER,
  claimed_by TEXT,
  first_attempt_at INTEGER,
  mx TEXT,
  tls TEXT,
  smtp_code INTEGER,
  enhanced_code TEXT,
  diagnostic TEXT,
  last_event_at INTEGER,
  PRIMARY KEY (message_id, ord)
) WITHOUT ROWID;
CREATE INDEX recipients_due ON recipients (due_at, message_id, ord, status)
  WHERE due_at IS NOT NULL AND status <> 'accepted';
-- For turns between projects, and in each between its bulk mail and the rest.
CREATE INDEX recipients_turns ON recipients (sender_id, bulk, due_at)
  WHERE due_at IS NOT NULL AND status <> 'accepted';
CREATE INDEX recipients_scheduled ON recipients (due_at) WHERE status = 'accepted';
CREATE INDEX recipients_claimed ON recipients (claimed_by) WHERE claimed_by IS NOT NULL;

-- One row per attempt at one recipient, with the SMTP transcript.
-- relay_id: the id by which events of its route's relay name the message, if the relay took it.
CREATE TABLE attempts (
  message_id TEXT NOT NULL,
  ord INTEGER NOT NULL,
  attempt INTEGER NOT NULL,
  started_at INTEGER NOT NULL,
  duration_ms INTEGER NOT NULL,
  outcome TEXT NOT NULL,
  mx TEXT,
  ip TEXT,
  tls TEXT,
  egress TEXT,
  route_id TEXT,
  relay_id TEXT,
  smtp_code INTEGER,
  enhanced_code TEXT,
  diagnostic TEXT,
  transcript TEXT,
  PRIMARY KEY (message_id, ord, attempt),
  FOREIGN KEY (message_id) REFERENCES messages (id) ON DELETE CASCADE
) WITHOUT ROWID;
CREATE INDEX attempts_by_relay_id ON attempts (relay_id, route_id) WHERE relay_id IS NOT NULL;

-- Opens and clicks of a recipient, those of machines counted apart.
-- It is a separate table so that a visit does not write the outbox row again.
CREATE TABLE engagement (
  message_id TEXT NOT NULL REFERENCES messages (id) ON DELETE CASCADE,
  ord INTEGER NOT NULL,
  opens INTEGER NOT NULL DEFAULT 0,
  machine_opens INTEGER NOT NULL DEFAULT 0,
  clicks INTEGER NOT NULL DEFAULT 0,
  machine_clicks INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (message_id, ord)
) WITHOUT ROWID;

CREATE TABLE events (
  message_id TEXT NOT NULL REFERENCES messages (id) ON DELETE CASCADE,
  id TEXT NOT NULL,
  sender_id TEXT NOT NULL,
  type TEXT NOT NULL,
  email TEXT,
  data TEXT NOT NULL DEFAULT '{}',
  created_at INTEGER NOT NULL,
  PRIMARY KEY (message_id, id)
) WITHOUT ROWID;

-- content: whether its events carry what the message says. A key without emails:read makes webhooks with 0.
-- A webhook whose log is long is marked as deleted first. The sweep removes the log in steps, then the row.
CREATE TABLE webhooks (
  id TEXT PRIMARY KEY,
  sender_id TEXT NOT NULL REFERENCES senders (id),
  url TEXT NOT NULL,
  enabled INTEGER NOT NULL DEFAULT 1 CHECK (enabled IN (0, 1)),
  event_types TEXT NOT NULL,
  dialect TEXT NOT NULL DEFAULT 'postrider' CHECK (dialect IN ('postrider', 'resend')),
  content INTEGER NOT NULL DEFAULT 1 CHECK (content IN (0, 1)),
  secret TEXT NOT NULL,
  previous_secret TEXT,
  previous_secret_until INTEGER,
  disabled_reason TEXT,
  failing_since INTEGER,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  deleted_at INTEGER
) STRICT;
CREATE INDEX webhooks_by_sender ON webhooks (sender_id, id);
CREATE INDEX webhooks_deleted ON webhooks (id) WHERE deleted_at IS NOT NULL;

-- The log and the outbox of pushes. The id is the envelope's id: it stays through every retry and replay.
-- If `data` is NULL, the payload is built from the event at each attempt. A test delivery carries its own.
CREATE TABLE webhook_deliveries (
  id TEXT PRIMARY KEY NOT NULL,
  webhook_id TEXT NOT NULL REFERENCES webhooks (id) ON DELETE CASCADE,
  sender_id TEXT NOT NULL,
  message_id TEXT,
  event_id TEXT,
  type TEXT NOT NULL,
  data TEXT,
  status TEXT NOT NULL CHECK (status = 'pending' OR status = 'succeeded' OR status = 'failed'),
  attempts INTEGER NOT NULL DEFAULT 0,
  due_at INTEGER,
  claimed_by TEXT,
  last_attempt_at INTEGER,
  last_status INTEGER,
  last_response TEXT,
  last_error TEXT,
  created_at INTEGER NOT NULL,
  -- The attempts, oldest first: a JSON list of {at, httpStatus, response, error}. NULL before the first.
  attempt_log TEXT
);
CREATE INDEX webhook_deliveries_by_webhook ON webhook_deliveries (webhook_id, id);
CREATE INDEX webhook_deliveries_due ON webhook_deliveries (due_at, id) WHERE due_at IS NOT NULL;
CREATE INDEX webhook_deliveries_claimed ON webhook_deliveries (claimed_by) WHERE claimed_by IS NOT NULL;

-- A message stays as long as a webhook still has to receive its events, and the log goes with it if it is deleted.
CREATE INDEX webhook_deliveries_by_message ON webhook_deliveries (message_id) WHERE message_id IS NOT NULL;

-- Webhook deliveries that a write has left for later because they are many: its events, the webhooks enabled then, and progress.
-- `id` is that of the first event; the first and last message bound the messages it is about.
CREATE TABLE fan_outs (
  sender_id TEXT NOT NULL,
  id TEXT NOT NULL,
  first_message TEXT NOT NULL,
  last_message TEXT NOT NULL,
  webhooks TEXT NOT NULL,
  events TEXT NOT NULL,
  done INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (sender_id, id)
) STRICT;
CREATE INDEX fan_outs_by_message ON fan_outs (sender_id, first_message, last_message);

CREATE TABLE templates (
  id TEXT PRIMARY KEY,
  sender_id TEXT NOT NULL REFERENCES senders (id),
  slug TEXT NOT NULL,
  name TEXT NOT NULL,
  subject TEXT NOT NULL,
  -- Before html and text, so that a send reads it without their pages.
  variables TEXT NOT NULL DEFAULT '[]',
  html TEXT,
  text TEXT,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  UNIQUE (sender_id, slug)
) STRICT;
CREATE INDEX templates_by_sender ON templates (sender_id, id);

-- email_key: the whole address in lower case. It identifies a contact within its project.
CREATE TABLE contacts (
  id TEXT PRIMARY KEY NOT NULL,
  sender_id TEXT NOT NULL REFERENCES senders (id),
  email TEXT NOT NULL,
  email_key TEXT NOT NULL,
  first_name TEXT,
  last_name TEXT,
  subscribed INTEGER NOT NULL DEFAULT 1 CHECK (subscribed IN (0, 1)),
  unsubscribed_at INTEGER,
  metadata TEXT NOT NULL DEFAULT '{}',
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  UNIQUE (sender_id, email_key)
);
CREATE INDEX contacts_by_sender ON contacts (sender_id, id);

CREATE TABLE suppressions (
  id TEXT PRIMARY KEY NOT NULL,
  sender_id TEXT NOT NULL REFERENCES senders (id),
  email TEXT NOT NULL,
  reason TEXT NOT NULL CHECK (reason = 'bounce' OR reason = 'complaint' OR reason = 'manual'),
  bounce_type TEXT CHECK (bounce_type IN ('hard', 'soft')),
  message_id TEXT,
  note TEXT,
  expires_at INTEGER,
  created_at INTEGER NOT NULL,
  UNIQUE (sender_id, email)
);
CREATE INDEX suppressions_by_sender ON suppressions (sender_id, id);

-- Recipients accepted per project and UTC day (YYYY-MM-DD).
CREATE TABLE usage (
  sender_id TEXT NOT NULL,
  day TEXT NOT NULL,
  recipients INTEGER NOT NULL,
  PRIMARY KEY (sender_id, day)
) WITHOUT ROWID;
CREATE INDEX usage_by_day ON usage (day);

-- Conditions of whole writes, one column for each reason. A write inserts a NULL if its condition does not hold, and is
-- undone. The table never has a row (src/store/engine/guards.ts).
CREATE TABLE guards (
  key_revoked INTEGER NOT NULL DEFAULT 0,
  webhook_deleted INTEGER NOT NULL DEFAULT 0,
  webhook_disabled INTEGER NOT NULL DEFAULT 0,
  delivery_not_replayable INTEGER NOT NULL DEFAULT 0,
  message_not_scheduled INTEGER NOT NULL DEFAULT 0,
  changed_since_read INTEGER NOT NULL DEFAULT 0,
  dkim_key_pending INTEGER NOT NULL DEFAULT 0,
  delegation_overlaps INTEGER NOT NULL DEFAULT 0,
  mx_in_the_way INTEGER NOT NULL DEFAULT 0,
  domain_not_delegated INTEGER NOT NULL DEFAULT 0,
  too_many_records INTEGER NOT NULL DEFAULT 0,
  too_many_at_name INTEGER NOT NULL DEFAULT 0,
  alias_not_alone INTEGER NOT NULL DEFAULT 0,
  record_exists INTEGER NOT NULL DEFAULT 0,
  report_taken INTEGER NOT NULL DEFAULT 0,
  too_many_reports INTEGER NOT NULL DEFAULT 0,
  dry_run INTEGER NOT NULL DEFAULT 0,
  CHECK (0)
) STRICT;

-- Outcomes per project and UTC day, for the bounce and complaint rates that suspend a project.
-- excused: bounces that are no reason to suspend, such as soft ones.
-- complainants: recipients with an authenticated complaint. `complaints` names them: each counts once in seven days.
CREATE TABLE reputation (
  sender_id TEXT NOT NULL,
  day TEXT NOT NULL,
  settled INTEGER NOT NULL DEFAULT 0,
  bounced INTEGER NOT NULL DEFAULT 0,
  excused INTEGER NOT NULL DEFAULT 0,
  complained INTEGER NOT NULL DEFAULT 0,
  complainants INTEGER NOT NULL DEFAULT 0,
  hour INTEGER,
  PRIMARY KEY (sender_id, day)
) WITHOUT ROWID;
CREATE INDEX reputation_by_day ON reputation (day);

CREATE TABLE complaints (
  sender_id TEXT NOT NULL,
  email TEXT NOT NULL,
  day TEXT NOT NULL,
  PRIMARY KEY (sender_id, email)
) WITHOUT ROWID;
CREATE INDEX complaints_by_day ON complaints (day);

-- The answer to a POST with an Idempotency-Key, kept 24 hours. scope: the id of a project or an account.
CREATE TABLE idempotency (
  scope TEXT NOT NULL,
  endpoint TEXT NOT NULL,
  key TEXT NOT NULL,
  body_hash TEXT NOT NULL,
  status INTEGER NOT NULL,
  body TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (scope, endpoint, key)
) WITHOUT ROWID;
CREATE INDEX idempotency_by_age ON idempotency (created_at);

-- MTA-STS policies of other domains (RFC 8461). They outlive the process, so that a restart never sends without TLS
-- to a domain that enforces it.
CREATE TABLE mta_sts_policies (
  domain TEXT NOT NULL PRIMARY KEY,
  policy_id TEXT NOT NULL,
  mode TEXT NOT NULL CHECK (mode IN ('enforce', 'testing', 'none')),
  mx TEXT NOT NULL,
  max_age_seconds INTEGER NOT NULL,
  fetched_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX mta_sts_policies_by_expiry ON mta_sts_policies (expires_at);

-- The search index: posting lists, and for each position where FTS5 wrote it, by which it deletes. For each term, the
-- messages that have it, newest first. The terms are ours (search-terms.ts). Each begins with its project, so that a
-- search never walks over another project's messages.
CREATE VIRTUAL TABLE message_terms USING fts5 (terms, content='', contentless_delete=1, detail=none,
  tokenize="ascii tokenchars '!#$%&()*+,-./:;<=>?@[\]^_`{|}~'");
-- Merge pieces in eights, not fours: a write costs less, and a search opens a few more pieces.
INSERT INTO message_terms (message_terms, rank) VALUES ('automerge', 8);
-- A search opens every piece of the index, so quiet moments merge any two of a size.
INSERT INTO message_terms (message_terms, rank) VALUES ('usermerge', 2);

-- Messages that are in the index with another subject.
CREATE TABLE messages_changed (
  message_id TEXT PRIMARY KEY REFERENCES messages (id) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;
CREATE TRIGGER messages_change AFTER UPDATE OF subject ON messages
WHEN NEW.subject <> OLD.subject AND NEW.position IS NOT NULL
BEGIN
  INSERT INTO messages_changed (message_id) VALUES (NEW.id) ON CONFLICT DO NOTHING;
END;

-- Figures of a project, counted by triggers in the write that makes them true. They outlive the messages.
-- hour: hours since the Unix epoch, UTC. Figures count recipients. `settled…` are what reputation counts, for the rates.
CREATE TABLE stats (
  sender_id TEXT NOT NULL,
  hour INTEGER NOT NULL,
  accepted INTEGER NOT NULL DEFAULT 0,
  sent INTEGER NOT NULL DEFAULT 0,
  delivered INTEGER NOT NULL DEFAULT 0,
  delayed INTEGER NOT NULL DEFAULT 0,
  bounced INTEGER NOT NULL DEFAULT 0,
  complained INTEGER NOT NULL DEFAULT 0,
  rejected INTEGER NOT NULL DEFAULT 0,
  failed INTEGER NOT NULL DEFAULT 0,
  opened INTEGER NOT NULL DEFAULT 0,
  clicked INTEGER NOT NULL DEFAULT 0,
  received INTEGER NOT NULL DEFAULT 0,
  settled INTEGER NOT NULL DEFAULT 0,
  settled_bounced INTEGER NOT NULL DEFAULT 0,
  settled_complained INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (sender_id, hour)
) WITHOUT ROWID;

-- By UTC day (days since the Unix epoch) and domain. outcome: -1 delayed, -2 bounced, else delivered within that many
-- milliseconds of acceptance or the scheduled time, one of `stats_steps`.
-- A project has at most 1000 domains a day and the rest is 'other': a million made-up domains must not fill the disk.
CREATE TABLE stats_destinations (
  sender_id TEXT NOT NULL,
  day INTEGER NOT NULL,
  domain TEXT NOT NULL,
  outcome INTEGER NOT NULL,
  count INTEGER NOT NULL,
  PRIMARY KEY (sender_id, day, domain, outcome)
) WITHOUT ROWID;

-- By UTC day and provider (`flows/lanes/providers`), so that a sender sees which one is annoyed.
CREATE TABLE stats_providers (
  sender_id TEXT NOT NULL,
  day INTEGER NOT NULL,
  provider TEXT NOT NULL,
  delivered INTEGER NOT NULL DEFAULT 0,
  delayed INTEGER NOT NULL DEFAULT 0,
  bounced INTEGER NOT NULL DEFAULT 0,
  complained INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (sender_id, day, provider)
) WITHOUT ROWID;
CREATE INDEX stats_providers_by_day ON stats_providers (day);

-- How many domains of a day have separate rows.
CREATE TABLE stats_domains (
  sender_id TEXT NOT NULL,
  day INTEGER NOT NULL,
  domains INTEGER NOT NULL,
  PRIMARY KEY (sender_id, day)
) STRICT, WITHOUT ROWID;

-- Each step is a fifth more than the one before, up to a year: longer than a message is tried for.
CREATE TABLE stats_steps (ms INTEGER PRIMARY KEY) STRICT;
INSERT INTO stats_steps (ms)
  WITH RECURSIVE step (ms) AS (SELECT 10 UNION ALL SELECT (ms * 6 + 4) / 5 FROM step WHERE ms < 31622400000)
  SELECT ms FROM step;

-- Triggers are on recipients rather than events: SQLite copies each page that a statement with a trigger touches,
-- and there are more events.
CREATE TRIGGER stats_accepted AFTER INSERT ON recipients
WHEN NEW.last_event_at IS NOT NULL
BEGIN
  INSERT INTO stats (sender_id, hour, accepted, rejected)
  VALUES (NEW.sender_id, NEW.last_event_at / 3600000, 1, NEW.status = 'rejected')
  ON CONFLICT (sender_id, hour) DO UPDATE SET accepted = accepted + 1, rejected = rejected + excluded.rejected;
END;

-- A simulated complaint is delivered and complained about in one step.
CREATE TRIGGER stats_outcome AFTER UPDATE OF status ON recipients
WHEN NEW.status <> OLD.status AND NEW.status <> 'accepted' AND NEW.status <> 'queued' AND NEW.status <> 'sending'
  AND NEW.last_event_at IS NOT NULL
BEGIN
  INSERT INTO stats (sender_id, hour, sent, delivered, delayed, bounced, complained, rejected, failed)
  VALUES (NEW.sender_id, NEW.last_event_at / 3600000, NEW.status = 'sent',
    NEW.status = 'delivered' OR NEW.status = 'complained' AND (OLD.status = 'sending' OR OLD.status = 'queued'),
    NEW.status = 'delivery_delayed', NEW.status = 'bounced', NEW.status = 'complained', NEW.status = 'rejected',
    NEW.status = 'failed' OR NEW.status = 'rendering_failure')
  ON CONFLICT (sender_id, hour) DO UPDATE SET sent = sent + excluded.sent, delivered = delivered + excluded.delivered,
    delayed = delayed + excluded.delayed, bounced = bounced + excluded.bounced,
    complained = complained + excluded.complained, rejected = rejected + excluded.rejected,
    failed = failed + excluded.failed;
  INSERT INTO stats_destinations (sender_id, day, domain, outcome, count)
  SELECT NEW.sender_id, NEW.last_event_at / 86400000,
    CASE WHEN (SELECT domains FROM stats_domains
          WHERE sender_id = NEW.sender_id AND day = NEW.last_event_at / 86400000) >= 1000
        AND NOT EXISTS (SELECT 1 FROM stats_destinations
          WHERE sender_id = NEW.sender_id AND day = NEW.last_event_at / 86400000 AND domain = NEW.domain)
      THEN 'other' ELSE NEW.domain END,
    CASE NEW.status WHEN 'delivery_delayed' THEN -1 WHEN 'bounced' THEN -2 ELSE
      COALESCE((SELECT ms FROM stats_steps
          WHERE ms >= NEW.last_event_at - COALESCE(m.scheduled_at, m.created_at) ORDER BY ms LIMIT 1),
        (SELECT MAX(ms) FROM stats_steps)) END,
    1
  FROM messages m WHERE m.id = NEW.message_id AND (NEW.status = 'delivered' OR NEW.status = 'delivery_delayed'
    OR NEW.status = 'bounced' OR NEW.status = 'complained' AND (OLD.status = 'sending' OR OLD.status = 'queued'))
  ON CONFLICT (sender_id, day, domain, outcome) DO UPDATE SET count = count + 1;
END;
CREATE TRIGGER stats_domain AFTER INSERT ON stats_destinations
WHEN NOT EXISTS (SELECT 1 FROM stats_destinations
  WHERE sender_id = NEW.sender_id AND day = NEW.day AND domain = NEW.domain AND outcome <> NEW.outcome)
BEGIN
  INSERT INTO stats_domains (sender_id, day, domains) VALUES (NEW.sender_id, NEW.day, 1)
  ON CONFLICT (sender_id, day) DO UPDATE SET domains = domains + 1;
  DELETE FROM stats_destinations WHERE sender_id = NEW.sender_id AND (day, domain, outcome) IN (
    SELECT day, domain, outcome FROM stats_destinations
    WHERE sender_id = NEW.sender_id AND day < NEW.day - 400 LIMIT 200);
END;

CREATE TRIGGER stats_event AFTER INSERT ON events
WHEN NEW.type = 'inbound_received'
  OR NEW.type IN ('open', 'click') AND json_extract(NEW.data, '$.' || NEW.type || '.machine') = 0
    AND NOT EXISTS (SELECT 1 FROM recipients r JOIN engagement e ON e.message_id = r.message_id AND e.ord = r.ord
      WHERE r.message_id = NEW.message_id AND r.email = NEW.email
        AND CASE NEW.type WHEN 'open' THEN e.opens ELSE e.clicks END > 0)
BEGIN
  INSERT INTO stats (sender_id, hour, opened, clicked, received)
  VALUES (NEW.sender_id, NEW.created_at / 3600000, NEW.type = 'open', NEW.type = 'click', NEW.type = 'inbound_received')
  ON CONFLICT (sender_id, hour) DO UPDATE SET opened = opened + excluded.opened, clicked = clicked + excluded.clicked,
    received = received + excluded.received;
END;

CREATE TRIGGER stats_settled AFTER UPDATE ON reputation
WHEN NEW.hour IS NOT NULL
BEGIN
  INSERT INTO stats (sender_id, hour, settled, settled_bounced, settled_complained)
  VALUES (NEW.sender_id, NEW.hour, NEW.settled - OLD.settled, NEW.bounced - OLD.bounced,
    NEW.complained - OLD.complained)
  ON CONFLICT (sender_id, hour) DO UPDATE SET settled = settled + excluded.settled,
    settled_bounced = settled_bounced + excluded.settled_bounced,
    settled_complained = settled_complained + excluded.settled_complained;
END;
CREATE TRIGGER stats_settled_first AFTER INSERT ON reputation
WHEN NEW.hour IS NOT NULL
BEGIN
  INSERT INTO stats (sender_id, hour, settled, settled_bounced, settled_complained)
  VALUES (NEW.sender_id, NEW.hour, NEW.settled, NEW.bounced, NEW.complained)
  ON CONFLICT (sender_id, hour) DO UPDATE SET settled = settled + excluded.settled,
    settled_bounced = settled_bounced + excluded.settled_bounced,
    settled_complained = settled_complained + excluded.settled_complained;
END;

-- Holdings of each project and account: all that a quota limits. Triggers count it in the write that makes it true.
-- owner_id: the id of a project or an account.
-- stored_octets: each content once, uncompressed; the strings of rows; and a flat number of octets per row for the
-- rest of it. octets_before: for a write that changes rows, the stored octets before it. bound: never stored; a
-- write compares with it.
CREATE TABLE holdings (
  owner_id TEXT PRIMARY KEY,
  stored_octets INTEGER NOT NULL DEFAULT 0,
  templates INTEGER NOT NULL DEFAULT 0,
  webhooks INTEGER NOT NULL DEFAULT 0,
  inboxes INTEGER NOT NULL DEFAULT 0,
  domains INTEGER NOT NULL DEFAULT 0,
  api_keys INTEGER NOT NULL DEFAULT 0,
  contacts INTEGER NOT NULL DEFAULT 0,
  suppressions INTEGER NOT NULL DEFAULT 0,
  octets_before INTEGER NOT NULL DEFAULT 0,
  bound INTEGER
) STRICT, WITHOUT ROWID;

CREATE TRIGGER holdings_sender AFTER INSERT ON senders
BEGIN
  INSERT INTO holdings (owner_id) VALUES (NEW.id) ON CONFLICT DO NOTHING;
END;

CREATE TRIGGER holdings_account AFTER INSERT ON accounts
BEGIN
  INSERT INTO holdings (owner_id) VALUES (NEW.id) ON CONFLICT DO NOTHING;
END;

CREATE TRIGGER holdings_contents_insert AFTER INSERT ON contents
BEGIN
  UPDATE holdings SET stored_octets = stored_octets + 256 + NEW.size WHERE owner_id = NEW.sender_id;
END;

CREATE TRIGGER holdings_contents_delete AFTER DELETE ON contents
BEGIN
  UPDATE holdings SET stored_octets = stored_octets - 256 - OLD.size WHERE owner_id = OLD.sender_id;
END;

CREATE TRIGGER holdings_messages_insert AFTER INSERT ON messages
BEGIN
  UPDATE holdings SET stored_octets = stored_octets + NEW.row_octets WHERE owner_id = NEW.sender_id;
END;

CREATE TRIGGER holdings_messages_update AFTER UPDATE OF row_octets ON messages
BEGIN
  UPDATE holdings SET stored_octets = stored_octets + NEW.row_octets - OLD.row_octets WHERE owner_id = NEW.sender_id;
END;

CREATE TRIGGER holdings_messages_delete AFTER DELETE ON messages
BEGIN
  UPDATE holdings SET stored_octets = stored_octets - OLD.row_octets WHERE owner_id = OLD.sender_id;
END;

-- An attempt counts with its message, which is deleted first. A peer writes the transcript, and the diagnostic, which its recipient
-- and event have as well.
CREATE TRIGGER holdings_attempts_insert AFTER INSERT ON attempts
BEGIN
  UPDATE messages SET row_octets = row_octets
    + 256 + octet_length(COALESCE(NEW.transcript, '')) + 3 * octet_length(COALESCE(NEW.diagnostic, ''))
    WHERE id = NEW.message_id AND (direction = 'inbound' OR test_mode = 0);
END;

CREATE TRIGGER holdings_events_insert AFTER INSERT ON events
WHEN NEW.type IN ('open', 'click')
BEGIN
  UPDATE holdings SET stored_octets = stored_octets + 512 + octet_length(NEW.data) WHERE owner_id = NEW.sender_id;
END;

CREATE TRIGGER holdings_events_delete AFTER DELETE ON events
WHEN OLD.type IN ('open', 'click')
BEGIN
  UPDATE holdings SET stored_octets = stored_octets - 512 - octet_length(OLD.data) WHERE owner_id = OLD.sender_id;
END;

CREATE TRIGGER holdings_deliveries_insert AFTER INSERT ON webhook_deliveries
BEGIN
  UPDATE holdings SET stored_octets = stored_octets + 512 + octet_length(COALESCE(NEW.data, ''))
    + octet_length(COALESCE(NEW.last_response, '')) + octet_length(COALESCE(NEW.last_error, ''))
    + octet_length(COALESCE(NEW.attempt_log, '')) WHERE owner_id = NEW.sender_id;
END;

CREATE TRIGGER holdings_deliveries_update AFTER UPDATE OF last_response, last_error, attempt_log ON webhook_deliveries
WHEN NEW.last_response IS NOT OLD.last_response OR NEW.last_error IS NOT OLD.last_error
  OR NEW.attempt_log IS NOT OLD.attempt_log
BEGIN
  UPDATE holdings SET stored_octets = stored_octets
    + octet_length(COALESCE(NEW.last_response, '')) + octet_length(COALESCE(NEW.last_error, ''))
    + octet_length(COALESCE(NEW.attempt_log, ''))
    - octet_length(COALESCE(OLD.last_response, '')) - octet_length(COALESCE(OLD.last_error, ''))
    - octet_length(COALESCE(OLD.attempt_log, ''))
    WHERE owner_id = NEW.sender_id;
END;

CREATE TRIGGER holdings_deliveries_delete AFTER DELETE ON webhook_deliveries
BEGIN
  UPDATE holdings SET stored_octets = stored_octets - 512 - octet_length(COALESCE(OLD.data, ''))
    - octet_length(COALESCE(OLD.last_response, '')) - octet_length(COALESCE(OLD.last_error, ''))
    - octet_length(COALESCE(OLD.attempt_log, ''))
    WHERE owner_id = OLD.sender_id;
END;

CREATE TRIGGER holdings_idempotency_insert AFTER INSERT ON idempotency
BEGIN
  UPDATE holdings SET stored_octets = stored_octets
    + 256 + octet_length(NEW.endpoint) + octet_length(NEW.key) + octet_length(NEW.body) WHERE owner_id = NEW.scope;
END;

CREATE TRIGGER holdings_idempotency_update AFTER UPDATE OF body ON idempotency
BEGIN
  UPDATE holdings SET stored_octets = stored_octets + octet_length(NEW.body) - octet_length(OLD.body)
    WHERE owner_id = NEW.scope;
END;

CREATE TRIGGER holdings_idempotency_delete AFTER DELETE ON idempotency
BEGIN
  UPDATE holdings SET stored_octets = stored_octets
    - 256 - octet_length(OLD.endpoint) - octet_length(OLD.key) - octet_length(OLD.body) WHERE owner_id = OLD.scope;
END;

CREATE TRIGGER holdings_templates_insert AFTER INSERT ON templates
BEGIN
  UPDATE holdings SET templates = templates + 1, stored_octets = stored_octets
    + 512 + octet_length(NEW.name) + octet_length(NEW.subject) + octet_length(COALESCE(NEW.html, ''))
    + octet_length(COALESCE(NEW.text, '')) + octet_length(NEW.variables) WHERE owner_id = NEW.sender_id;
END;

CREATE TRIGGER holdings_templates_update AFTER UPDATE OF name, subject, html, text, variables ON templates
BEGIN
  UPDATE holdings SET stored_octets = stored_octets
    + octet_length(NEW.name) + octet_length(NEW.subject) + octet_length(COALESCE(NEW.html, ''))
    + octet_length(COALESCE(NEW.text, '')) + octet_length(NEW.variables)
    - octet_length(OLD.name) - octet_length(OLD.subject) - octet_length(COALESCE(OLD.html, ''))
    - octet_length(COALESCE(OLD.text, '')) - octet_length(OLD.variables) WHERE owner_id = NEW.sender_id;
END;

CREATE TRIGGER holdings_templates_delete AFTER DELETE ON templates
BEGIN
  UPDATE holdings SET templates = templates - 1, stored_octets = stored_octets
    - 512 - octet_length(OLD.name) - octet_length(OLD.subject) - octet_length(COALESCE(OLD.html, ''))
    - octet_length(COALESCE(OLD.text, '')) - octet_length(OLD.variables) WHERE owner_id = OLD.sender_id;
END;

CREATE TRIGGER holdings_webhooks_insert AFTER INSERT ON webhooks
BEGIN
  UPDATE holdings SET webhooks = webhooks + 1,
    stored_octets = stored_octets + 512 + octet_length(NEW.url) + octet_length(NEW.event_types)
    WHERE owner_id = NEW.sender_id;
END;

CREATE TRIGGER holdings_webhooks_update AFTER UPDATE OF url, event_types, deleted_at ON webhooks
BEGIN
  UPDATE holdings SET webhooks = webhooks + (NEW.deleted_at IS NULL) - (OLD.deleted_at IS NULL),
    stored_octets = stored_octets + octet_length(NEW.url) + octet_length(NEW.event_types)
      - octet_length(OLD.url) - octet_length(OLD.event_types)
    WHERE owner_id = NEW.sender_id;
END;

CREATE TRIGGER holdings_webhooks_delete AFTER DELETE ON webhooks
BEGIN
  UPDATE holdings SET webhooks = webhooks - (OLD.deleted_at IS NULL),
    stored_octets = stored_octets - 512 - octet_length(OLD.url) - octet_length(OLD.event_types)
    WHERE owner_id = OLD.sender_id;
END;

-- An inbox whose address is its id is on its way out.
CREATE TRIGGER holdings_inboxes_insert AFTER INSERT ON inboxes
BEGIN
  UPDATE holdings SET inboxes = inboxes + (NEW.address <> NEW.id),
    stored_octets = stored_octets + 512 + octet_length(NEW.display_name) WHERE owner_id = NEW.sender_id;
END;

CREATE TRIGGER holdings_inboxes_update AFTER UPDATE OF address, display_name ON inboxes
BEGIN
  UPDATE holdings SET inboxes = inboxes + (NEW.address <> NEW.id) - (OLD.address <> OLD.id),
    stored_octets = stored_octets + octet_length(NEW.display_name) - octet_length(OLD.display_name)
    WHERE owner_id = NEW.sender_id;
END;

CREATE TRIGGER holdings_inboxes_delete AFTER DELETE ON inboxes
BEGIN
  UPDATE holdings SET inboxes = inboxes - (OLD.address <> OLD.id),
    stored_octets = stored_octets - 512 - octet_length(OLD.display_name) WHERE owner_id = OLD.sender_id;
END;

CREATE TRIGGER holdings_domains_insert AFTER INSERT ON domains
BEGIN
  UPDATE holdings SET domains = domains + 1, stored_octets = stored_octets + 4096 WHERE owner_id = NEW.sender_id;
END;

CREATE TRIGGER holdings_domains_delete AFTER DELETE ON domains
BEGIN
  UPDATE holdings SET domains = domains - 1, stored_octets = stored_octets - 4096 WHERE owner_id = OLD.sender_id;
END;

CREATE TRIGGER holdings_records_insert AFTER INSERT ON domain_records
BEGIN
  UPDATE holdings SET stored_octets = stored_octets + 512 + octet_length(NEW.name) + octet_length(NEW.value)
    WHERE owner_id = NEW.sender_id;
END;

CREATE TRIGGER holdings_records_delete AFTER DELETE ON domain_records
BEGIN
  UPDATE holdings SET stored_octets = stored_octets - 512 - octet_length(OLD.name) - octet_length(OLD.value)
    WHERE owner_id = OLD.sender_id;
END;

CREATE TRIGGER holdings_keys_insert AFTER INSERT ON api_keys
BEGIN
  UPDATE holdings SET api_keys = api_keys + (NEW.revoked_at IS NULL), stored_octets = stored_octets + 512
    WHERE owner_id = COALESCE(NEW.sender_id, NEW.account_id);
END;

CREATE TRIGGER holdings_keys_update AFTER UPDATE OF revoked_at ON api_keys
BEGIN
  UPDATE holdings SET api_keys = api_keys + (NEW.revoked_at IS NULL) - (OLD.revoked_at IS NULL)
    WHERE owner_id = COALESCE(NEW.sender_id, NEW.account_id);
END;

CREATE TRIGGER holdings_keys_delete AFTER DELETE ON api_keys
BEGIN
  UPDATE holdings SET api_keys = api_keys - (OLD.revoked_at IS NULL), stored_octets = stored_octets - 512
    WHERE owner_id = COALESCE(OLD.sender_id, OLD.account_id);
END;

CREATE TRIGGER holdings_contacts_insert AFTER INSERT ON contacts
BEGIN
  UPDATE holdings SET contacts = contacts + 1, stored_octets = stored_octets
    + 512 + octet_length(NEW.email) + octet_length(COALESCE(NEW.first_name, ''))
    + octet_length(COALESCE(NEW.last_name, '')) + octet_length(NEW.metadata) WHERE owner_id = NEW.sender_id;
END;

CREATE TRIGGER holdings_contacts_update AFTER UPDATE OF first_name, last_name, metadata ON contacts
BEGIN
  UPDATE holdings SET stored_octets = stored_octets
    + octet_length(COALESCE(NEW.first_name, '')) + octet_length(COALESCE(NEW.last_name, '')) + octet_length(NEW.metadata)
    - octet_length(COALESCE(OLD.first_name, '')) - octet_length(COALESCE(OLD.last_name, '')) - octet_length(OLD.metadata)
    WHERE owner_id = NEW.sender_id;
END;

CREATE TRIGGER holdings_contacts_delete AFTER DELETE ON contacts
BEGIN
  UPDATE holdings SET contacts = contacts - 1, stored_octets = stored_octets
    - 512 - octet_length(OLD.email) - octet_length(COALESCE(OLD.first_name, ''))
    - octet_length(COALESCE(OLD.last_name, '')) - octet_length(OLD.metadata) WHERE owner_id = OLD.sender_id;
END;

CREATE TRIGGER holdings_suppressions_insert AFTER INSERT ON suppressions
BEGIN
  UPDATE holdings SET suppressions = suppressions + 1,
    stored_octets = stored_octets + 512 + octet_length(COALESCE(NEW.note, '')) WHERE owner_id = NEW.sender_id;
END;

CREATE TRIGGER holdings_suppressions_update AFTER UPDATE OF note ON suppressions
BEGIN
  UPDATE holdings SET stored_octets = stored_octets
    + octet_length(COALESCE(NEW.note, '')) - octet_length(COALESCE(OLD.note, '')) WHERE owner_id = NEW.sender_id;
END;

CREATE TRIGGER holdings_suppressions_delete AFTER DELETE ON suppressions
BEGIN
  UPDATE holdings SET suppressions = suppressions - 1,
    stored_octets = stored_octets - 512 - octet_length(COALESCE(OLD.note, '')) WHERE owner_id = OLD.sender_id;
END;

-- Counts the changes of configuration, by any process and any statement. One row tells whether cached configuration
-- still holds. The count of received messages in `inboxes` is not configuration.
CREATE TABLE configuration_version (
  only INTEGER PRIMARY KEY CHECK (only = 1),
  value INTEGER NOT NULL
) STRICT;
INSERT INTO configuration_version (only, value) VALUES (1, 0);

CREATE TRIGGER configuration_accounts_delete AFTER DELETE ON accounts
BEGIN
  UPDATE configuration_version SET value = value + 1;
END;

CREATE TRIGGER configuration_accounts_insert AFTER INSERT ON accounts
BEGIN
  UPDATE configuration_version SET value = value + 1;
END;

CREATE TRIGGER configuration_accounts_update AFTER UPDATE ON accounts
BEGIN
  UPDATE configuration_version SET value = value + 1;
END;

CREATE TRIGGER configuration_api_keys_delete AFTER DELETE ON api_keys
BEGIN
  UPDATE configuration_version SET value = value + 1;
END;

CREATE TRIGGER configuration_api_keys_insert AFTER INSERT ON api_keys
BEGIN
  UPDATE configuration_version SET value = value + 1;
END;

CREATE TRIGGER configuration_api_keys_update AFTER UPDATE ON api_keys
BEGIN
  UPDATE configuration_version SET value = value + 1;
END;

CREATE TRIGGER configuration_dkim_keys_delete AFTER DELETE ON dkim_keys
BEGIN
  UPDATE configuration_version SET value = value + 1;
END;

CREATE TRIGGER configuration_dkim_keys_insert AFTER INSERT ON dkim_keys
BEGIN
  UPDATE configuration_version SET value = value + 1;
END;

CREATE TRIGGER configuration_dkim_keys_update AFTER UPDATE ON dkim_keys
BEGIN
  UPDATE configuration_version SET value = value + 1;
END;

CREATE TRIGGER configuration_domains_delete AFTER DELETE ON domains
BEGIN
  UPDATE configuration_version SET value = value + 1;
END;

CREATE TRIGGER configuration_domains_insert AFTER INSERT ON domains
BEGIN
  UPDATE configuration_version SET value = value + 1;
END;

CREATE TRIGGER configuration_domains_update AFTER UPDATE ON domains
BEGIN
  UPDATE configuration_version SET value = value + 1;
END;

CREATE TRIGGER configuration_inboxes_delete AFTER DELETE ON inboxes
BEGIN
  UPDATE configuration_version SET value = value + 1;
END;

CREATE TRIGGER configuration_inboxes_insert AFTER INSERT ON inboxes
BEGIN
  UPDATE configuration_version SET value = value + 1;
END;

CREATE TRIGGER configuration_inboxes_update AFTER UPDATE OF id, sender_id, domain_id, address, display_name, type, created_at ON inboxes
BEGIN
  UPDATE configuration_version SET value = value + 1;
END;

CREATE TRIGGER configuration_routes_delete AFTER DELETE ON routes
BEGIN
  UPDATE configuration_version SET value = value + 1;
END;

CREATE TRIGGER configuration_routes_insert AFTER INSERT ON routes
BEGIN
  UPDATE configuration_version SET value = value + 1;
END;

CREATE TRIGGER configuration_routes_update AFTER UPDATE ON routes
BEGIN
  UPDATE configuration_version SET value = value + 1;
END;

CREATE TRIGGER configuration_senders_delete AFTER DELETE ON senders
BEGIN
  UPDATE configuration_version SET value = value + 1;
END;

CREATE TRIGGER configuration_senders_insert AFTER INSERT ON senders
BEGIN
  UPDATE configuration_version SET value = value + 1;
END;

CREATE TRIGGER configuration_senders_update AFTER UPDATE ON senders
BEGIN
  UPDATE configuration_version SET value = value + 1;
END;

CREATE TRIGGER configuration_webhooks_delete AFTER DELETE ON webhooks
BEGIN
  UPDATE configuration_version SET value = value + 1;
END;

CREATE TRIGGER configuration_webhooks_insert AFTER INSERT ON webhooks
BEGIN
  UPDATE configuration_version SET value = value + 1;
END;

CREATE TRIGGER configuration_webhooks_update AFTER UPDATE ON webhooks
BEGIN
  UPDATE configuration_version SET value = value + 1;
END;

-- Tokens of links that sign a browser in once. Only the hash is kept. expires_at: milliseconds.
CREATE TABLE start_tokens (
  token_hash TEXT PRIMARY KEY,
  key_id TEXT NOT NULL REFERENCES api_keys (id),
  expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Accounts at certificate authorities (RFC 8555 §7.1.2), one for each directory. The key is sealed.
CREATE TABLE acme_accounts (
  directory TEXT PRIMARY KEY,
  private_key TEXT NOT NULL,
  -- NULL until the CA has registered the key.
  url TEXT,
  contact TEXT NOT NULL,
  -- JSON: the names by which CAA records let the CA issue.
  caa_names TEXT NOT NULL DEFAULT '[]',
  created_at INTEGER NOT NULL
) STRICT;

-- Certificates that we get and renew. Both keys are sealed. `directory` and `names` are those of the next order.
CREATE TABLE certificates (
  id TEXT PRIMARY KEY,
  -- The delegated domain whose hosts it is for, which is also its id; NULL: the service's own.
  domain_id TEXT REFERENCES domains (id) ON DELETE CASCADE,
  directory TEXT NOT NULL,
  -- JSON.
  names TEXT NOT NULL,
  -- PEM; NULL until the first one is issued.
  chain TEXT,
  private_key TEXT,
  issued_at INTEGER,
  not_after INTEGER,
  -- When every process uses a certificate with this key. A renewal with the same key keeps it. NULL if there is no chain.
  served_from INTEGER,
  renew_at INTEGER,
  -- The pending order.
  order_url TEXT,
  order_key TEXT,
  order_at INTEGER,
  due_at INTEGER NOT NULL,
  failures INTEGER NOT NULL DEFAULT 0,
  last_error TEXT,
  last_error_at INTEGER,
  CHECK ((chain IS NULL) = (private_key IS NULL)),
  CHECK ((chain IS NULL) = (issued_at IS NULL)),
  CHECK ((chain IS NULL) = (not_after IS NULL)),
  CHECK ((order_url IS NULL) = (order_at IS NULL))
) STRICT;
CREATE INDEX certificates_by_due ON certificates (due_at);
CREATE INDEX certificates_by_domain ON certificates (domain_id, issued_at) WHERE domain_id IS NOT NULL;

-- The latest orders of certificates for domains, by which the installation stays within the limits of its CA.
CREATE TABLE domain_orders (
  sender_id TEXT NOT NULL,
  begun_at INTEGER NOT NULL
) STRICT;
CREATE INDEX domain_orders_by_time ON domain_orders (begun_at, sender_id);

-- TXT records that answer the dns-01 challenges of an order (RFC 8555 §8.4).
CREATE TABLE acme_challenges (
  name TEXT NOT NULL,
  value TEXT NOT NULL,
  certificate_id TEXT NOT NULL REFERENCES certificates (id) ON DELETE CASCADE,
  published_at INTEGER NOT NULL,
  PRIMARY KEY (name, value)
) STRICT;
CREATE INDEX acme_challenges_by_certificate ON acme_challenges (certificate_id);

-- Zones that our name server holds, and their versions for secondaries. `own`: the service's zone. `serial` is 0 until a
-- version was made. `digest` is of the records of that version. due_at: when the records are read and compared again;
-- 0: they may have changed.
CREATE TABLE zones (
  name TEXT PRIMARY KEY,
  own INTEGER NOT NULL DEFAULT 0 CHECK (own IN (0, 1)),
  serial INTEGER NOT NULL DEFAULT 0,
  digest TEXT NOT NULL DEFAULT '',
  due_at INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX zones_by_due ON zones (due_at);
CREATE INDEX zones_own ON zones (own) WHERE own = 1;

-- NOTIFY messages that a secondary has not acknowledged. secondary: its address and port.
CREATE TABLE zone_notices (
  zone TEXT NOT NULL REFERENCES zones (name) ON DELETE CASCADE,
  secondary TEXT NOT NULL,
  due_at INTEGER NOT NULL,
  tries INTEGER NOT NULL DEFAULT 0,
  last_error TEXT,
  PRIMARY KEY (zone, secondary)
) STRICT;
CREATE INDEX zone_notices_by_due ON zone_notices (due_at);

CREATE TRIGGER zones_domain_insert AFTER INSERT ON domains WHEN NEW.served = 1
BEGIN
  INSERT INTO zones (name) VALUES (NEW.name) ON CONFLICT DO NOTHING;
END;
CREATE TRIGGER zones_domain_serve AFTER UPDATE OF served ON domains WHEN NEW.served = 1
BEGIN
  INSERT INTO zones (name) VALUES (NEW.name) ON CONFLICT DO NOTHING;
END;
-- No host of a name that is another's may keep a certificate.
CREATE TRIGGER zones_domain_end AFTER UPDATE OF served ON domains WHEN NEW.served = 0 AND OLD.served = 1
BEGIN
  DELETE FROM zones WHERE name = OLD.name;
  DELETE FROM certificates WHERE domain_id = OLD.id;
END;
CREATE TRIGGER zones_domain_delete AFTER DELETE ON domains WHEN OLD.served = 1
BEGIN
  DELETE FROM zones WHERE name = OLD.name;
END;
CREATE TRIGGER zones_domain_receiving AFTER UPDATE OF receiving, dmarc_policy ON domains WHEN NEW.served = 1
BEGIN
  UPDATE zones SET due_at = 0 WHERE name = NEW.name;
END;
CREATE TRIGGER zones_record_insert AFTER INSERT ON domain_records
BEGIN
  UPDATE zones SET due_at = 0 WHERE name = (SELECT name FROM domains WHERE id = NEW.domain_id);
END;
CREATE TRIGGER zones_record_delete AFTER DELETE ON domain_records
BEGIN
  UPDATE zones SET due_at = 0 WHERE name = (SELECT name FROM domains WHERE id = OLD.domain_id);
END;
-- A key is in the service's zone and, under another name, in the zone of its domain.
CREATE TRIGGER zones_key_insert AFTER INSERT ON dkim_keys
BEGIN
  UPDATE zones SET due_at = 0 WHERE own = 1;
  UPDATE zones SET due_at = 0 WHERE name = (SELECT name FROM domains WHERE id = NEW.domain_id);
END;
CREATE TRIGGER zones_key_update AFTER UPDATE ON dkim_keys
BEGIN
  UPDATE zones SET due_at = 0 WHERE own = 1;
  UPDATE zones SET due_at = 0 WHERE name = (SELECT name FROM domains WHERE id = NEW.domain_id);
END;
CREATE TRIGGER zones_key_delete AFTER DELETE ON dkim_keys
BEGIN
  UPDATE zones SET due_at = 0 WHERE own = 1;
END;
-- These change the zones that hold their names.
CREATE TRIGGER zones_challenge_insert AFTER INSERT ON acme_challenges
BEGIN
  UPDATE zones SET due_at = 0 WHERE substr(NEW.name, -length(name) - 1) = '.' || name;
END;
CREATE TRIGGER zones_challenge_delete AFTER DELETE ON acme_challenges
BEGIN
  UPDATE zones SET due_at = 0 WHERE substr(OLD.name, -length(name) - 1) = '.' || name;
END;
CREATE TRIGGER zones_certificate AFTER UPDATE OF chain, order_key ON certificates
WHEN NEW.chain IS NOT OLD.chain OR NEW.order_key IS NOT OLD.order_key
BEGIN
  UPDATE zones SET due_at = 0
  WHERE EXISTS (SELECT 1 FROM json_each(NEW.names) WHERE substr('.' || value, -length(zones.name) - 1) = '.' || zones.name);
END;
-- CAA records are in every zone.
CREATE TRIGGER zones_account_update AFTER UPDATE OF caa_names ON acme_accounts WHEN NEW.caa_names IS NOT OLD.caa_names
BEGIN
  UPDATE zones SET due_at = 0;
END;
CREATE TRIGGER zones_account_delete AFTER DELETE ON acme_accounts
BEGIN
  UPDATE zones SET due_at = 0;
END;

-- Projects whose events clients may follow: by an open stream or a waiting request, or by one that ended within the
-- time in which a client may resume. Only their events are logged, so that other projects pay nothing for it.
-- until: time in milliseconds after which a chore removes the row.
CREATE TABLE watched_projects (
  sender_id TEXT PRIMARY KEY,
  until INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- The newest events of watched projects in the order of their commits, which is not the order of their ids: processes and
-- requests make ids before they write. A number is never used twice, because the newest row is never removed.
CREATE TABLE event_log (
  seq INTEGER PRIMARY KEY,
  sender_id TEXT NOT NULL,
  message_id TEXT NOT NULL,
  event_id TEXT NOT NULL,
  created_at INTEGER NOT NULL
) STRICT;
CREATE INDEX event_log_by_sender ON event_log (sender_id);
CREATE INDEX event_log_by_event ON event_log (event_id);

CREATE TRIGGER event_log_event AFTER INSERT ON events
WHEN EXISTS (SELECT 1 FROM watched_projects WHERE sender_id = NEW.sender_id)
BEGIN
  INSERT INTO event_log (sender_id, message_id, event_id, created_at)
  VALUES (NEW.sender_id, NEW.message_id, NEW.id, NEW.created_at);
END;

-- Requests to erase an address from a project, or from all of an account. They go on in steps, and end with a pass over the
-- messages that left none. sealed_email: the address; NULL at the end. counts: what was removed, by kind.
-- project_at, message_at: the place that the pass has reached. blocked: messages that it had to leave for the next pass.
-- pages_left: free pages of the file to give back, because they may still hold octets; NULL before the last pass is over.
CREATE TABLE erasures (
  id TEXT PRIMARY KEY,
  account_id TEXT NOT NULL REFERENCES accounts (id),
  sender_id TEXT,
  status TEXT NOT NULL DEFAULT 'running' CHECK (status IN ('running', 'done')),
  sealed_email TEXT,
  project_at TEXT NOT NULL DEFAULT '',
  message_at TEXT NOT NULL DEFAULT '',
  blocked INTEGER NOT NULL DEFAULT 0,
  pages_left INTEGER,
  counts TEXT NOT NULL DEFAULT '{}',
  created_at INTEGER NOT NULL,
  ended_at INTEGER
) STRICT;
CREATE INDEX erasures_running ON erasures (id) WHERE status = 'running';
