-- The messages that test two subjects, with the one that each has: a, the subject of the broadcast, or b, the other one.
CREATE TABLE broadcast_variants (
  message_id TEXT PRIMARY KEY REFERENCES messages (id) ON DELETE CASCADE,
  broadcast_id TEXT NOT NULL,
  variant TEXT NOT NULL CHECK (variant = 'a' OR variant = 'b')
) WITHOUT ROWID;

-- What became of them, as in `broadcast_figures`. recipients: messages that were made.
CREATE TABLE broadcast_variant_figures (
  broadcast_id TEXT NOT NULL,
  variant TEXT NOT NULL CHECK (variant = 'a' OR variant = 'b'),
  recipients INTEGER NOT NULL DEFAULT 0,
  sent INTEGER NOT NULL DEFAULT 0,
  delivered INTEGER NOT NULL DEFAULT 0,
  bounced INTEGER NOT NULL DEFAULT 0,
  complained INTEGER NOT NULL DEFAULT 0,
  failed INTEGER NOT NULL DEFAULT 0,
  opened INTEGER NOT NULL DEFAULT 0,
  clicked INTEGER NOT NULL DEFAULT 0,
  unsubscribed INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (broadcast_id, variant)
) STRICT, WITHOUT ROWID;

CREATE TRIGGER broadcast_variant_outcome AFTER UPDATE OF status ON recipients
WHEN NEW.bulk = 1 AND NEW.status <> OLD.status AND NEW.status <> 'accepted' AND NEW.status <> 'queued'
  AND NEW.status <> 'sending' AND NEW.status <> 'delivery_delayed' AND NEW.last_event_at IS NOT NULL
BEGIN
  INSERT INTO broadcast_variant_figures (broadcast_id, variant, sent, delivered, bounced, complained, failed)
  SELECT v.broadcast_id, v.variant, NEW.status = 'sent',
    NEW.status = 'delivered' OR NEW.status = 'complained' AND (OLD.status = 'sending' OR OLD.status = 'queued'),
    NEW.status = 'bounced', NEW.status = 'complained',
    NEW.status = 'failed' OR NEW.status = 'rejected' OR NEW.status = 'rendering_failure'
  FROM broadcast_variants v WHERE v.message_id = NEW.message_id
  ON CONFLICT (broadcast_id, variant) DO UPDATE SET sent = sent + excluded.sent, delivered = delivered + excluded.delivered,
    bounced = bounced + excluded.bounced, complained = complained + excluded.complained, failed = failed + excluded.failed;
END;

CREATE TRIGGER broadcast_variant_event AFTER INSERT ON events
WHEN NEW.type = 'unsubscribed' OR NEW.type IN ('open', 'click') AND json_extract(NEW.data, '$.' || NEW.type || '.machine') = 0
BEGIN
  INSERT INTO broadcast_variant_figures (broadcast_id, variant, opened, clicked, unsubscribed)
  SELECT v.broadcast_id, v.variant, NEW.type = 'open', NEW.type = 'click', NEW.type = 'unsubscribed'
  FROM broadcast_variants v WHERE v.message_id = NEW.message_id
    AND (NEW.type = 'unsubscribed' OR NOT EXISTS (
      SELECT 1 FROM recipients r JOIN engagement e ON e.message_id = r.message_id AND e.ord = r.ord
      WHERE r.message_id = v.message_id AND r.email = NEW.email AND CASE NEW.type WHEN 'open' THEN e.opens ELSE e.clicks END > 0))
  ON CONFLICT (broadcast_id, variant) DO UPDATE SET opened = opened + excluded.opened, clicked = clicked + excluded.clicked,
    unsubscribed = unsubscribed + excluded.unsubscribed;
END;
