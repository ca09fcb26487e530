-- The typed values that contacts may have. fallback: JSON, what a template gets if a contact has no value; NULL: nothing.
-- deleted_at: milliseconds; its values are being removed from the contacts. walked_to: the last contact without a value.
CREATE TABLE contact_properties (
  id TEXT PRIMARY KEY,
  sender_id TEXT NOT NULL REFERENCES senders (id),
  name TEXT NOT NULL,
  type TEXT NOT NULL CHECK (type IN ('string', 'number', 'boolean', 'date')),
  fallback TEXT,
  deleted_at INTEGER,
  walked_to TEXT NOT NULL DEFAULT '',
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX contact_properties_by_name ON contact_properties (sender_id, name);
CREATE INDEX contact_properties_by_id ON contact_properties (sender_id, id);
CREATE INDEX contact_properties_deleted ON contact_properties (deleted_at) WHERE deleted_at IS NOT NULL;

-- properties: JSON, values by the name of their property. consent: JSON, a list of {at, subscribed, how, ip?}, at in milliseconds.
ALTER TABLE contacts ADD COLUMN properties TEXT NOT NULL DEFAULT '{}';
ALTER TABLE contacts ADD COLUMN consent TEXT NOT NULL DEFAULT '[]';

-- Contacts from before the step were counted without the octets of the empty values.
CREATE TRIGGER holdings_contacts_properties_insert AFTER INSERT ON contacts
BEGIN
  UPDATE holdings SET stored_octets = stored_octets + octet_length(NEW.properties) + octet_length(NEW.consent) - 4
    WHERE owner_id = NEW.sender_id;
END;

CREATE TRIGGER holdings_contacts_properties_update AFTER UPDATE OF properties, consent ON contacts
BEGIN
  UPDATE holdings SET stored_octets = stored_octets + octet_length(NEW.properties) + octet_length(NEW.consent)
    - octet_length(OLD.properties) - octet_length(OLD.consent) WHERE owner_id = NEW.sender_id;
END;

CREATE TRIGGER holdings_contacts_properties_delete AFTER DELETE ON contacts
BEGIN
  UPDATE holdings SET stored_octets = stored_octets - octet_length(OLD.properties) - octet_length(OLD.consent) + 4
    WHERE owner_id = OLD.sender_id;
END;

-- How far the values of a deleted property are removed is not configuration.
CREATE TRIGGER configuration_contact_properties_delete AFTER DELETE ON contact_properties
BEGIN
  UPDATE configuration_version SET value = value + 1;
END;

CREATE TRIGGER configuration_contact_properties_insert AFTER INSERT ON contact_properties
BEGIN
  UPDATE configuration_version SET value = value + 1;
END;

CREATE TRIGGER configuration_contact_properties_update AFTER UPDATE OF name, type, fallback, deleted_at ON contact_properties
BEGIN
  UPDATE configuration_version SET value = value + 1;
END;

-- Made again below, with the properties.
DROP TRIGGER audit_contacts_create;
DROP TRIGGER audit_contacts_update;
DROP TRIGGER audit_contacts_delete;
