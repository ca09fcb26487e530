-- What letting go of old things asks.

-- A message stays while a webhook is still to hear of it.
CREATE INDEX webhook_deliveries_pending ON webhook_deliveries (message_id) WHERE status = 'pending';

-- A thread that has lost its last message takes what was remembered for it along.
CREATE INDEX thread_references_by_thread ON thread_references (thread_id);

-- Messages that were in the search index and wait for it anew, with the place that they had: they get it again, so
-- that nothing of theirs is left at another one. The index has no contents: what nobody can name, nobody can remove.
CREATE TABLE messages_reentering (
  message_id TEXT PRIMARY KEY REFERENCES messages (id) ON DELETE CASCADE,
  place INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- When a message's bodies, raw mail and attachments' bytes were let go of, its own row staying. NULL: not yet.
ALTER TABLE message_content ADD COLUMN let_go_at INTEGER;
CREATE INDEX message_content_kept ON message_content (message_id) WHERE let_go_at IS NULL;

-- Contents in the database that are worth an object: an object for each small one would cost more than its pages.
CREATE INDEX contents_movable ON contents (id) WHERE place = 'chunks' OR (place = 'row' AND length(bytes) >= 16384);

-- Objects that no content names: on their way into the object store, or (doomed) to be removed from it.
CREATE TABLE stray_objects (
  object TEXT PRIMARY KEY,
  since INTEGER NOT NULL,
  doomed INTEGER NOT NULL DEFAULT 0 CHECK (doomed IN (0, 1))
) STRICT, WITHOUT ROWID;
CREATE INDEX stray_objects_by_age ON stray_objects (doomed, since);
