-- Tokens of links that sign a browser in once. Only the hash is kept. expires_at: milliseconds.
CREATE TABLE start_tokens (
  token_hash TEXT PRIMARY KEY,
  key_id TEXT NOT NULL REFERENCES api_keys (id),
  expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
