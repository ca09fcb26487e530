-- Webhook deliveries that a write has left to be made behind it, since they are many: the events, the webhooks that were
-- enabled then, and how far it has come. `id` is that of the first event; first and last message bound what it tells of.
CREATE TABLE fan_outs (
  sender_id TEXT NOT NULL,
  id TEXT NOT NULL,
  first_message TEXT NOT NULL,
  last_message TEXT NOT NULL,
  webhooks TEXT NOT NULL,
  events TEXT NOT NULL,
  done INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (sender_id, id)
) STRICT;
CREATE INDEX fan_outs_by_message ON fan_outs (sender_id, first_message, last_message);
