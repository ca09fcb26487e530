-- Figures of a project, counted by triggers in the very write that makes something true: under its guards, and on every
-- kind of database alike. They outlive the messages that they were counted from.

-- By hour: hours since the Unix epoch, UTC. Each figure counts recipients; `settled`, `settled_bounced` and
-- `settled_complained` are what reputation counts, and what rates are drawn of.
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

-- By UTC day (days since the Unix epoch) and domain. `outcome`: -1 put off, -2 bounced, else delivered within so many
-- milliseconds of its acceptance or its scheduled time, one of `stats_steps`. A project has at most 1000 domains a day,
-- the rest is 'other': who sends to a million made-up domains must not fill the disk.
CREATE TABLE stats_destinations (
  sender_id TEXT NOT NULL,
  day INTEGER NOT NULL,
  domain TEXT NOT NULL,
  outcome INTEGER NOT NULL,
  count INTEGER NOT NULL,
  PRIMARY KEY (sender_id, day, domain, outcome)
) STRICT, WITHOUT ROWID;

-- How many domains of the day have rows of their own.
CREATE TABLE stats_domains (
  sender_id TEXT NOT NULL,
  day INTEGER NOT NULL,
  domains INTEGER NOT NULL,
  PRIMARY KEY (sender_id, day)
) STRICT, WITHOUT ROWID;

-- Each a fifth more than the one before, up to a year: longer than mail is tried for.
CREATE TABLE stats_steps (ms INTEGER PRIMARY KEY) STRICT;
INSERT INTO stats_steps (ms)
  WITH RECURSIVE step (ms) AS (SELECT 10 UNION ALL SELECT (ms * 6 + 4) / 5 FROM step WHERE ms < 31622400000)
  SELECT ms FROM step;

-- Of recipients, not of their events: SQLite copies every page that a statement with a trigger touches, and events are
-- the more.
CREATE TRIGGER stats_accepted AFTER INSERT ON recipients
WHEN NEW.last_event_at IS NOT NULL
BEGIN
  INSERT INTO stats (sender_id, hour, accepted, rejected)
  VALUES (NEW.sender_id, NEW.last_event_at / 3600000, 1, NEW.status = 'rejected')
  ON CONFLICT (sender_id, hour) DO UPDATE SET accepted = accepted + 1, rejected = rejected + excluded.rejected;
END;

-- A simulated complaint is delivered and complained of in one step.
CREATE TRIGGER stats_outcome AFTER UPDATE OF status ON recipients
WHEN NEW.status <> OLD.status AND NEW.status NOT IN ('accepted', 'queued', 'sending')
  AND NEW.last_event_at IS NOT NULL
BEGIN
  INSERT INTO stats (sender_id, hour, sent, delivered, delayed, bounced, complained, rejected, failed)
  VALUES (NEW.sender_id, NEW.last_event_at / 3600000, NEW.status = 'sent',
    NEW.status = 'delivered' OR NEW.status = 'complained' AND OLD.status IN ('sending', 'queued'),
    NEW.status = 'delivery_delayed', NEW.status = 'bounced', NEW.status = 'complained', NEW.status = 'rejected',
    NEW.status IN ('failed', 'rendering_failure'))
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
  FROM messages m WHERE m.id = NEW.message_id AND (NEW.status IN ('delivered', 'delivery_delayed', 'bounced')
    OR NEW.status = 'complained' AND OLD.status IN ('sending', 'queued'))
  ON CONFLICT (sender_id, day, domain, outcome) DO UPDATE SET count = count + 1;
END;

-- A domain's first row of a day counts it, and clears away more rows than it will have, of those older than any range
-- that is asked for: the table does not grow for good.
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

-- Mail received, and a recipient's first open and first click that no machine is known to have made: `engagement` counts
-- these behind their event, in the same write.
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

-- The hour in which an outcome was counted last: the one that it is counted in here.
ALTER TABLE reputation ADD COLUMN hour INTEGER;
CREATE TRIGGER stats_settled_first AFTER INSERT ON reputation
WHEN NEW.hour IS NOT NULL
BEGIN
  INSERT INTO stats (sender_id, hour, settled, settled_bounced, settled_complained)
  VALUES (NEW.sender_id, NEW.hour, NEW.settled, NEW.bounced, NEW.complained)
  ON CONFLICT (sender_id, hour) DO UPDATE SET settled = settled + excluded.settled,
    settled_bounced = settled_bounced + excluded.settled_bounced,
    settled_complained = settled_complained + excluded.settled_complained;
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
