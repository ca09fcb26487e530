-- The kinds of mail that readers of a project can choose. default_subscribed: whether those get it who have not chosen. visible: whether
-- the page of unsubscribe links shows it. deleted_at: milliseconds; the choices are being removed from the contacts.
-- walked_to: the last contact without one.
CREATE TABLE topics (
  id TEXT PRIMARY KEY,
  sender_id TEXT NOT NULL REFERENCES senders (id),
  name TEXT NOT NULL,
  description TEXT NOT NULL,
  default_subscribed INTEGER NOT NULL CHECK (default_subscribed IN (0, 1)),
  visible INTEGER NOT NULL CHECK (visible IN (0, 1)),
  deleted_at INTEGER,
  walked_to TEXT NOT NULL DEFAULT '',
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX topics_by_project ON topics (sender_id, id);
CREATE INDEX topics_deleted ON topics (deleted_at) WHERE deleted_at IS NOT NULL;

-- JSON, the choices of the contact by the id of their topic: 1 or 0.
ALTER TABLE contacts ADD COLUMN topics TEXT NOT NULL DEFAULT '{}';
-- The topic of a message, which its unsubscribe link leaves.
ALTER TABLE messages ADD COLUMN topic_id TEXT;

CREATE TRIGGER holdings_contacts_topics_insert AFTER INSERT ON contacts
BEGIN
  UPDATE holdings SET stored_octets = stored_octets + octet_length(NEW.topics) - 2 WHERE owner_id = NEW.sender_id;
END;

CREATE TRIGGER holdings_contacts_topics_update AFTER UPDATE OF topics ON contacts
BEGIN
  UPDATE holdings SET stored_octets = stored_octets + octet_length(NEW.topics) - octet_length(OLD.topics)
    WHERE owner_id = NEW.sender_id;
END;

CREATE TRIGGER holdings_contacts_topics_delete AFTER DELETE ON contacts
BEGIN
  UPDATE holdings SET stored_octets = stored_octets - octet_length(OLD.topics) + 2 WHERE owner_id = OLD.sender_id;
END;

CREATE TRIGGER configuration_topics_delete AFTER DELETE ON topics
BEGIN
  UPDATE configuration_version SET value = value + 1;
END;

CREATE TRIGGER configuration_topics_insert AFTER INSERT ON topics
BEGIN
  UPDATE configuration_version SET value = value + 1;
END;

CREATE TRIGGER configuration_topics_update AFTER UPDATE OF id, sender_id, name, description, default_subscribed, visible,
  deleted_at, created_at, updated_at ON topics
BEGIN
  UPDATE configuration_version SET value = value + 1;
END;

-- Made again below, with the topics.
DROP TRIGGER audit_contacts_create;
DROP TRIGGER audit_contacts_update;
DROP TRIGGER audit_contacts_delete;
