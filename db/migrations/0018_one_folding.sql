-- A text is found by any spelling of it (i and İ, ß and ss) in messages as in other lists. By which rule a message entered
-- the search index, where it has (1: its letters differ as they stand; 2: they are compared as elsewhere). Those of rule 1
-- enter it anew behind everything else, unless they are ASCII alone, of which both rules make the same.
ALTER TABLE messages ADD COLUMN terms_rule INTEGER NOT NULL DEFAULT 1;
-- Whatever follows a NUL is counted as octets alone, so that a message with one is here as well.
CREATE INDEX messages_older_terms ON messages (position) WHERE position IS NOT NULL AND terms_rule < 2
  AND length(CAST(from_email || COALESCE(from_name, '') || to_list || cc_list || bcc_list || subject AS BLOB))
    <> length(from_email || COALESCE(from_name, '') || to_list || cc_list || bcc_list || subject);
-- Leaving the index for another subject: it may be a program before this step that enters the message again, by rule 1.
CREATE TRIGGER messages_reenter AFTER INSERT ON messages_reentering
BEGIN
  UPDATE messages SET terms_rule = 1 WHERE id = NEW.message_id;
END;
