-- Large bodies, mail as received and attachments' bytes, each kept once whoever names it. Users name a content by its key, so
-- that the write which adds it needs no id back.

-- key: SHA-256 over the project's id and the SHA-256 of the bytes as they are read back; of those that an earlier schema kept, a name made of their owner's.
-- refs: how many messages and attachments name it. At 0 it may go, an hour after created_at, which is also moved on when
-- the last of them lets go of it.
-- place: in this row; in content_chunks; in the object store, under the name `object`.
CREATE TABLE contents (
  id INTEGER PRIMARY KEY,
  key BLOB NOT NULL UNIQUE,
  refs INTEGER NOT NULL,
  size INTEGER NOT NULL,
  encoding TEXT NOT NULL CHECK (encoding IN ('plain', 'zstd')),
  place TEXT NOT NULL CHECK (place IN ('row', 'chunks', 'object')),
  created_at INTEGER NOT NULL,
  object TEXT,
  bytes BLOB
) STRICT;
CREATE INDEX contents_unused ON contents (created_at) WHERE refs = 0;

-- The pieces of a large content, 256 KiB each as read, each encoded by itself: reading may stream.
CREATE TABLE content_chunks (
  key BLOB NOT NULL,
  ord INTEGER NOT NULL,
  bytes BLOB NOT NULL,
  PRIMARY KEY (key, ord)
) STRICT, WITHOUT ROWID;

-- How many messages share the content of one is asked for each of them. It goes with its table.
CREATE INDEX message_content_shared ON message_content (content_of) WHERE content_of IS NOT NULL;

-- Bodies of a received mail stand with its header fields, for those are of the same bytes; of a sent one alone.
CREATE TABLE bodies_before (
  message_id TEXT PRIMARY KEY,
  body BLOB NOT NULL
) STRICT;
INSERT INTO bodies_before (message_id, body)
  SELECT c.message_id, CAST(CASE m.direction
    WHEN 'inbound' THEN json_object('html', c.html, 'text', c.text, 'replyText', c.reply_text, 'headers', json(c.headers))
    ELSE json_object('html', c.html, 'text', c.text) END AS BLOB)
  FROM message_content c JOIN messages m ON m.id = c.message_id
  WHERE c.content_of IS NULL AND (m.direction = 'inbound' OR c.html IS NOT NULL OR c.text IS NOT NULL);
INSERT INTO contents (key, refs, size, encoding, place, created_at, bytes)
  SELECT CAST('body:' || b.message_id AS BLOB),
    (SELECT count(*) FROM message_content o WHERE o.content_of = b.message_id) + 1,
    length(b.body), 'plain', 'row', m.created_at, b.body
  FROM bodies_before b JOIN messages m ON m.id = b.message_id WHERE length(b.body) > 16384;
INSERT INTO contents (key, refs, size, encoding, place, created_at, bytes)
  SELECT CAST('raw:' || c.message_id AS BLOB),
    (SELECT count(*) FROM message_content o WHERE o.content_of = c.message_id) + 1,
    length(c.raw), 'plain', 'row', m.created_at, c.raw
  FROM message_content c JOIN messages m ON m.id = c.message_id WHERE c.raw IS NOT NULL;
INSERT INTO contents (key, refs, size, encoding, place, created_at, bytes)
  SELECT CAST('attachment:' || a.id AS BLOB), 1, length(a.bytes), 'plain', 'row', m.created_at, a.bytes
  FROM attachments a JOIN messages m ON m.id = a.message_id WHERE a.bytes IS NOT NULL;

-- body, raw: keys of contents. inline_body: a small body itself, JSON as it is or as a zstd frame; an accepted message
-- then costs no content. trace: the fields that we put in front of a mail we took; raw is what came below them.
-- NULL: raw is the whole.
ALTER TABLE message_content RENAME TO message_content_before;
CREATE TABLE message_content (
  message_id TEXT PRIMARY KEY REFERENCES messages (id) ON DELETE CASCADE,
  body BLOB,
  inline_body BLOB,
  headers TEXT NOT NULL DEFAULT '{}',
  data TEXT,
  envelope TEXT,
  auth TEXT,
  -- 1: the body is what a template became; it stays so for every later try and recipient.
  rendered INTEGER NOT NULL DEFAULT 0 CHECK (rendered IN (0, 1)),
  trace TEXT,
  raw BLOB
) STRICT;
INSERT INTO message_content (message_id, body, inline_body, headers, data, envelope, auth, rendered, raw)
  SELECT c.message_id, b.key, CASE WHEN b.key IS NULL THEN i.body END, CASE m.direction WHEN 'inbound' THEN '{}' ELSE c.headers END, c.data, c.envelope, c.auth,
    c.rendered, r.key
  FROM message_content_before c JOIN messages m ON m.id = c.message_id
    LEFT JOIN contents b ON b.key = CAST('body:' || COALESCE(c.content_of, c.message_id) AS BLOB)
    LEFT JOIN bodies_before i ON i.message_id = COALESCE(c.content_of, c.message_id)
    LEFT JOIN contents r ON r.key = CAST('raw:' || COALESCE(c.content_of, c.message_id) AS BLOB);
DROP TABLE message_content_before;
DROP TABLE bodies_before;

-- content: key of a content. NULL: the part is read out of the message's raw, at position `ord` of the parse.
DROP INDEX attachments_by_message;
ALTER TABLE attachments RENAME TO attachments_before;
CREATE TABLE attachments (
  id TEXT PRIMARY KEY,
  message_id TEXT NOT NULL REFERENCES messages (id) ON DELETE CASCADE,
  ord INTEGER NOT NULL,
  filename TEXT NOT NULL,
  content_type TEXT NOT NULL,
  disposition TEXT NOT NULL CHECK (disposition IN ('attachment', 'inline')),
  content_id TEXT,
  size INTEGER NOT NULL,
  content BLOB
) STRICT;
INSERT INTO attachments (id, message_id, ord, filename, content_type, disposition, content_id, size, content)
  SELECT id, message_id, ord, filename, content_type, disposition, content_id, size,
    CASE WHEN bytes IS NOT NULL THEN CAST('attachment:' || id AS BLOB) END
  FROM attachments_before;
DROP TABLE attachments_before;
CREATE INDEX attachments_by_message ON attachments (message_id, ord);
