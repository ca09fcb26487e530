-- Accounts at certificate authorities (RFC 8555 §7.1.2), one for each directory. The key is sealed.
CREATE TABLE acme_accounts (
  directory TEXT PRIMARY KEY,
  private_key TEXT NOT NULL,
  -- NULL until the CA has registered the key.
  url TEXT,
  contact TEXT NOT NULL,
  -- JSON: the names by which CAA records let the CA issue.
  caa_names TEXT NOT NULL DEFAULT '[]',
  created_at INTEGER NOT NULL
) STRICT;

-- Certificates that we get and renew. Both keys are sealed. `directory` and `names` are those of the next order.
CREATE TABLE certificates (
  id TEXT PRIMARY KEY,
  directory TEXT NOT NULL,
  -- JSON.
  names TEXT NOT NULL,
  -- PEM; NULL until the first one is issued.
  chain TEXT,
  private_key TEXT,
  issued_at INTEGER,
  not_after INTEGER,
  renew_at INTEGER,
  -- The order under way.
  order_url TEXT,
  order_key TEXT,
  order_at INTEGER,
  due_at INTEGER NOT NULL,
  failures INTEGER NOT NULL DEFAULT 0,
  last_error TEXT,
  last_error_at INTEGER,
  CHECK ((chain IS NULL) = (private_key IS NULL)),
  CHECK ((chain IS NULL) = (issued_at IS NULL)),
  CHECK ((chain IS NULL) = (not_after IS NULL)),
  CHECK ((order_url IS NULL) = (order_at IS NULL))
) STRICT;
CREATE INDEX certificates_by_due ON certificates (due_at);

-- TXT records that answer the dns-01 challenges of an order (RFC 8555 §8.4).
CREATE TABLE acme_challenges (
  name TEXT NOT NULL,
  value TEXT NOT NULL,
  certificate_id TEXT NOT NULL REFERENCES certificates (id) ON DELETE CASCADE,
  published_at INTEGER NOT NULL,
  PRIMARY KEY (name, value)
) STRICT;
CREATE INDEX acme_challenges_by_certificate ON acme_challenges (certificate_id);
