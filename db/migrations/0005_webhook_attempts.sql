-- The attempts at a webhook delivery, oldest first: a JSON list of {at, httpStatus, response, error}. NULL before the first.
ALTER TABLE webhook_deliveries ADD COLUMN attempt_log TEXT;

DROP TRIGGER holdings_deliveries_update;
CREATE TRIGGER holdings_deliveries_update AFTER UPDATE OF last_response, last_error, attempt_log ON webhook_deliveries
WHEN NEW.last_response IS NOT OLD.last_response OR NEW.last_error IS NOT OLD.last_error
  OR NEW.attempt_log IS NOT OLD.attempt_log
BEGIN
  UPDATE holdings SET stored_octets = stored_octets
    + octet_length(COALESCE(NEW.last_response, '')) + octet_length(COALESCE(NEW.last_error, ''))
    + octet_length(COALESCE(NEW.attempt_log, ''))
    - octet_length(COALESCE(OLD.last_response, '')) - octet_length(COALESCE(OLD.last_error, ''))
    - octet_length(COALESCE(OLD.attempt_log, ''))
    WHERE owner_id = NEW.sender_id;
END;

DROP TRIGGER holdings_deliveries_delete;
CREATE TRIGGER holdings_deliveries_delete AFTER DELETE ON webhook_deliveries
BEGIN
  UPDATE holdings SET stored_octets = stored_octets - 512 - octet_length(COALESCE(OLD.data, ''))
    - octet_length(COALESCE(OLD.last_response, '')) - octet_length(COALESCE(OLD.last_error, ''))
    - octet_length(COALESCE(OLD.attempt_log, ''))
    WHERE owner_id = OLD.sender_id;
END;
