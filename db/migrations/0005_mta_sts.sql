-- MTA-STS policies of other people's domains (RFC 8461). They outlive the process: a restart must not open a window
-- in which mail to a domain that enforces TLS could go without it.
CREATE TABLE mta_sts_policies (
  domain TEXT NOT NULL PRIMARY KEY,
  policy_id TEXT NOT NULL,
  mode TEXT NOT NULL CHECK (mode IN ('enforce', 'testing', 'none')),
  mx TEXT NOT NULL,
  max_age_seconds INTEGER NOT NULL,
  fetched_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX mta_sts_policies_by_expiry ON mta_sts_policies (expires_at);
