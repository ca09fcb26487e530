import type { Db, Statement } from "./client.ts";

/** A part of a message with a name of its own. `size` in bytes. */
export interface Attachment {
  id: string;
  filename: string;
  contentType: string;
  disposition: "attachment" | "inline";
  contentId: string | null;
  size: number;
}

export interface NewAttachment extends Attachment {
  /** null: the part is read out of the raw message. */
  bytes: Uint8Array | null;
}

/** The statement that stores an attachment at its place in the message. */
export function insertAttachment(messageId: string, attachment: NewAttachment, ord: number): Statement {
  return {
    sql: `INSERT INTO attachments (id, message_id, ord, filename, content_type, disposition, content_id, size, bytes)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    args: [
      attachment.id,
      messageId,
      ord,
      attachment.filename,
      attachment.contentType,
      attachment.disposition,
      attachment.contentId,
      attachment.size,
      attachment.bytes,
    ],
  };
}

interface AttachmentRow {
  id: string;
  filename: string;
  content_type: string;
  disposition: "attachment" | "inline";
  content_id: string | null;
  size: number;
  bytes: ArrayBuffer | null;
}

function toAttachment(row: Omit<AttachmentRow, "bytes">): Attachment {
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
  const rows = await db.all<Omit<AttachmentRow, "bytes">>(
    `SELECT a.id, a.filename, a.content_type, a.disposition, a.content_id, a.size
      FROM attachments a JOIN messages m ON m.id = a.message_id
      WHERE a.message_id = ? AND m.sender_id = ? ORDER BY a.ord`,
    [messageId, senderId],
  );
  return rows.map(toAttachment);
}

/** The attachments of a message with their bytes, for composing it. */
export async function loadAttachments(db: Db, senderId: string, messageId: string): Promise<NewAttachment[]> {
  const rows = await db.all<AttachmentRow>(
    `SELECT a.id, a.filename, a.content_type, a.disposition, a.content_id, a.size, a.bytes
      FROM attachments a JOIN messages m ON m.id = a.message_id
      WHERE a.message_id = ? AND m.sender_id = ? ORDER BY a.ord`,
    [messageId, senderId],
  );
  return rows.map((row) => ({
    ...toAttachment(row),
    bytes: row.bytes === null ? null : new Uint8Array(row.bytes),
  }));
}

/** One attachment of the project's message with its place in it; null where there is none of that id. */
export async function getAttachment(
  db: Db,
  senderId: string,
  messageId: string,
  id: string,
): Promise<(NewAttachment & { ord: number }) | null> {
  const row = await db.first<AttachmentRow & { ord: number }>(
    `SELECT a.id, a.ord, a.filename, a.content_type, a.disposition, a.content_id, a.size, a.bytes
      FROM attachments a JOIN messages m ON m.id = a.message_id
      WHERE a.id = ? AND a.message_id = ? AND m.sender_id = ?`,
    [id, messageId, senderId],
  );
  if (row === null) return null;
  return { ...toAttachment(row), ord: row.ord, bytes: row.bytes === null ? null : new Uint8Array(row.bytes) };
}
