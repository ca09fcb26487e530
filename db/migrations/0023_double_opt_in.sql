-- double_opt_in: people join the topic only by a mailed link.
ALTER TABLE topics ADD COLUMN double_opt_in INTEGER NOT NULL DEFAULT 0 CHECK (double_opt_in = 0 OR double_opt_in = 1);

-- Links that were mailed to people who join topics within the last day. They limit how many more an address gets. address: the hash of its key.
CREATE TABLE join_links (
  id INTEGER PRIMARY KEY,
  sender_id TEXT NOT NULL,
  address TEXT NOT NULL,
  mailed_at INTEGER NOT NULL
) STRICT;
CREATE INDEX join_links_by_address ON join_links (address, mailed_at);
CREATE INDEX join_links_by_project ON join_links (sender_id, mailed_at);
CREATE INDEX join_links_old ON join_links (mailed_at);

-- Made again, with the new column.
DROP TRIGGER configuration_topics_update;
CREATE TRIGGER configuration_topics_update AFTER UPDATE OF id, sender_id, name, description, default_subscribed, visible,
  double_opt_in, deleted_at, created_at, updated_at ON topics
BEGIN
  UPDATE configuration_version SET value = value + 1;
END;

-- Made again below, with the new column.
DROP TRIGGER audit_topics_create;
DROP TRIGGER audit_topics_update;
DROP TRIGGER audit_topics_delete;
