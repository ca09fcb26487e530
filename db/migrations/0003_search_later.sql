-- Messages enter the search index behind their acceptance, in batches; until then `position` is NULL and a search reads
-- them from these few. By project, so that one project's backlog slows no other's search.
DROP INDEX messages_unindexed;
CREATE INDEX messages_unindexed ON messages (sender_id, id) WHERE position IS NULL;
-- Without the waiting ones: an accepted message costs no entry here.
DROP INDEX messages_by_position;
CREATE INDEX messages_by_position ON messages (position) WHERE position IS NOT NULL;

-- Messages in the index whose final status is not in it yet. A status that is no longer true stays in the index; what
-- is found there is compared with the message.
CREATE TABLE messages_settled (
  message_id TEXT PRIMARY KEY REFERENCES messages (id) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;
INSERT INTO messages_settled SELECT id FROM messages
  WHERE position IS NOT NULL AND status NOT IN ('accepted', 'queued', 'sending', 'delivery_delayed');
CREATE TRIGGER messages_settle AFTER UPDATE OF status ON messages
WHEN NEW.status <> OLD.status AND NEW.position IS NOT NULL
  AND NEW.status NOT IN ('accepted', 'queued', 'sending', 'delivery_delayed')
BEGIN
  INSERT INTO messages_settled (message_id) VALUES (NEW.id) ON CONFLICT DO NOTHING;
END;

-- A search opens every piece of the index: quiet moments merge any two of a size.
INSERT INTO message_terms (message_terms, rank) VALUES ('usermerge', 2);
