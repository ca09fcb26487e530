-- The people of an account, who sign in to the dashboard with a link that they get by mail.
-- sender_ids: JSON, the projects that the member is limited to; '[]': all. Times in milliseconds.
CREATE TABLE members (
  id TEXT PRIMARY KEY,
  account_id TEXT NOT NULL REFERENCES accounts (id),
  email TEXT NOT NULL,
  role TEXT NOT NULL CHECK (role IN ('owner', 'developer', 'support', 'viewer')),
  sender_ids TEXT NOT NULL DEFAULT '[]',
  status TEXT NOT NULL CHECK (status IN ('invited', 'active', 'disabled')),
  -- Id of the key or member that invited; NULL: the command line.
  invited_by TEXT,
  last_seen_at INTEGER,
  created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
-- A link names a member by address alone, so an address belongs to one account.
CREATE UNIQUE INDEX members_email ON members (email);
CREATE INDEX members_account ON members (account_id, id);

CREATE TABLE member_sessions (
  id TEXT PRIMARY KEY,
  member_id TEXT NOT NULL REFERENCES members (id) ON DELETE CASCADE,
  ip TEXT,
  user_agent TEXT,
  last_used_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,
  created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX member_sessions_member ON member_sessions (member_id, id);

-- Links that sign in once. Only the SHA-256 of a token is stored. An unused one stays for an hour, to be counted.
CREATE TABLE sign_in_links (
  token_hash TEXT PRIMARY KEY,
  member_id TEXT NOT NULL REFERENCES members (id) ON DELETE CASCADE,
  expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX sign_in_links_member ON sign_in_links (member_id, expires_at);

-- The time when a member was last seen is not configuration.
CREATE TRIGGER configuration_members_delete AFTER DELETE ON members
BEGIN
  UPDATE configuration_version SET value = value + 1;
END;

CREATE TRIGGER configuration_members_insert AFTER INSERT ON members
BEGIN
  UPDATE configuration_version SET value = value + 1;
END;

CREATE TRIGGER configuration_members_update AFTER UPDATE OF id, account_id, email, role, sender_ids, status, created_at ON members
BEGIN
  UPDATE configuration_version SET value = value + 1;
END;

CREATE TRIGGER configuration_member_sessions_delete AFTER DELETE ON member_sessions
BEGIN
  UPDATE configuration_version SET value = value + 1;
END;

CREATE TRIGGER configuration_member_sessions_insert AFTER INSERT ON member_sessions
BEGIN
  UPDATE configuration_version SET value = value + 1;
END;

CREATE TRIGGER configuration_member_sessions_update AFTER UPDATE OF id, member_id, expires_at ON member_sessions
BEGIN
  UPDATE configuration_version SET value = value + 1;
END;
