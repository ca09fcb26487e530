import type { Db, Statement } from "../engine/client.ts";
import { mapping, plain, type Row } from "../engine/columns.ts";
import { rowsStatement, rowsText } from "../sql/rows-text.ts";
import type { NewContent } from "../contents/content-bytes.ts";
import {
  CONTENT_COLUMNS,
  type Contents,
  contentBytes,
  contentIn,
  type ContentRow,
  sharedContent,
  type StoredContent,
} from "../contents/content-read.ts";
import type { MemoryBudget } from "../contents/memory-budget.ts";

/** A named part of a message. `size` in bytes. */
export interface Attachment {
  id: string;
  filename: string;
  contentType: string;
  disposition: "attachment" | "inline";
  contentId: string | null;
  size: number;
}

export interface NewAttachment extends Attachment {
  /** null: the part is read from the raw message. */
  content: NewContent | null;
}

/** An attachment of an outbound message with its bytes. */
export interface LoadedAttachment extends Attachment {
  bytes: Uint8Array;
}

const ATTACHMENTS = mapping<Attachment>({
  id: plain("id"),
  filename: plain("filename"),
  contentType: plain("content_type"),
  disposition: plain("disposition"),
  contentId: plain("content_id"),
  size: plain("size"),
});
/** The columns in a query with other tables. */
const COLUMNS = ATTACHMENTS.names.map((name) => `a.${name}`).join(", ");

const INSERT = rowsText(
  "attachments",
  `message_id, ord, ${ATTACHMENTS.columns}, content`,
  "(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
);

/** Returns the statement that stores an attachment. @param ord its position in the message */
export function insertAttachment(messageId: string, attachment: NewAttachment, ord: number): Statement {
  return rowsStatement(INSERT, [
    messageId,
    ord,
    ...ATTACHMENTS.values(attachment),
    attachment.content?.key ?? null,
  ]);
}

/** Returns the attachments of a message in their order, without their bytes. */
export async function listAttachments(db: Db, senderId: string, messageId: string): Promise<Attachment[]> {
  const rows = await db.all<Row>(
    `SELECT ${COLUMNS}
      FROM attachments a JOIN messages m ON m.id = a.message_id
      WHERE a.message_id = ? AND m.sender_id = ? ORDER BY a.ord`,
    [messageId, senderId],
  );
  return rows.map(ATTACHMENTS.read);
}

/** Returns the attachments of the project's messages, without their bytes, by message. */
export async function attachmentsOfAll(
  db: Db,
  senderId: string,
  messageIds: readonly string[],
): Promise<Map<string, Attachment[]>> {
  const rows = await db.all<Row & { message_id: string }>(
    `SELECT a.message_id, ${COLUMNS}
      FROM attachments a JOIN messages m ON m.id = a.message_id
      WHERE a.message_id IN (SELECT value FROM json_each(?)) AND m.sender_id = ? ORDER BY a.message_id, a.ord`,
    [JSON.stringify(messageIds), senderId],
  );
  return new Map(
    Object.entries(Object.groupBy(rows, (row) => row.message_id)).map(([id, own = []]) => [
      id,
      own.map(ATTACHMENTS.read),
    ]),
  );
}

/**
 * Returns the attachments of an outbound message with their bytes, for composing; null if the bytes of one are gone.
 * Messages that share an attachment share its content.
 */
export async function loadAttachments(
  deps: Contents,
  senderId: string,
  messageId: string,
  budget: MemoryBudget,
): Promise<LoadedAttachment[] | null> {
  const rows = await deps.db.all<Row & ContentRow>(
    `SELECT ${COLUMNS}, ${CONTENT_COLUMNS}
      FROM attachments a JOIN messages m ON m.id = a.message_id LEFT JOIN contents b ON b.key = a.content
      WHERE a.message_id = ? AND m.sender_id = ? ORDER BY a.ord`,
    [messageId, senderId],
  );
  const loaded: LoadedAttachment[] = [];
  for (const row of rows) {
    const content = contentIn(row);
    if (content === null) return null;
    loaded.push({ ...ATTACHMENTS.read(row), bytes: await contentBytes(deps, content, budget) });
  }
  return loaded;
}

/** Returns the attachments of an outbound message for a further message that shares their contents. */
export async function sharedAttachments(
  db: Db,
  senderId: string,
  messageId: string,
): Promise<NewAttachment[]> {
  const rows = await db.all<Row & ContentRow>(
    `SELECT ${COLUMNS}, ${CONTENT_COLUMNS}
      FROM attachments a JOIN messages m ON m.id = a.message_id LEFT JOIN contents b ON b.key = a.content
      WHERE a.message_id = ? AND m.sender_id = ? ORDER BY a.ord`,
    [messageId, senderId],
  );
  return rows.map((row) => ({ ...ATTACHMENTS.read(row), content: sharedContent(contentIn(row)) }));
}

export interface StoredAttachment extends Attachment {
  /** Its position in the message. */
  ord: number;
  /** Its own bytes; null: the part is read from the raw message. */
  content: StoredContent | null;
}

/** Returns an attachment of the project's message; null if the message has none with that id. */
export async function getAttachment(
  db: Db,
  senderId: string,
  messageId: string,
  id: string,
): Promise<StoredAttachment | null> {
  const row = await db.first<Row & ContentRow & { ord: number }>(
    `SELECT ${COLUMNS}, a.ord, ${CONTENT_COLUMNS}
      FROM attachments a JOIN messages m ON m.id = a.message_id LEFT JOIN contents b ON b.key = a.content
      WHERE a.id = ? AND a.message_id = ? AND m.sender_id = ?`,
    [id, messageId, senderId],
  );
  if (row === null) return null;
  return { ...ATTACHMENTS.read(row), ord: row.ord, content: contentIn(row) };
}
