import type { Db, Statement } from "./engine/client.ts";
import { rowsStatement, rowsText } from "./engine/rows-text.ts";
import type { NewContent } from "./contents/content-bytes.ts";
import {
  CONTENT_COLUMNS,
  type ContentDeps,
  contentBytes,
  contentIn,
  type ContentRow,
  type StoredContent,
} from "./contents/content-read.ts";

/** A part of a message with a name of its own. `size` in bytes. */
export interface Attachment {
  id: string;
  filename: string;
  contentType: string;
  disposition: "attachment" | "inline";
  contentId: string | null;
  size: number;
}

/** An attachment on its way into the store. */
export interface NewAttachment extends Attachment {
  /** null: the part is read out of the raw message. */
  content: NewContent | null;
}

/** An attachment of an outbound message with its bytes. */
export interface LoadedAttachment extends Attachment {
  bytes: Uint8Array;
}

const INSERT = rowsText(
  "attachments",
  "id, message_id, ord, filename, content_type, disposition, content_id, size, content",
  "(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
);

/** The statement that stores an attachment at its place in the message. */
export function insertAttachment(messageId: string, attachment: NewAttachment, ord: number): Statement {
  return rowsStatement(INSERT, [
    attachment.id,
    messageId,
    ord,
    attachment.filename,
    attachment.contentType,
    attachment.disposition,
    attachment.contentId,
    attachment.size,
    attachment.content?.key ?? null,
  ]);
}

interface AttachmentRow {
  id: string;
  filename: string;
  content_type: string;
  disposition: "attachment" | "inline";
  content_id: string | null;
  size: number;
}

function toAttachment(row: AttachmentRow): Attachment {
  return {
    id: row.id,
    filename: row.filename,
    contentType: row.content_type,
    disposition: row.disposition,
    contentId: row.content_id,
    size: row.size,
  };
}

/** The attachments of a message, in their order, without their bytes. */
export async function listAttachments(db: Db, senderId: string, messageId: string): Promise<Attachment[]> {
  const rows = await db.all<AttachmentRow>(
    `SELECT a.id, a.filename, a.content_type, a.disposition, a.content_id, a.size
      FROM attachments a JOIN messages m ON m.id = a.message_id
      WHERE a.message_id = ? AND m.sender_id = ? ORDER BY a.ord`,
    [messageId, senderId],
  );
  return rows.map(toAttachment);
}

/**
 * The attachments of an outbound message with their bytes, for composing it; null where one's are gone. Many sends may
 * have the same attachment: it is kept once.
 */
export async function loadAttachments(
  deps: ContentDeps,
  senderId: string,
  messageId: string,
): Promise<LoadedAttachment[] | null> {
  const rows = await deps.db.all<AttachmentRow & ContentRow>(
    `SELECT a.id, a.filename, a.content_type, a.disposition, a.content_id, a.size, ${CONTENT_COLUMNS}
      FROM attachments a JOIN messages m ON m.id = a.message_id LEFT JOIN contents b ON b.key = a.content
      WHERE a.message_id = ? AND m.sender_id = ? ORDER BY a.ord`,
    [messageId, senderId],
  );
  const loaded: LoadedAttachment[] = [];
  for (const row of rows) {
    const content = contentIn(row);
    if (content === null) return null;
    loaded.push({ ...toAttachment(row), bytes: await contentBytes(deps, content) });
  }
  return loaded;
}

/** An attachment as it stands in the store. */
export interface StoredAttachment extends Attachment {
  /** Its place in the message. */
  ord: number;
  /** Its own bytes; null: the part is read out of the raw message. */
  content: StoredContent | null;
}

/** One attachment of the project's message; null where there is none of that id. */
export async function getAttachment(
  db: Db,
  senderId: string,
  messageId: string,
  id: string,
): Promise<StoredAttachment | null> {
  const row = await db.first<AttachmentRow & ContentRow & { ord: number }>(
    `SELECT a.id, a.ord, a.filename, a.content_type, a.disposition, a.content_id, a.size, ${CONTENT_COLUMNS}
      FROM attachments a JOIN messages m ON m.id = a.message_id LEFT JOIN contents b ON b.key = a.content
      WHERE a.id = ? AND a.message_id = ? AND m.sender_id = ?`,
    [id, messageId, senderId],
  );
  if (row === null) return null;
  return { ...toAttachment(row), ord: row.ord, content: contentIn(row) };
}
