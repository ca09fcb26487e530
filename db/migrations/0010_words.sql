-- The search index of words (word-index.ts): posting lists of hashes. Its rows are places, which are dense, so the lists are
-- small. A place falls as messages come, so that a walk upwards begins with the newest. The place of a message never changes.
CREATE VIRTUAL TABLE message_words USING fts5 (terms, content='', contentless_delete=1, detail=none,
  tokenize="ascii tokenchars '!#$%&()*+,-./:;<=>?@[\]^_`{|}~'");
INSERT INTO message_words (message_words, rank) VALUES ('automerge', 8);
INSERT INTO message_words (message_words, rank) VALUES ('usermerge', 2);

-- The places of messages whose contents are kept, with their positions, by which a search finds the messages.
CREATE TABLE word_places (
  place INTEGER PRIMARY KEY,
  position INTEGER NOT NULL
) STRICT;
ALTER TABLE messages ADD COLUMN word_place INTEGER;

-- newest: the last place given. indexed: places below this one wait for the index. oldest: the last place given to a message from
-- before this step. filled: messages from before this step wait up to this position; NULL: none do.
-- highest: the highest position that has a place. lateness: the largest distance from there down to the position of a new message.
CREATE TABLE word_progress (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  newest INTEGER NOT NULL,
  indexed INTEGER NOT NULL,
  oldest INTEGER NOT NULL,
  filled INTEGER,
  highest INTEGER NOT NULL,
  lateness INTEGER NOT NULL
) STRICT;
INSERT INTO word_progress (id, newest, indexed, oldest, filled, highest, lateness)
  SELECT 1, 17179869184, 17179869184, 17179869183, position, COALESCE(position, 0), 0
  FROM (SELECT (SELECT position FROM messages WHERE position IS NOT NULL ORDER BY position DESC LIMIT 1) AS position);

-- Indexed messages that have got another text since.
CREATE TABLE words_changed (
  place INTEGER PRIMARY KEY
) STRICT;

CREATE TRIGGER words_message_position AFTER UPDATE OF position ON messages
WHEN OLD.position IS NULL AND NEW.position IS NOT NULL
BEGIN
  UPDATE word_progress SET newest = newest - 1, highest = MAX(highest, NEW.position),
    lateness = MAX(lateness, highest - NEW.position);
  INSERT INTO word_places (place, position) SELECT newest, NEW.position FROM word_progress;
  UPDATE messages SET word_place = (SELECT newest FROM word_progress) WHERE id = NEW.id;
END;
CREATE TRIGGER words_message_delete AFTER DELETE ON messages
WHEN OLD.word_place IS NOT NULL
BEGIN
  DELETE FROM word_places WHERE place = OLD.word_place;
END;
CREATE TRIGGER words_content_delete AFTER UPDATE OF content_removed_at ON message_content
WHEN NEW.content_removed_at IS NOT NULL
BEGIN
  DELETE FROM word_places WHERE place = (SELECT word_place FROM messages WHERE id = NEW.message_id);
END;
CREATE TRIGGER words_place_delete AFTER DELETE ON word_places
BEGIN
  DELETE FROM message_words WHERE rowid = OLD.place;
  DELETE FROM words_changed WHERE place = OLD.place;
END;
CREATE TRIGGER words_content_change AFTER UPDATE OF body, rendered ON message_content
WHEN NEW.content_removed_at IS NULL AND NEW.rendered <> OLD.rendered
BEGIN
  INSERT INTO words_changed (place) SELECT place FROM word_places
    WHERE place = (SELECT word_place FROM messages WHERE id = NEW.message_id)
      AND place >= (SELECT indexed FROM word_progress)
    ON CONFLICT DO NOTHING;
END;
