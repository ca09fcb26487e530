-- Opens and clicks recorded of a recipient, those of machines apart: what bounds them, and tells the first open.
-- A table of its own: the rows of the outbox are not written again for a look at a mail.
CREATE TABLE engagement (
  message_id TEXT NOT NULL REFERENCES messages (id) ON DELETE CASCADE,
  ord INTEGER NOT NULL,
  opens INTEGER NOT NULL DEFAULT 0,
  machine_opens INTEGER NOT NULL DEFAULT 0,
  clicks INTEGER NOT NULL DEFAULT 0,
  machine_clicks INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (message_id, ord)
) STRICT, WITHOUT ROWID;
