-- Counts the changes of configuration, whoever makes them and by whatever statement: one row says whether what somebody
-- remembers of those tables still holds. The count of mail received in `inboxes` is no configuration.

CREATE TABLE configuration_version (
  only INTEGER PRIMARY KEY CHECK (only = 1),
  value INTEGER NOT NULL
) STRICT;

INSERT INTO configuration_version (only, value) VALUES (1, 0);

CREATE TRIGGER configuration_accounts_insert AFTER INSERT ON accounts
BEGIN
  UPDATE configuration_version SET value = value + 1;
END;

CREATE TRIGGER configuration_accounts_update AFTER UPDATE ON accounts
BEGIN
  UPDATE configuration_version SET value = value + 1;
END;

CREATE TRIGGER configuration_accounts_delete AFTER DELETE ON accounts
BEGIN
  UPDATE configuration_version SET value = value + 1;
END;

CREATE TRIGGER configuration_senders_insert AFTER INSERT ON senders
BEGIN
  UPDATE configuration_version SET value = value + 1;
END;

CREATE TRIGGER configuration_senders_update AFTER UPDATE ON senders
BEGIN
  UPDATE configuration_version SET value = value + 1;
END;

CREATE TRIGGER configuration_senders_delete AFTER DELETE ON senders
BEGIN
  UPDATE configuration_version SET value = value + 1;
END;

CREATE TRIGGER configuration_api_keys_insert AFTER INSERT ON api_keys
BEGIN
  UPDATE configuration_version SET value = value + 1;
END;

CREATE TRIGGER configuration_api_keys_update AFTER UPDATE ON api_keys
BEGIN
  UPDATE configuration_version SET value = value + 1;
END;

CREATE TRIGGER configuration_api_keys_delete AFTER DELETE ON api_keys
BEGIN
  UPDATE configuration_version SET value = value + 1;
END;

CREATE TRIGGER configuration_domains_insert AFTER INSERT ON domains
BEGIN
  UPDATE configuration_version SET value = value + 1;
END;

CREATE TRIGGER configuration_domains_update AFTER UPDATE ON domains
BEGIN
  UPDATE configuration_version SET value = value + 1;
END;

CREATE TRIGGER configuration_domains_delete AFTER DELETE ON domains
BEGIN
  UPDATE configuration_version SET value = value + 1;
END;

CREATE TRIGGER configuration_dkim_keys_insert AFTER INSERT ON dkim_keys
BEGIN
  UPDATE configuration_version SET value = value + 1;
END;

CREATE TRIGGER configuration_dkim_keys_update AFTER UPDATE ON dkim_keys
BEGIN
  UPDATE configuration_version SET value = value + 1;
END;

CREATE TRIGGER configuration_dkim_keys_delete AFTER DELETE ON dkim_keys
BEGIN
  UPDATE configuration_version SET value = value + 1;
END;

CREATE TRIGGER configuration_inboxes_insert AFTER INSERT ON inboxes
BEGIN
  UPDATE configuration_version SET value = value + 1;
END;

CREATE TRIGGER configuration_inboxes_update AFTER UPDATE OF id, sender_id, domain_id, address, display_name, type, created_at ON inboxes
BEGIN
  UPDATE configuration_version SET value = value + 1;
END;

CREATE TRIGGER configuration_inboxes_delete AFTER DELETE ON inboxes
BEGIN
  UPDATE configuration_version SET value = value + 1;
END;

CREATE TRIGGER configuration_webhooks_insert AFTER INSERT ON webhooks
BEGIN
  UPDATE configuration_version SET value = value + 1;
END;

CREATE TRIGGER configuration_webhooks_update AFTER UPDATE ON webhooks
BEGIN
  UPDATE configuration_version SET value = value + 1;
END;

CREATE TRIGGER configuration_webhooks_delete AFTER DELETE ON webhooks
BEGIN
  UPDATE configuration_version SET value = value + 1;
END;
