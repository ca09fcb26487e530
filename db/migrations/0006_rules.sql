-- What a project does with mail as it arrives, in the order of position and id. inbox_id: NULL for every inbox.
-- conditions, actions: JSON, `when` and `then` of the API.
CREATE TABLE rules (
  id TEXT PRIMARY KEY,
  sender_id TEXT NOT NULL REFERENCES senders (id),
  inbox_id TEXT REFERENCES inboxes (id) ON DELETE CASCADE,
  position INTEGER NOT NULL,
  name TEXT NOT NULL,
  enabled INTEGER NOT NULL CHECK (enabled IN (0, 1)),
  conditions TEXT NOT NULL,
  actions TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX rules_by_position ON rules (sender_id, position, id);
CREATE INDEX rules_by_inbox ON rules (inbox_id) WHERE inbox_id IS NOT NULL;

CREATE TRIGGER configuration_rules_delete AFTER DELETE ON rules
BEGIN
  UPDATE configuration_version SET value = value + 1;
END;

CREATE TRIGGER configuration_rules_insert AFTER INSERT ON rules
BEGIN
  UPDATE configuration_version SET value = value + 1;
END;

CREATE TRIGGER configuration_rules_update AFTER UPDATE OF id, sender_id, inbox_id, position, name, enabled, conditions, actions,
  created_at, updated_at ON rules
BEGIN
  UPDATE configuration_version SET value = value + 1;
END;
