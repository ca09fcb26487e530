-- Replies that rules give: those that wait, and those of the last day, by which each author gets one.
-- author: the keyed hash of the address. due_at: NULL once the reply was sent or given up. Times in milliseconds.
CREATE TABLE rule_replies (
  message_id TEXT PRIMARY KEY,
  sender_id TEXT NOT NULL,
  rule_id TEXT NOT NULL,
  template_id TEXT NOT NULL,
  author TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  due_at INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX rule_replies_due ON rule_replies (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX rule_replies_by_author ON rule_replies (rule_id, author);
CREATE INDEX rule_replies_old ON rule_replies (created_at);
CREATE INDEX rule_replies_by_project ON rule_replies (sender_id);

-- Failures of what the rule does, one after another. At a limit it is disabled.
ALTER TABLE rules ADD COLUMN failures INTEGER NOT NULL DEFAULT 0;
