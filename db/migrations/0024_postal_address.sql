-- postal_address: shown by every broadcast of the project. NULL: it asks for none.
ALTER TABLE senders ADD COLUMN postal_address TEXT;

-- Made again below, with the address.
DROP TRIGGER audit_senders_create;
DROP TRIGGER audit_senders_update;
DROP TRIGGER audit_senders_delete;
