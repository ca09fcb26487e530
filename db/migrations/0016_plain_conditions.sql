-- SQLite makes a table in memory of each IN list of more than two values, for each row that is updated. What comes with
-- every change of a status compares instead.

DROP TRIGGER messages_settle;
CREATE TRIGGER messages_settle AFTER UPDATE OF status ON messages
WHEN NEW.status <> OLD.status AND NEW.position IS NOT NULL
  AND NEW.status <> 'accepted' AND NEW.status <> 'queued' AND NEW.status <> 'sending' AND NEW.status <> 'delivery_delayed'
BEGIN
  INSERT INTO messages_settled (message_id) VALUES (NEW.id) ON CONFLICT DO NOTHING;
END;

DROP TRIGGER stats_outcome;
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
