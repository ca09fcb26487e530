-- Letters to the contacts of a project. A chore makes their messages in steps, each with the new position in one write.
-- filter, variables: JSON, copied when it is sent: the segment's filter, and the variables of its content.
-- audience: contacts that passed the filter at the start. last_contact_id: the contact up to which messages were made.
-- next_at: milliseconds of the next step. recipients, skipped: contacts that got a message, and those that may not get one.
-- problem: JSON, why it waits or was paused.
CREATE TABLE broadcasts (
  id TEXT PRIMARY KEY,
  sender_id TEXT NOT NULL REFERENCES senders (id),
  name TEXT NOT NULL,
  status TEXT NOT NULL CHECK (status IN ('draft', 'scheduled', 'sending', 'paused', 'sent', 'canceled')),
  topic_id TEXT NOT NULL,
  segment_id TEXT,
  from_email TEXT NOT NULL,
  from_name TEXT,
  reply_to TEXT NOT NULL,
  subject TEXT,
  template_id TEXT,
  scheduled_at INTEGER,
  rate_per_hour INTEGER,
  route_ids TEXT NOT NULL,
  ab_test TEXT,
  key_id TEXT,
  filter TEXT,
  variables TEXT NOT NULL DEFAULT '[]',
  octets INTEGER NOT NULL DEFAULT 0,
  audience INTEGER,
  started_at INTEGER,
  ended_at INTEGER,
  last_contact_id TEXT NOT NULL DEFAULT '',
  next_at INTEGER,
  recipients INTEGER NOT NULL DEFAULT 0,
  skipped INTEGER NOT NULL DEFAULT 0,
  problem TEXT,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX broadcasts_by_project ON broadcasts (sender_id, id);
CREATE INDEX broadcasts_due ON broadcasts (status, next_at);

-- The content of a broadcast, stored once. Its own table, because each step changes the row of `broadcasts`.
CREATE TABLE broadcast_bodies (
  broadcast_id TEXT PRIMARY KEY,
  sender_id TEXT NOT NULL,
  html TEXT,
  text TEXT
) STRICT, WITHOUT ROWID;
CREATE INDEX broadcast_bodies_by_project ON broadcast_bodies (sender_id);

CREATE TRIGGER holdings_broadcast_bodies_insert AFTER INSERT ON broadcast_bodies
BEGIN
  UPDATE holdings SET stored_octets = stored_octets + 1024 + octet_length(COALESCE(NEW.html, ''))
    + octet_length(COALESCE(NEW.text, '')) WHERE owner_id = NEW.sender_id;
END;

CREATE TRIGGER holdings_broadcast_bodies_update AFTER UPDATE OF html, text ON broadcast_bodies
BEGIN
  UPDATE holdings SET stored_octets = stored_octets + octet_length(COALESCE(NEW.html, '')) + octet_length(COALESCE(NEW.text, ''))
    - octet_length(COALESCE(OLD.html, '')) - octet_length(COALESCE(OLD.text, '')) WHERE owner_id = NEW.sender_id;
END;

CREATE TRIGGER holdings_broadcast_bodies_delete AFTER DELETE ON broadcast_bodies
BEGIN
  UPDATE holdings SET stored_octets = stored_octets - 1024 - octet_length(COALESCE(OLD.html, ''))
    - octet_length(COALESCE(OLD.text, '')) WHERE owner_id = OLD.sender_id;
END;

-- The messages of each broadcast. A message names its broadcast as its template, whose ids begin with `bro_`.
CREATE TABLE broadcast_messages (
  broadcast_id TEXT NOT NULL,
  message_id TEXT NOT NULL,
  PRIMARY KEY (broadcast_id, message_id)
) STRICT, WITHOUT ROWID;

CREATE TRIGGER broadcast_messages_insert AFTER INSERT ON messages
WHEN NEW.template_id >= 'bro_' AND NEW.template_id < 'bro`'
BEGIN
  INSERT INTO broadcast_messages (broadcast_id, message_id) VALUES (NEW.template_id, NEW.id) ON CONFLICT DO NOTHING;
END;

CREATE TRIGGER broadcast_messages_delete AFTER DELETE ON messages
WHEN OLD.template_id >= 'bro_' AND OLD.template_id < 'bro`'
BEGIN
  DELETE FROM broadcast_messages WHERE broadcast_id = OLD.template_id AND message_id = OLD.id;
END;

-- Outcomes of a broadcast by hour. opened, clicked: recipients, without those of whom only machines did. failed: not sent.
CREATE TABLE broadcast_figures (
  broadcast_id TEXT NOT NULL,
  hour INTEGER NOT NULL,
  sent INTEGER NOT NULL DEFAULT 0,
  delivered INTEGER NOT NULL DEFAULT 0,
  bounced INTEGER NOT NULL DEFAULT 0,
  complained INTEGER NOT NULL DEFAULT 0,
  failed INTEGER NOT NULL DEFAULT 0,
  opened INTEGER NOT NULL DEFAULT 0,
  clicked INTEGER NOT NULL DEFAULT 0,
  unsubscribed INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (broadcast_id, hour)
) STRICT, WITHOUT ROWID;

CREATE TRIGGER broadcast_outcome AFTER UPDATE OF status ON recipients
WHEN NEW.bulk = 1 AND NEW.status <> OLD.status AND NEW.status <> 'accepted' AND NEW.status <> 'queued'
  AND NEW.status <> 'sending' AND NEW.status <> 'delivery_delayed' AND NEW.last_event_at IS NOT NULL
BEGIN
  INSERT INTO broadcast_figures (broadcast_id, hour, sent, delivered, bounced, complained, failed)
  SELECT m.template_id, NEW.last_event_at / 3600000, NEW.status = 'sent',
    NEW.status = 'delivered' OR NEW.status = 'complained' AND (OLD.status = 'sending' OR OLD.status = 'queued'),
    NEW.status = 'bounced', NEW.status = 'complained',
    NEW.status = 'failed' OR NEW.status = 'rejected' OR NEW.status = 'rendering_failure'
  FROM messages m WHERE m.id = NEW.message_id AND m.template_id >= 'bro_' AND m.template_id < 'bro`'
  ON CONFLICT (broadcast_id, hour) DO UPDATE SET sent = sent + excluded.sent, delivered = delivered + excluded.delivered,
    bounced = bounced + excluded.bounced, complained = complained + excluded.complained, failed = failed + excluded.failed;
END;

-- Asks about the broadcast first, because few messages have one.
CREATE TRIGGER broadcast_event AFTER INSERT ON events
WHEN NEW.type = 'unsubscribed' OR NEW.type IN ('open', 'click') AND json_extract(NEW.data, '$.' || NEW.type || '.machine') = 0
BEGIN
  INSERT INTO broadcast_figures (broadcast_id, hour, opened, clicked, unsubscribed)
  SELECT m.template_id, NEW.created_at / 3600000, NEW.type = 'open', NEW.type = 'click', NEW.type = 'unsubscribed'
  FROM messages m WHERE m.id = NEW.message_id AND m.template_id >= 'bro_' AND m.template_id < 'bro`'
    AND (NEW.type = 'unsubscribed' OR NOT EXISTS (
      SELECT 1 FROM recipients r JOIN engagement e ON e.message_id = r.message_id AND e.ord = r.ord
      WHERE r.message_id = m.id AND r.email = NEW.email AND CASE NEW.type WHEN 'open' THEN e.opens ELSE e.clicks END > 0))
  ON CONFLICT (broadcast_id, hour) DO UPDATE SET opened = opened + excluded.opened, clicked = clicked + excluded.clicked,
    unsubscribed = unsubscribed + excluded.unsubscribed;
END;
