-- Files of contacts or suppressions that a project imports. A file is stored in parts while it is uploaded. Parts are committed in
-- their order, each with its results in one write.
-- status: `uploading` until the file is whole, then `running`, then `done`; `dropped`: the upload failed.
-- parts: number of parts, of which `done_parts` are committed. touched_at: milliseconds of the last change.
CREATE TABLE imports (
  id TEXT PRIMARY KEY,
  sender_id TEXT NOT NULL REFERENCES senders (id),
  kind TEXT NOT NULL CHECK (kind IN ('contacts', 'suppressions')),
  status TEXT NOT NULL CHECK (status IN ('uploading', 'running', 'done', 'dropped')),
  parts INTEGER NOT NULL DEFAULT 0,
  done_parts INTEGER NOT NULL DEFAULT 0,
  row_count INTEGER NOT NULL DEFAULT 0,
  created INTEGER NOT NULL DEFAULT 0,
  updated INTEGER NOT NULL DEFAULT 0,
  unchanged INTEGER NOT NULL DEFAULT 0,
  failed INTEGER NOT NULL DEFAULT 0,
  touched_at INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  ended_at INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX imports_by_sender ON imports (sender_id, status);
CREATE INDEX imports_open ON imports (status, id) WHERE status <> 'done';

-- content: JSON, a list of rows [number, address, values or null, error or null]; once the part is committed [number, address,
-- outcome, error or null]. version: grows when rows of an erased person are taken out.
CREATE TABLE import_parts (
  import_id TEXT NOT NULL REFERENCES imports (id),
  ord INTEGER NOT NULL,
  sender_id TEXT NOT NULL,
  content TEXT NOT NULL,
  version INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (import_id, ord)
) STRICT;
CREATE INDEX import_parts_by_sender ON import_parts (sender_id, import_id, ord);

CREATE TRIGGER holdings_import_parts_insert AFTER INSERT ON import_parts
BEGIN
  UPDATE holdings SET stored_octets = stored_octets + 256 + octet_length(NEW.content) WHERE owner_id = NEW.sender_id;
END;

CREATE TRIGGER holdings_import_parts_update AFTER UPDATE OF content ON import_parts
BEGIN
  UPDATE holdings SET stored_octets = stored_octets + octet_length(NEW.content) - octet_length(OLD.content)
    WHERE owner_id = NEW.sender_id;
END;

CREATE TRIGGER holdings_import_parts_delete AFTER DELETE ON import_parts
BEGIN
  UPDATE holdings SET stored_octets = stored_octets - 256 - octet_length(OLD.content) WHERE owner_id = OLD.sender_id;
END;
