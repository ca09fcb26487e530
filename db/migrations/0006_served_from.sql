-- When every process uses a certificate with this key. A renewal with the same key keeps it. NULL if there is no chain.
ALTER TABLE certificates ADD COLUMN served_from INTEGER;
UPDATE certificates SET served_from = issued_at + 60000;
