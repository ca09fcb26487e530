-- Unsubscriptions of addresses that were erased. address: a keyed hash, as in the suppressions.
CREATE TABLE erased_unsubscriptions (
  sender_id TEXT NOT NULL REFERENCES senders (id),
  address TEXT NOT NULL,
  PRIMARY KEY (sender_id, address)
) STRICT, WITHOUT ROWID;
