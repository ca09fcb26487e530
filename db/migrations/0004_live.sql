-- Projects whose events clients may follow: by an open stream or a waiting request, or by one that ended within the
-- time in which a client may resume. Only their events are logged, so that other projects pay nothing for it.
-- until: time in milliseconds after which a chore removes the row.
CREATE TABLE watched_projects (
  sender_id TEXT PRIMARY KEY,
  until INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- The newest events of watched projects in the order of their commits, which is not the order of their ids: processes and
-- requests make ids before they write. A number is never used twice, because the newest row is never removed.
CREATE TABLE event_log (
  seq INTEGER PRIMARY KEY,
  sender_id TEXT NOT NULL,
  message_id TEXT NOT NULL,
  event_id TEXT NOT NULL,
  created_at INTEGER NOT NULL
) STRICT;
CREATE INDEX event_log_by_sender ON event_log (sender_id);
CREATE INDEX event_log_by_event ON event_log (event_id);

CREATE TRIGGER event_log_event AFTER INSERT ON events
WHEN EXISTS (SELECT 1 FROM watched_projects WHERE sender_id = NEW.sender_id)
BEGIN
  INSERT INTO event_log (sender_id, message_id, event_id, created_at)
  VALUES (NEW.sender_id, NEW.message_id, NEW.id, NEW.created_at);
END;
