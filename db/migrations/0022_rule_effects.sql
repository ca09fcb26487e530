-- Effects of rules after a message is stored: replies with a template, and forwards. Replies of the last day stay, by which each
-- author gets one. Forwards stay with their message. template_id, author: NULL for a forward; author is the keyed hash of the address.
-- email_id: the message that was sent. reason: why none was. due_at: NULL once the effect has ended. Times in milliseconds.
CREATE TABLE rule_effects (
  message_id TEXT NOT NULL REFERENCES messages (id) ON DELETE CASCADE,
  ord INTEGER NOT NULL,
  sender_id TEXT NOT NULL,
  rule_id TEXT NOT NULL,
  template_id TEXT,
  author TEXT,
  email_id TEXT,
  reason TEXT,
  created_at INTEGER NOT NULL,
  due_at INTEGER,
  PRIMARY KEY (message_id, ord)
) WITHOUT ROWID;
CREATE INDEX rule_effects_due ON rule_effects (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX rule_effects_by_author ON rule_effects (rule_id, author) WHERE author IS NOT NULL;
CREATE INDEX rule_effects_by_rule ON rule_effects (rule_id, created_at) WHERE email_id IS NOT NULL;
CREATE INDEX rule_effects_by_email ON rule_effects (email_id) WHERE email_id IS NOT NULL;
CREATE INDEX rule_effects_old ON rule_effects (created_at) WHERE author IS NOT NULL;
CREATE INDEX rule_effects_by_project ON rule_effects (sender_id);

-- No release has written to it.
DROP TABLE rule_replies;

-- The domain in whose name a forward leaves, which is not that of its From. NULL: that of its From.
ALTER TABLE messages ADD COLUMN via_domain TEXT;
