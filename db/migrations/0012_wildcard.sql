-- wildcard: a domain whose zone we hold has an MX record for every name below it, and inboxes there.
ALTER TABLE domains ADD COLUMN wildcard INTEGER NOT NULL DEFAULT 0 CHECK (wildcard = 0 OR wildcard = 1);
CREATE INDEX domains_wildcard ON domains (account_id, sender_id) WHERE wildcard = 1;
ALTER TABLE guards ADD COLUMN not_wildcard INTEGER NOT NULL DEFAULT 0;
ALTER TABLE guards ADD COLUMN wildcard_in_the_way INTEGER NOT NULL DEFAULT 0;
ALTER TABLE guards ADD COLUMN inboxes_below INTEGER NOT NULL DEFAULT 0;

CREATE TRIGGER zones_domain_wildcard AFTER UPDATE OF wildcard ON domains WHEN NEW.served = 1
BEGIN
  UPDATE zones SET due_at = 0 WHERE name = NEW.name;
END;

-- Made again below, with the wildcard.
DROP TRIGGER audit_domains_create;
DROP TRIGGER audit_domains_update;
DROP TRIGGER audit_domains_delete;
