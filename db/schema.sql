-- Generated from db/migrations by `bun scripts/schema.ts`. Do not edit.

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

CREATE TABLE accounts (
  id TEXT PRIMARY KEY,
  name TEXT NOT NULL,
  owner_email TEXT NOT NULL,
  created_at INTEGER NOT NULL
) STRICT;

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

CREATE TABLE api_keys (
  id TEXT PRIMARY KEY,
  account_id TEXT NOT NULL REFERENCES accounts (id),
  sender_id TEXT REFERENCES senders (id),
  name TEXT NOT NULL,
  key_prefix TEXT NOT NULL,
  last4 TEXT NOT NULL,
  secret_hash TEXT NOT NULL UNIQUE,
  scopes TEXT NOT NULL DEFAULT '[]',
  last_used_at INTEGER,
  revoked_at INTEGER,
  created_at INTEGER NOT NULL
) STRICT;

CREATE INDEX api_keys_by_account ON api_keys (account_id, id);

CREATE TABLE attachments (
  id TEXT PRIMARY KEY,
  message_id TEXT NOT NULL REFERENCES messages (id) ON DELETE CASCADE,
  ord INTEGER NOT NULL,
  filename TEXT NOT NULL,
  content_type TEXT NOT NULL,
  disposition TEXT NOT NULL CHECK (disposition IN ('attachment', 'inline')),
  content_id TEXT,
  size INTEGER NOT NULL,
  content BLOB
) STRICT;

CREATE INDEX attachments_by_message ON attachments (message_id, ord);

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
  smtp_code INTEGER,
  enhanced_code TEXT,
  diagnostic TEXT,
  transcript TEXT,
  PRIMARY KEY (message_id, ord, attempt),
  FOREIGN KEY (message_id) REFERENCES messages (id) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;

CREATE TABLE configuration_version (
  only INTEGER PRIMARY KEY CHECK (only = 1),
  value INTEGER NOT NULL
) STRICT;

CREATE TABLE contacts (
  id TEXT PRIMARY KEY,
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
) STRICT;

CREATE INDEX contacts_by_sender ON contacts (sender_id, id);

CREATE TABLE content_chunks (
  key BLOB NOT NULL,
  ord INTEGER NOT NULL,
  bytes BLOB NOT NULL,
  PRIMARY KEY (key, ord)
) STRICT, WITHOUT ROWID;

CREATE TABLE contents (
  id INTEGER PRIMARY KEY,
  key BLOB NOT NULL UNIQUE,
  refs INTEGER NOT NULL,
  size INTEGER NOT NULL,
  encoding TEXT NOT NULL CHECK (encoding IN ('plain', 'zstd')),
  place TEXT NOT NULL CHECK (place IN ('row', 'chunks', 'object')),
  created_at INTEGER NOT NULL,
  object TEXT,
  bytes BLOB
) STRICT;

CREATE INDEX contents_movable ON contents (id) WHERE place = 'chunks' OR (place = 'row' AND length(bytes) >= 16384);

CREATE INDEX contents_unused ON contents (created_at) WHERE refs = 0;

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

CREATE TABLE dkim_keys (
  token TEXT PRIMARY KEY,
  domain_id TEXT REFERENCES domains (id) ON DELETE CASCADE,
  selector TEXT NOT NULL,
  public_key TEXT NOT NULL,
  private_key TEXT NOT NULL,
  status TEXT NOT NULL CHECK (status IN ('pending', 'active', 'retired')),
  retire_at INTEGER,
  created_at INTEGER NOT NULL
) STRICT;

CREATE INDEX dkim_keys_by_domain ON dkim_keys (domain_id);

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
  receiving INTEGER NOT NULL DEFAULT 0 CHECK (receiving IN (0, 1)),
  verified_at INTEGER,
  failing_since INTEGER,
  checked_at INTEGER,
  next_check_at INTEGER,
  created_at INTEGER NOT NULL,
  UNIQUE (account_id, name)
) STRICT;

CREATE INDEX domains_by_check ON domains (next_check_at) WHERE next_check_at IS NOT NULL;

CREATE INDEX domains_by_sender ON domains (sender_id, id);

CREATE UNIQUE INDEX domains_receiving ON domains (name) WHERE receiving = 1;

CREATE TABLE engagement (
  message_id TEXT NOT NULL REFERENCES messages (id) ON DELETE CASCADE,
  ord INTEGER NOT NULL,
  opens INTEGER NOT NULL DEFAULT 0,
  machine_opens INTEGER NOT NULL DEFAULT 0,
  clicks INTEGER NOT NULL DEFAULT 0,
  machine_clicks INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (message_id, ord)
) STRICT, WITHOUT ROWID;

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

