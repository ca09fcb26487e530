-- accept: whose mail the inbox takes.
ALTER TABLE inboxes ADD COLUMN accept TEXT NOT NULL DEFAULT 'anyone' CHECK (
  accept = 'anyone' OR accept = 'authenticated' OR accept = 'allowed');
-- trust: how far the sender of a received message is trusted; NULL: unknown, or sent.
ALTER TABLE messages ADD COLUMN trust TEXT;
CREATE INDEX messages_by_trust ON messages (sender_id, trust, id) WHERE trust IS NOT NULL;
-- inbox_ids: JSON, the only inboxes that the key sees. NULL: all.
ALTER TABLE api_keys ADD COLUMN inbox_ids TEXT;

-- Senders that an inbox, or if inbox_id is NULL all of a project, takes or refuses. pattern: the key of an address, or `@domain`.
CREATE TABLE listed_senders (
  id TEXT PRIMARY KEY,
  sender_id TEXT NOT NULL REFERENCES senders (id),
  inbox_id TEXT REFERENCES inboxes (id) ON DELETE CASCADE,
  pattern TEXT NOT NULL,
  list TEXT NOT NULL CHECK (list IN ('allow', 'block')),
  created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX listed_senders_by_pattern ON listed_senders (sender_id, pattern, COALESCE(inbox_id, ''));
CREATE INDEX listed_senders_by_place ON listed_senders (sender_id, inbox_id, id);
CREATE INDEX listed_senders_by_inbox ON listed_senders (inbox_id) WHERE inbox_id IS NOT NULL;

CREATE TRIGGER configuration_listed_senders_delete AFTER DELETE ON listed_senders
BEGIN
  UPDATE configuration_version SET value = value + 1;
END;

CREATE TRIGGER configuration_listed_senders_insert AFTER INSERT ON listed_senders
BEGIN
  UPDATE configuration_version SET value = value + 1;
END;

CREATE TRIGGER configuration_listed_senders_update AFTER UPDATE ON listed_senders
BEGIN
  UPDATE configuration_version SET value = value + 1;
END;

-- Made again, with the new column.
DROP TRIGGER configuration_inboxes_update;
CREATE TRIGGER configuration_inboxes_update AFTER UPDATE OF id, sender_id, domain_id, address, display_name, type, created_at, accept ON inboxes
BEGIN
  UPDATE configuration_version SET value = value + 1;
END;

-- Made again below, with the new columns.
DROP TRIGGER audit_inboxes_create;
DROP TRIGGER audit_inboxes_update;
DROP TRIGGER audit_inboxes_delete;
DROP TRIGGER audit_api_keys_create;
DROP TRIGGER audit_api_keys_update;
DROP TRIGGER audit_api_keys_delete;
