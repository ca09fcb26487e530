-- A narrow row for each contact, with what filters read: scanning `contacts` itself takes three times as long. Triggers copy it.
-- properties, topics: JSONB.
CREATE TABLE audience (
  sender_id TEXT NOT NULL,
  contact_id TEXT NOT NULL,
  email TEXT NOT NULL,
  subscribed INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  properties BLOB NOT NULL,
  topics BLOB NOT NULL,
  PRIMARY KEY (sender_id, contact_id)
) STRICT, WITHOUT ROWID;

CREATE TRIGGER audience_insert AFTER INSERT ON contacts
BEGIN
  INSERT INTO audience (sender_id, contact_id, email, subscribed, created_at, properties, topics)
    VALUES (NEW.sender_id, NEW.id, NEW.email_key, NEW.subscribed, NEW.created_at, jsonb(NEW.properties), jsonb(NEW.topics))
    ON CONFLICT DO NOTHING;
END;

CREATE TRIGGER audience_update AFTER UPDATE OF subscribed, properties, topics ON contacts
BEGIN
  UPDATE audience SET subscribed = NEW.subscribed, properties = jsonb(NEW.properties), topics = jsonb(NEW.topics)
    WHERE sender_id = NEW.sender_id AND contact_id = NEW.id;
END;

CREATE TRIGGER audience_delete AFTER DELETE ON contacts
BEGIN
  DELETE FROM audience WHERE sender_id = OLD.sender_id AND contact_id = OLD.id;
END;

-- Named filters of contacts. filter: JSON, as the API has it.
CREATE TABLE segments (
  id TEXT PRIMARY KEY,
  sender_id TEXT NOT NULL REFERENCES senders (id),
  name TEXT NOT NULL,
  filter TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX segments_by_project ON segments (sender_id, id);
