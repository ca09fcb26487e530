-- What the service tells people: one row per fact that needs someone, open while `ended_at` is NULL. What happens once ends as it begins.
-- sender_id: NULL if it concerns the whole account. subject_id: what it is about; subject: its name for people, never an address.
-- detail: what a check said. mailed_at: NULL until it was mailed; 0 if it never will be. Times in milliseconds.
CREATE TABLE notices (
  id TEXT PRIMARY KEY,
  account_id TEXT NOT NULL REFERENCES accounts (id),
  sender_id TEXT,
  kind TEXT NOT NULL,
  subject_id TEXT NOT NULL,
  subject TEXT NOT NULL,
  detail TEXT,
  at INTEGER NOT NULL,
  seen_at INTEGER,
  ended_at INTEGER,
  mailed_at INTEGER
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX notices_open ON notices (kind, subject_id, account_id) WHERE ended_at IS NULL;
CREATE INDEX notices_by_account ON notices (account_id, id);
CREATE INDEX notices_by_project ON notices (sender_id, id) WHERE sender_id IS NOT NULL;
CREATE INDEX notices_mailed ON notices (account_id, kind, subject_id, mailed_at) WHERE mailed_at > 0;
CREATE INDEX notices_ended ON notices (ended_at) WHERE ended_at IS NOT NULL;
CREATE INDEX notices_to_mail ON notices (account_id, id) WHERE mailed_at IS NULL;

-- Who gets an account's notices. to_list: JSON, the addresses; NULL: the owner's. off: JSON, kinds that are not sent.
-- webhook_id: the webhook of the account's hidden project that gets them.
CREATE TABLE notice_settings (
  account_id TEXT PRIMARY KEY REFERENCES accounts (id),
  to_list TEXT,
  off TEXT NOT NULL DEFAULT '[]',
  webhook_id TEXT
) STRICT, WITHOUT ROWID;