CREATE TABLE events (
  message_id TEXT NOT NULL REFERENCES messages (id) ON DELETE CASCADE,
  id TEXT NOT NULL,
  sender_id TEXT NOT NULL,
  type TEXT NOT NULL,
  email TEXT,
  data TEXT NOT NULL DEFAULT '{}',
  created_at INTEGER NOT NULL,
  PRIMARY KEY (message_id, id)
) STRICT, WITHOUT ROWID;

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

CREATE TABLE idempotency (
  scope TEXT NOT NULL,
  endpoint TEXT NOT NULL,
  key TEXT NOT NULL,
  body_hash TEXT NOT NULL,
  status INTEGER NOT NULL,
  body TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (scope, endpoint, key)
) STRICT, WITHOUT ROWID;

CREATE INDEX idempotency_by_age ON idempotency (created_at);

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

CREATE TABLE inboxes (
  id TEXT PRIMARY KEY,
  sender_id TEXT NOT NULL REFERENCES senders (id),
  domain_id TEXT NOT NULL REFERENCES domains (id),
  address TEXT NOT NULL,
  display_name TEXT NOT NULL DEFAULT '',
  type TEXT NOT NULL CHECK (type IN ('sending', 'agent')),
  received_count INTEGER NOT NULL DEFAULT 0,
  created_at INTEGER NOT NULL,
  -- Not unique over all domains: a stranger may register a name that he cannot verify.
  UNIQUE (domain_id, address)
) STRICT;

CREATE INDEX inboxes_by_sender ON inboxes (sender_id, id);

CREATE TABLE instances (
  id TEXT PRIMARY KEY,
  host TEXT NOT NULL,
  pid INTEGER NOT NULL,
  heartbeat_at INTEGER NOT NULL,
  started_at INTEGER NOT NULL
) STRICT;

CREATE TABLE message_content (
  message_id TEXT PRIMARY KEY REFERENCES messages (id) ON DELETE CASCADE,
  body BLOB,
  inline_body BLOB,
  headers TEXT NOT NULL DEFAULT '{}',
  data TEXT,
  envelope TEXT,
  auth TEXT,
  -- 1: the body is what a template became; it stays so for every later try and recipient.
  rendered INTEGER NOT NULL DEFAULT 0 CHECK (rendered IN (0, 1)),
  trace TEXT,
  raw BLOB
, let_go_at INTEGER) STRICT;

CREATE INDEX message_content_kept ON message_content (message_id) WHERE let_go_at IS NULL;

CREATE VIRTUAL TABLE message_terms USING fts5 (terms, content='', columnsize=0, detail=none,
  tokenize="ascii tokenchars '!#$%&()*+,-./:;<=>?@[\]^_`{|}~'");

CREATE TRIGGER messages_settle AFTER UPDATE OF status ON messages
WHEN NEW.status <> OLD.status AND NEW.position IS NOT NULL
  AND NEW.status <> 'accepted' AND NEW.status <> 'queued' AND NEW.status <> 'sending' AND NEW.status <> 'delivery_delayed'
BEGIN
  INSERT INTO messages_settled (message_id) VALUES (NEW.id) ON CONFLICT DO NOTHING;
END;

CREATE TABLE messages (
  id TEXT PRIMARY KEY,
  sender_id TEXT NOT NULL REFERENCES senders (id),
  direction TEXT NOT NULL CHECK (direction IN ('inbound', 'outbound')),
  status TEXT NOT NULL CHECK (status IN ('accepted', 'queued', 'sending', 'sent', 'delivery_delayed', 'delivered',
    'bounced', 'complained', 'rejected', 'rendering_failure', 'failed', 'inbound_rejected')),
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
  scheduled_at INTEGER,
  sent_at INTEGER,
  size INTEGER NOT NULL DEFAULT 0,
  test_mode INTEGER NOT NULL DEFAULT 0 CHECK (test_mode IN (0, 1)),
  track_opens INTEGER NOT NULL DEFAULT 0 CHECK (track_opens IN (0, 1)),
  track_clicks INTEGER NOT NULL DEFAULT 0 CHECK (track_clicks IN (0, 1)),
  unsubscribe_link INTEGER NOT NULL DEFAULT 0 CHECK (unsubscribe_link IN (0, 1)),
  created_at INTEGER NOT NULL
, position INTEGER, terms_rule INTEGER NOT NULL DEFAULT 1) STRICT;

CREATE INDEX messages_by_position ON messages (position) WHERE position IS NOT NULL;

CREATE INDEX messages_by_rfc_id ON messages (inbox_id, rfc_message_id) WHERE inbox_id IS NOT NULL;

