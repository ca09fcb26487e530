-- Times of the last message to a contact, and of its last open and click by a person. NULL: none yet. Milliseconds.
ALTER TABLE contacts ADD COLUMN last_sent_at INTEGER;
ALTER TABLE contacts ADD COLUMN last_opened_at INTEGER;
ALTER TABLE contacts ADD COLUMN last_clicked_at INTEGER;

DROP TRIGGER audience_insert;
DROP TRIGGER audience_update;
DROP TRIGGER audience_delete;
DROP TABLE audience;

-- One narrow row for each value that filters of contacts read: a condition scans the values of its column alone. Triggers copy them
-- from `contacts`. name: of a field, `p:` and the name of a property, or `t:` and the id of a topic.
CREATE TABLE audience_columns (
  id INTEGER PRIMARY KEY,
  sender_id TEXT NOT NULL,
  name TEXT NOT NULL
) STRICT;
CREATE UNIQUE INDEX audience_columns_by_name ON audience_columns (sender_id, name);

-- The contacts of a project, numbered as they come.
CREATE TABLE audience_numbers (
  sender_id TEXT NOT NULL,
  no INTEGER NOT NULL,
  contact_id TEXT NOT NULL,
  PRIMARY KEY (sender_id, no)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX audience_numbers_by_contact ON audience_numbers (contact_id);

CREATE TABLE audience_values (
  column_id INTEGER NOT NULL,
  no INTEGER NOT NULL,
  value ANY NOT NULL,
  PRIMARY KEY (column_id, no)
) STRICT, WITHOUT ROWID;

-- The columns of the fields, of properties and of topics. Each exists before any contact has a value in it.
CREATE TRIGGER audience_sender_insert AFTER INSERT ON senders
BEGIN
  INSERT INTO audience_columns (sender_id, name) VALUES (NEW.id, 'email'), (NEW.id, 'subscribed'), (NEW.id, 'createdAt'),
    (NEW.id, 'lastSentAt'), (NEW.id, 'lastOpenedAt'), (NEW.id, 'lastClickedAt');
END;
CREATE TRIGGER audience_property_insert AFTER INSERT ON contact_properties
BEGIN
  INSERT INTO audience_columns (sender_id, name) VALUES (NEW.sender_id, 'p:' || NEW.name) ON CONFLICT DO NOTHING;
END;
CREATE TRIGGER audience_property_delete AFTER DELETE ON contact_properties
BEGIN
  DELETE FROM audience_columns WHERE sender_id = OLD.sender_id AND name = 'p:' || OLD.name;
END;
CREATE TRIGGER audience_topic_insert AFTER INSERT ON topics
BEGIN
  INSERT INTO audience_columns (sender_id, name) VALUES (NEW.sender_id, 't:' || NEW.id) ON CONFLICT DO NOTHING;
END;
CREATE TRIGGER audience_topic_delete AFTER DELETE ON topics
BEGIN
  DELETE FROM audience_columns WHERE sender_id = OLD.sender_id AND name = 't:' || OLD.id;
END;
INSERT INTO audience_columns (sender_id, name)
  SELECT s.id, f.value FROM senders s, json_each('["email","subscribed","createdAt","lastSentAt","lastOpenedAt","lastClickedAt"]') f
  UNION ALL SELECT sender_id, 'p:' || name FROM contact_properties
  UNION ALL SELECT sender_id, 't:' || id FROM topics;

CREATE TRIGGER audience_insert AFTER INSERT ON contacts
BEGIN
  INSERT INTO audience_numbers (sender_id, no, contact_id)
    SELECT NEW.sender_id, COALESCE(MAX(no), 0) + 1, NEW.id FROM audience_numbers WHERE sender_id = NEW.sender_id
    ON CONFLICT DO NOTHING;
  INSERT INTO audience_values (column_id, no, value)
    SELECT c.id, n.no, v.value FROM (
        SELECT 'email' AS name, NEW.email_key AS value
        UNION ALL SELECT 'subscribed', NEW.subscribed
        UNION ALL SELECT 'createdAt', NEW.created_at
        UNION ALL SELECT 'lastSentAt', NEW.last_sent_at WHERE NEW.last_sent_at IS NOT NULL
        UNION ALL SELECT 'lastOpenedAt', NEW.last_opened_at WHERE NEW.last_opened_at IS NOT NULL
        UNION ALL SELECT 'lastClickedAt', NEW.last_clicked_at WHERE NEW.last_clicked_at IS NOT NULL
        UNION ALL SELECT 'p:' || key, value FROM json_each(NEW.properties) WHERE NEW.properties <> '{}'
        UNION ALL SELECT 't:' || key, value FROM json_each(NEW.topics) WHERE NEW.topics <> '{}') v
      JOIN audience_columns c ON c.sender_id = NEW.sender_id AND c.name = v.name
      JOIN audience_numbers n ON n.contact_id = NEW.id
    WHERE TRUE
    ON CONFLICT (column_id, no) DO UPDATE SET value = excluded.value WHERE value IS NOT excluded.value;
END;

-- It also numbers a contact from before the step, when the walk of the step gets to it.
CREATE TRIGGER audience_update AFTER UPDATE OF subscribed, properties, topics ON contacts
BEGIN
  INSERT INTO audience_numbers (sender_id, no, contact_id)
    SELECT NEW.sender_id, COALESCE(MAX(no), 0) + 1, NEW.id FROM audience_numbers WHERE sender_id = NEW.sender_id
    ON CONFLICT DO NOTHING;
  DELETE FROM audience_values WHERE no = (SELECT no FROM audience_numbers WHERE contact_id = NEW.id)
    AND column_id IN (SELECT id FROM audience_columns WHERE sender_id = NEW.sender_id AND name IN (
      SELECT 'p:' || key FROM json_each(OLD.properties) UNION ALL SELECT 't:' || key FROM json_each(OLD.topics)));
  INSERT INTO audience_values (column_id, no, value)
    SELECT c.id, n.no, v.value FROM (
        SELECT 'email' AS name, NEW.email_key AS value
        UNION ALL SELECT 'subscribed', NEW.subscribed
        UNION ALL SELECT 'createdAt', NEW.created_at
        UNION ALL SELECT 'lastSentAt', NEW.last_sent_at WHERE NEW.last_sent_at IS NOT NULL
        UNION ALL SELECT 'lastOpenedAt', NEW.last_opened_at WHERE NEW.last_opened_at IS NOT NULL
        UNION ALL SELECT 'lastClickedAt', NEW.last_clicked_at WHERE NEW.last_clicked_at IS NOT NULL
        UNION ALL SELECT 'p:' || key, value FROM json_each(NEW.properties) WHERE NEW.properties <> '{}'
        UNION ALL SELECT 't:' || key, value FROM json_each(NEW.topics) WHERE NEW.topics <> '{}') v
      JOIN audience_columns c ON c.sender_id = NEW.sender_id AND c.name = v.name
      JOIN audience_numbers n ON n.contact_id = NEW.id
    WHERE TRUE
    ON CONFLICT (column_id, no) DO UPDATE SET value = excluded.value WHERE value IS NOT excluded.value;
END;

-- Narrow, because each message to a contact and each open fires one.
CREATE TRIGGER audience_sent AFTER UPDATE OF last_sent_at ON contacts WHEN NEW.last_sent_at IS NOT NULL
BEGIN
  INSERT INTO audience_values (column_id, no, value)
    SELECT c.id, n.no, NEW.last_sent_at FROM audience_columns c JOIN audience_numbers n ON n.contact_id = NEW.id
    WHERE c.sender_id = NEW.sender_id AND c.name = 'lastSentAt'
    ON CONFLICT (column_id, no) DO UPDATE SET value = excluded.value;
END;
CREATE TRIGGER audience_opened AFTER UPDATE OF last_opened_at ON contacts WHEN NEW.last_opened_at IS NOT NULL
BEGIN
  INSERT INTO audience_values (column_id, no, value)
    SELECT c.id, n.no, NEW.last_opened_at FROM audience_columns c JOIN audience_numbers n ON n.contact_id = NEW.id
    WHERE c.sender_id = NEW.sender_id AND c.name = 'lastOpenedAt'
    ON CONFLICT (column_id, no) DO UPDATE SET value = excluded.value;
END;
CREATE TRIGGER audience_clicked AFTER UPDATE OF last_clicked_at ON contacts WHEN NEW.last_clicked_at IS NOT NULL
BEGIN
  INSERT INTO audience_values (column_id, no, value)
    SELECT c.id, n.no, NEW.last_clicked_at FROM audience_columns c JOIN audience_numbers n ON n.contact_id = NEW.id
    WHERE c.sender_id = NEW.sender_id AND c.name = 'lastClickedAt'
    ON CONFLICT (column_id, no) DO UPDATE SET value = excluded.value;
END;

CREATE TRIGGER audience_delete AFTER DELETE ON contacts
BEGIN
  DELETE FROM audience_values WHERE no = (SELECT no FROM audience_numbers WHERE contact_id = OLD.id)
    AND column_id IN (SELECT id FROM audience_columns WHERE sender_id = OLD.sender_id);
  DELETE FROM audience_numbers WHERE contact_id = OLD.id;
END;
