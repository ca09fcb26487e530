-- What a team does with its threads: labels, a person, a folder, notes and drafts.
-- labels: JSON. folder_until: the time when the thread leaves its folder, milliseconds. A snoozed one returns to the inbox; what is spam or
-- in the trash is deleted. NULL in the inbox.
ALTER TABLE threads ADD COLUMN labels TEXT NOT NULL DEFAULT '[]';
ALTER TABLE threads ADD COLUMN assignee_id TEXT;
ALTER TABLE threads ADD COLUMN folder TEXT NOT NULL DEFAULT 'inbox' CHECK (
  folder = 'inbox' OR folder = 'spam' OR folder = 'trash' OR folder = 'snoozed');
ALTER TABLE threads ADD COLUMN folder_until INTEGER;
CREATE INDEX threads_by_folder ON threads (sender_id, folder, last_message_at, id) WHERE folder <> 'inbox';
CREATE INDEX threads_leaving ON threads (folder_until) WHERE folder_until IS NOT NULL;
CREATE INDEX threads_by_assignee ON threads (assignee_id, last_message_at, id) WHERE assignee_id IS NOT NULL;

-- Appended to replies from the inbox that ask for it.
ALTER TABLE inboxes ADD COLUMN signature_text TEXT;
ALTER TABLE inboxes ADD COLUMN signature_html TEXT;

-- Remarks in a thread that are never mailed. author_type, author_id and author_name: who wrote it, as in the audit trail.
CREATE TABLE thread_notes (
  id TEXT PRIMARY KEY NOT NULL,
  sender_id TEXT NOT NULL REFERENCES senders (id),
  thread_id TEXT NOT NULL REFERENCES threads (id) ON DELETE CASCADE,
  text TEXT NOT NULL,
  author_type TEXT NOT NULL,
  author_id TEXT,
  author_name TEXT,
  created_at INTEGER NOT NULL
);
CREATE INDEX thread_notes_by_thread ON thread_notes (thread_id, id);
CREATE INDEX thread_notes_by_sender ON thread_notes (sender_id, id);

-- Messages that somebody has written and nobody has sent. item: JSON of the send item, or of the reply if thread_id is set.
-- message_id: the message that was made of it; item is '{}' then.
CREATE TABLE drafts (
  id TEXT PRIMARY KEY NOT NULL,
  sender_id TEXT NOT NULL REFERENCES senders (id),
  thread_id TEXT REFERENCES threads (id) ON DELETE CASCADE,
  subject TEXT NOT NULL,
  to_list TEXT NOT NULL,
  item TEXT NOT NULL,
  author_type TEXT NOT NULL,
  author_id TEXT,
  author_name TEXT,
  message_id TEXT REFERENCES messages (id) ON DELETE CASCADE,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
);
CREATE INDEX drafts_by_sender ON drafts (sender_id, id);
CREATE INDEX drafts_by_thread ON drafts (thread_id, id) WHERE thread_id IS NOT NULL;
CREATE INDEX drafts_by_message ON drafts (message_id) WHERE message_id IS NOT NULL;

CREATE TRIGGER holdings_thread_notes_insert AFTER INSERT ON thread_notes
BEGIN
  UPDATE holdings SET stored_octets = stored_octets + 512 + octet_length(NEW.text) WHERE owner_id = NEW.sender_id;
END;

CREATE TRIGGER holdings_thread_notes_delete AFTER DELETE ON thread_notes
BEGIN
  UPDATE holdings SET stored_octets = stored_octets - 512 - octet_length(OLD.text) WHERE owner_id = OLD.sender_id;
END;

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