CREATE INDEX messages_by_sender ON messages (sender_id, id);

CREATE INDEX messages_by_status ON messages (sender_id, status, id);

CREATE INDEX messages_by_thread ON messages (thread_id, id) WHERE thread_id IS NOT NULL;

CREATE INDEX messages_older_terms ON messages (position) WHERE position IS NOT NULL AND terms_rule < 2
  AND length(CAST(from_email || COALESCE(from_name, '') || to_list || cc_list || bcc_list || subject AS BLOB))
    <> length(from_email || COALESCE(from_name, '') || to_list || cc_list || bcc_list || subject);

CREATE INDEX messages_unindexed ON messages (sender_id, id) WHERE position IS NULL;

CREATE TRIGGER messages_reenter AFTER INSERT ON messages_reentering
BEGIN
  UPDATE messages SET terms_rule = 1 WHERE id = NEW.message_id;
END;

CREATE TABLE messages_reentering (
  message_id TEXT PRIMARY KEY REFERENCES messages (id) ON DELETE CASCADE,
  place INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE messages_settled (
  message_id TEXT PRIMARY KEY REFERENCES messages (id) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;

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

CREATE TRIGGER stats_accepted AFTER INSERT ON recipients
WHEN NEW.last_event_at IS NOT NULL
BEGIN
  INSERT INTO stats (sender_id, hour, accepted, rejected)
  VALUES (NEW.sender_id, NEW.last_event_at / 3600000, 1, NEW.status = 'rejected')
  ON CONFLICT (sender_id, hour) DO UPDATE SET accepted = accepted + 1, rejected = rejected + excluded.rejected;
END;

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

CREATE TABLE recipients (
  message_id TEXT NOT NULL REFERENCES messages (id) ON DELETE CASCADE,
  ord INTEGER NOT NULL,
  sender_id TEXT NOT NULL,
  email TEXT NOT NULL,
  domain TEXT NOT NULL,
  kind TEXT NOT NULL CHECK (kind IN ('to', 'cc', 'bcc')),
  status TEXT NOT NULL CHECK (status IN ('accepted', 'queued', 'sending', 'sent', 'delivery_delayed', 'delivered',
    'bounced', 'complained', 'rejected', 'rendering_failure', 'failed')),
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
) STRICT, WITHOUT ROWID;

CREATE INDEX recipients_claimed ON recipients (claimed_by) WHERE claimed_by IS NOT NULL;

CREATE INDEX recipients_due ON recipients (due_at, message_id, ord, status)
  WHERE due_at IS NOT NULL AND status <> 'accepted';

CREATE INDEX recipients_scheduled ON recipients (due_at) WHERE status = 'accepted';

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

CREATE TABLE reputation (
  sender_id TEXT NOT NULL,
  day TEXT NOT NULL,
  settled INTEGER NOT NULL DEFAULT 0,
  bounced INTEGER NOT NULL DEFAULT 0,
  complained INTEGER NOT NULL DEFAULT 0, hour INTEGER,
  PRIMARY KEY (sender_id, day)
) STRICT, WITHOUT ROWID;

CREATE INDEX reputation_by_day ON reputation (day);

CREATE TABLE schema_migrations (
  version INTEGER PRIMARY KEY,
  name TEXT NOT NULL,
  checksum TEXT NOT NULL,
  applied_at INTEGER NOT NULL
) STRICT;

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

CREATE TABLE senders (
  id TEXT PRIMARY KEY,
  account_id TEXT NOT NULL REFERENCES accounts (id),
  external_id TEXT NOT NULL,
  name TEXT NOT NULL,
  plan TEXT NOT NULL,
  trust_tier TEXT NOT NULL,
  daily_quota INTEGER,
  track_opens INTEGER NOT NULL DEFAULT 1 CHECK (track_opens IN (0, 1)),
  track_clicks INTEGER NOT NULL DEFAULT 1 CHECK (track_clicks IN (0, 1)),
  suspended_at INTEGER,
  created_at INTEGER NOT NULL,
  UNIQUE (account_id, external_id)
) STRICT;

CREATE INDEX senders_by_account ON senders (account_id, id);

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
) STRICT, WITHOUT ROWID;

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

CREATE TABLE stats_destinations (
  sender_id TEXT NOT NULL,
  day INTEGER NOT NULL,
  domain TEXT NOT NULL,
  outcome INTEGER NOT NULL,
  count INTEGER NOT NULL,
  PRIMARY KEY (sender_id, day, domain, outcome)
) STRICT, WITHOUT ROWID;

CREATE TABLE stats_domains (
  sender_id TEXT NOT NULL,
  day INTEGER NOT NULL,
  domains INTEGER NOT NULL,
  PRIMARY KEY (sender_id, day)
) STRICT, WITHOUT ROWID;

CREATE TABLE stats_steps (ms INTEGER PRIMARY KEY) STRICT;

CREATE TABLE stray_objects (
  object TEXT PRIMARY KEY,
  since INTEGER NOT NULL,
  doomed INTEGER NOT NULL DEFAULT 0 CHECK (doomed IN (0, 1))
) STRICT, WITHOUT ROWID;

CREATE INDEX stray_objects_by_age ON stray_objects (doomed, since);

CREATE TABLE suppressions (
  id TEXT PRIMARY KEY,
  sender_id TEXT NOT NULL REFERENCES senders (id),
  email TEXT NOT NULL,
  reason TEXT NOT NULL CHECK (reason IN ('bounce', 'complaint', 'manual')),
  bounce_type TEXT CHECK (bounce_type IN ('hard', 'soft')),
  message_id TEXT,
  note TEXT,
  expires_at INTEGER,
  created_at INTEGER NOT NULL,
  UNIQUE (sender_id, email)
) STRICT;

CREATE INDEX suppressions_by_sender ON suppressions (sender_id, id);

CREATE TABLE templates (
  id TEXT PRIMARY KEY,
  sender_id TEXT NOT NULL REFERENCES senders (id),
  slug TEXT NOT NULL,
  name TEXT NOT NULL,
  subject TEXT NOT NULL,
  html TEXT,
  text TEXT,
  variables TEXT NOT NULL DEFAULT '[]',
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  UNIQUE (sender_id, slug)
) STRICT;

CREATE INDEX templates_by_sender ON templates (sender_id, id);

CREATE TABLE thread_references (
  inbox_id TEXT NOT NULL REFERENCES inboxes (id) ON DELETE CASCADE,
  rfc_message_id TEXT NOT NULL,
  sender_id TEXT NOT NULL,
  thread_id TEXT NOT NULL,
  PRIMARY KEY (inbox_id, rfc_message_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX thread_references_by_thread ON thread_references (thread_id);

CREATE TABLE threads (
  id TEXT PRIMARY KEY,
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
  updated_at INTEGER NOT NULL
) STRICT;

CREATE INDEX threads_by_activity ON threads (inbox_id, last_message_at, id, subject, participants, preview);

CREATE TABLE usage (
  sender_id TEXT NOT NULL,
  day TEXT NOT NULL,
  recipients INTEGER NOT NULL,
  PRIMARY KEY (sender_id, day)
) STRICT, WITHOUT ROWID;

CREATE INDEX usage_by_day ON usage (day);

CREATE TABLE webhook_deliveries (
  id TEXT PRIMARY KEY,
  webhook_id TEXT NOT NULL REFERENCES webhooks (id) ON DELETE CASCADE,
  sender_id TEXT NOT NULL,
  message_id TEXT,
  event_id TEXT,
  type TEXT NOT NULL,
  data TEXT,
  status TEXT NOT NULL CHECK (status IN ('pending', 'succeeded', 'failed')),
  attempts INTEGER NOT NULL DEFAULT 0,
  due_at INTEGER,
  claimed_by TEXT,
  last_attempt_at INTEGER,
  last_status INTEGER,
  last_response TEXT,
  last_error TEXT,
  created_at INTEGER NOT NULL
) STRICT;

CREATE INDEX webhook_deliveries_by_webhook ON webhook_deliveries (webhook_id, id);

CREATE INDEX webhook_deliveries_claimed ON webhook_deliveries (claimed_by) WHERE claimed_by IS NOT NULL;

CREATE INDEX webhook_deliveries_due ON webhook_deliveries (due_at, id) WHERE due_at IS NOT NULL;

CREATE INDEX webhook_deliveries_pending ON webhook_deliveries (message_id) WHERE status = 'pending';

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

CREATE TABLE webhooks (
  id TEXT PRIMARY KEY,
  sender_id TEXT NOT NULL REFERENCES senders (id),
  url TEXT NOT NULL,
  enabled INTEGER NOT NULL DEFAULT 1 CHECK (enabled IN (0, 1)),
  event_types TEXT NOT NULL,
  secret TEXT NOT NULL,
  previous_secret TEXT,
  previous_secret_until INTEGER,
  disabled_reason TEXT,
  failing_since INTEGER,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
, deleted_at INTEGER) STRICT;

CREATE INDEX webhooks_by_sender ON webhooks (sender_id, id);

CREATE INDEX webhooks_deleted ON webhooks (id) WHERE deleted_at IS NOT NULL;
