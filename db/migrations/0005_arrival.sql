-- What was found and done when a message arrived, apart from its authentication: JSON with `spam`. NULL: nothing.
ALTER TABLE message_content ADD COLUMN arrival TEXT;
