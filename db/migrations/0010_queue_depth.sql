-- Recipients that are due are counted and swept from one index. It holds the status, or counting would look at every
-- row; and in front of it the rest of the sweep's order, or those due in the same millisecond would be sorted for each page.
DROP INDEX recipients_due;
CREATE INDEX recipients_due ON recipients (due_at, message_id, ord, status)
  WHERE due_at IS NOT NULL AND status <> 'accepted';
