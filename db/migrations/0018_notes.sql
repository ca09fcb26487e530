-- Notes of the team in a thread. They never leave by mail. author: JSON, {type, id, name} as in the audit trail.
CREATE TABLE thread_notes (
  id TEXT PRIMARY KEY,
  sender_id TEXT NOT NULL REFERENCES senders (id),
  thread_id TEXT NOT NULL REFERENCES threads (id) ON DELETE CASCADE,
  author TEXT NOT NULL,
  text TEXT NOT NULL,
  created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX thread_notes_by_thread ON thread_notes (thread_id, id);
CREATE INDEX thread_notes_by_project ON thread_notes (sender_id, id);

CREATE TRIGGER holdings_thread_notes_insert AFTER INSERT ON thread_notes
BEGIN
  UPDATE holdings SET stored_octets = stored_octets + 512 + octet_length(NEW.text) WHERE owner_id = NEW.sender_id;
END;

CREATE TRIGGER holdings_thread_notes_delete AFTER DELETE ON thread_notes
BEGIN
  UPDATE holdings SET stored_octets = stored_octets - 512 - octet_length(OLD.text) WHERE owner_id = OLD.sender_id;
END;

-- Messages that wait until a person sends them. item: JSON, the fields of a send item. thread_id: the thread that it answers.
-- version: counts the changes, so that a person sends only what they have seen.
CREATE TABLE drafts (
  id TEXT PRIMARY KEY,
  sender_id TEXT NOT NULL REFERENCES senders (id),
  thread_id TEXT REFERENCES threads (id) ON DELETE CASCADE,
  author TEXT NOT NULL,
  item TEXT NOT NULL,
  version INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX drafts_by_project ON drafts (sender_id, id);
CREATE INDEX drafts_by_thread ON drafts (thread_id, id) WHERE thread_id IS NOT NULL;

CREATE TRIGGER holdings_drafts_insert AFTER INSERT ON drafts
BEGIN
  UPDATE holdings SET stored_octets = stored_octets + 512 + octet_length(NEW.item) WHERE owner_id = NEW.sender_id;
END;

CREATE TRIGGER holdings_drafts_update AFTER UPDATE OF item ON drafts
BEGIN
  UPDATE holdings SET stored_octets = stored_octets + octet_length(NEW.item) - octet_length(OLD.item)
    WHERE owner_id = NEW.sender_id;
END;

CREATE TRIGGER holdings_drafts_delete AFTER DELETE ON drafts
BEGIN
  UPDATE holdings SET stored_octets = stored_octets - 512 - octet_length(OLD.item) WHERE owner_id = OLD.sender_id;
END;

-- Text that the dashboard puts below a reply.
ALTER TABLE inboxes ADD COLUMN signature TEXT NOT NULL DEFAULT '';

-- Made again below, with the signature.
DROP TRIGGER audit_inboxes_create;
DROP TRIGGER audit_inboxes_update;
DROP TRIGGER audit_inboxes_delete;
