-- The audit trail: one row per change. src/store/engine/audit-triggers.ts makes the triggers that write the rows.
-- account_id: NULL if the change is the installation's, such as that of a lane.
-- changes: JSON, the changed fields as [before, after]. Secrets are '***'. Long strings are cut after 1000 characters.
-- at: milliseconds.
CREATE TABLE audit_log (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  account_id TEXT,
  sender_id TEXT,
  at INTEGER NOT NULL,
  actor_type TEXT NOT NULL CHECK (actor_type IN ('member', 'key', 'cli', 'service')),
  actor_id TEXT,
  actor_name TEXT,
  ip TEXT,
  request_id TEXT,
  action TEXT NOT NULL,
  target_type TEXT NOT NULL,
  target_id TEXT NOT NULL,
  target_name TEXT,
  changes TEXT NOT NULL DEFAULT '{}'
) STRICT;
CREATE INDEX audit_log_by_time ON audit_log (at, seq);
CREATE INDEX audit_log_by_project ON audit_log (sender_id, at, seq) WHERE sender_id IS NOT NULL;
CREATE INDEX audit_log_by_target ON audit_log (target_id, at, seq);
CREATE INDEX audit_log_by_actor ON audit_log (actor_id, at, seq) WHERE actor_id IS NOT NULL;
CREATE INDEX audit_log_by_action ON audit_log (action, at, seq);
CREATE INDEX audit_log_by_kind ON audit_log (target_type, at, seq);
CREATE INDEX audit_log_by_actor_kind ON audit_log (actor_type, at, seq);

-- The one row names who makes the changes of the current transaction. Each write sets it first and clears it at its end, so a
-- program of an older version, which does neither, acts as the service. at: milliseconds; NULL: the database's time.
-- kind `none`: rows go with their project or person, whose removal is one change.
CREATE TABLE audit_actor (
  one INTEGER PRIMARY KEY CHECK (one = 1),
  kind TEXT NOT NULL CHECK (kind IN ('member', 'key', 'cli', 'service', 'none')),
  id TEXT,
  name TEXT,
  ip TEXT,
  request_id TEXT,
  at INTEGER
) STRICT;
INSERT INTO audit_actor (one, kind) VALUES (1, 'service');

-- The fate of mail without a verdict of the spam filter. NULL: what the installation's setting says.
ALTER TABLE senders ADD COLUMN spam_check_fail TEXT CHECK (spam_check_fail IN ('accept', 'defer'));
