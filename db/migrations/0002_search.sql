-- What lists of messages search and filter by.

-- A message's place in the search index: sixteen places for each millisecond since the Unix epoch, rising in the order
-- of insertion. No message stands before the time in its id, none a quarter of a second after it; see message-index.ts.
-- NULL: not yet in the index.
ALTER TABLE messages ADD COLUMN position INTEGER;
CREATE INDEX messages_by_position ON messages (position);
CREATE INDEX messages_unindexed ON messages (id) WHERE position IS NULL;

-- Posting lists only: for each term the positions of the messages that have it, newest read first. The terms are ours
-- (search-terms.ts), each begins with its project: another project's messages are never walked over.
CREATE VIRTUAL TABLE message_terms USING fts5 (terms, content='', columnsize=0, detail=none,
  tokenize="ascii tokenchars '!#$%&()*+,-./:;<=>?@[\]^_`{|}~'");
-- Pieces of the index are merged in eights, not fours: a write costs less, a search opens a few pieces more.
INSERT INTO message_terms (message_terms, rank) VALUES ('automerge', 8);
