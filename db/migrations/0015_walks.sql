-- The hourly look for counts of days that nothing asks for any more read every project's of every day, and a page of
-- projects sorted all of the account's.
CREATE INDEX usage_by_day ON usage (day);
CREATE INDEX reputation_by_day ON reputation (day);
CREATE INDEX senders_by_account ON senders (account_id, id);
