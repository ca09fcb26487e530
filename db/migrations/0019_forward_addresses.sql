-- Addresses that rules may forward mail to, once their owner has confirmed that. asked_at: when the last link was mailed.
-- mails: links mailed on that UTC day. removed_at: when it was removed. The row stays for a day, so that its links still count.
CREATE TABLE forward_addresses (
  id TEXT PRIMARY KEY,
  sender_id TEXT NOT NULL REFERENCES senders (id),
  email TEXT NOT NULL,
  email_key TEXT NOT NULL,
  confirmed_at INTEGER,
  asked_at INTEGER NOT NULL,
  mails INTEGER NOT NULL,
  removed_at INTEGER,
  created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX forward_addresses_by_project ON forward_addresses (sender_id, email_key);
CREATE INDEX forward_addresses_by_email ON forward_addresses (email_key);
CREATE INDEX forward_addresses_removed ON forward_addresses (removed_at) WHERE removed_at IS NOT NULL;

ALTER TABLE guards ADD COLUMN too_many_links INTEGER NOT NULL DEFAULT 0;
