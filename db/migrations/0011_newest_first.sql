-- The search index counts its rows against time from here on: FTS5 reads posting lists upwards several times as fast as
-- downwards, and lists begin with the newest. All messages enter it anew, behind everything else.
INSERT INTO message_terms (message_terms) VALUES ('delete-all');
UPDATE messages SET position = NULL WHERE position IS NOT NULL;
DELETE FROM messages_settled;
DELETE FROM messages_reentering;
