import type { Db, Guard, Statement } from "../engine/client.ts";
import type { NewContent } from "./content-bytes.ts";
import {
  CONTENT_COLUMNS,
  type ContentDeps,
  contentBytes,
  contentIn,
  type ContentRow,
  type StoredContent,
} from "./content-read.ts";
import { isAhead, takeContent, wholeGuard } from "./contents.ts";
import { rememberPlace } from "../search/message-index.ts";
import { bodyIn, bodyInline, type MessageBody, NO_BODY } from "./message-body.ts";
import type { Direction, MessageContent } from "../messages.ts";

interface Row extends ContentRow {
  headers: string;
  data: string | null;
  envelope: string | null;
  auth: string | null;
  trace: string | null;
  rendered: number;
  inline_body: ArrayBuffer | null;
  direction: Direction;
}

/** Reads a body of so many octets where and when there is room for it. */
export type InRoom = (octets: number, read: () => Promise<MessageBody>) => Promise<MessageBody>;

/**
 * Bodies, headers and inbound facts of a message of the project; null where it has none of that id.
 * @param inRoom may put off the reading of the body, or refuse it
 */
export async function getContent(
  deps: ContentDeps,
  senderId: string,
  id: string,
  inRoom: InRoom = (_octets, read) => read(),
): Promise<MessageContent | null> {
  const row = await deps.db.first<Row>(
    `SELECT c.headers, c.data, c.envelope, c.auth, c.trace, c.rendered, c.inline_body, m.direction, ${CONTENT_COLUMNS}
      FROM message_content c JOIN messages m ON m.id = c.message_id LEFT JOIN contents b ON b.key = c.body
      WHERE c.message_id = ? AND m.sender_id = ?`,
    [id, senderId],
  );
  if (row === null) return null;
  const { html, text, replyText, headers } = await bodyOf(deps, row, inRoom);
  return {
    html,
    text,
    headers: headers ?? JSON.parse(row.headers),
    data: row.data === null ? null : JSON.parse(row.data),
    envelope: row.envelope === null ? null : JSON.parse(row.envelope),
    auth: row.auth === null ? null : JSON.parse(row.auth),
    // Most received mail quotes nothing: its reply text is all of its text, and is not kept twice.
    replyText: row.direction === "inbound" ? (replyText ?? text?.trim() ?? null) : null,
    rendered: row.rendered === 1,
    trace: row.trace,
  };
}

async function bodyOf(deps: ContentDeps, row: Row, inRoom: InRoom): Promise<MessageBody> {
  if (row.inline_body !== null) return bodyInline(new Uint8Array(row.inline_body));
  const stored = contentIn(row);
  if (stored === null) return NO_BODY;
  return inRoom(stored.size, async () => bodyIn(await contentBytes(deps, stored)));
}

/** The bytes that are kept of a message as they came in or went out. */
export interface KeptRaw {
  /** What stands before them; null where they are the whole. */
  trace: string | null;
  content: StoredContent;
}

/** The bytes that are kept of a message of the project; null where there are none. */
export async function getRaw(db: Db, senderId: string, id: string): Promise<KeptRaw | null> {
  const row = await db.first<ContentRow & { trace: string | null }>(
    `SELECT c.trace, ${CONTENT_COLUMNS} FROM message_content c JOIN messages m ON m.id = c.message_id
        JOIN contents b ON b.key = c.raw
      WHERE c.message_id = ? AND m.sender_id = ?`,
    [id, senderId],
  );
  const content = row === null ? null : contentIn(row);
  return row === null || content === null ? null : { trace: row.trace, content };
}

/** Those of the project's messages whose raw bytes have that key. */
export async function messagesOfRaw(
  db: Db,
  senderId: string,
  ids: readonly string[],
  key: Uint8Array,
): Promise<Set<string>> {
  const rows = await db.all<{ id: string }>(
    `SELECT m.id FROM messages m JOIN message_content c ON c.message_id = m.id
      WHERE m.id IN (SELECT value FROM json_each(?)) AND m.sender_id = ? AND c.raw = ?`,
    [JSON.stringify(ids), senderId, key],
  );
  return new Set(rows.map(({ id }) => id));
}

/** Whether what the template of the project's message became is kept. */
export async function isRendered(db: Db, senderId: string, id: string): Promise<boolean> {
  const sql = `SELECT 1 FROM message_content c JOIN messages m ON m.id = c.message_id
    WHERE c.message_id = ? AND m.sender_id = ? AND c.rendered = 1`;
  return (await db.first(sql, [id, senderId])) !== null;
}

/** The condition that a message's template has not been rendered yet. */
function unrendered(messageId: string): Guard {
  return {
    sql: "EXISTS (SELECT 1 FROM message_content WHERE message_id = ? AND rendered = 0)",
    args: [messageId],
  };
}

/**
 * Keeps what a message's template became, the first time. Where that changes the subject, it waits for the index anew.
 * @param now milliseconds
 */
export function keepRendered(
  senderId: string,
  messageId: string,
  rendered: { subject: string; body: NewContent | null },
  now: number,
): Statement[] {
  const { subject, body } = rendered;
  const guard = unrendered(messageId);
  return [
    rememberPlace(messageId, subject, guard),
    {
      sql: `UPDATE messages SET subject = ?, position = CASE WHEN subject = ? THEN position END
        WHERE id = ? AND sender_id = ? AND ${guard.sql}`,
      args: [subject, subject, messageId, senderId, ...guard.args],
    },
    ...(body === null ? [] : [takeContent(body, now, guard)]),
    {
      sql: `UPDATE contents SET refs = refs - 1, created_at = ?
        WHERE key = (SELECT body FROM message_content WHERE message_id = ? AND rendered = 0)`,
      args: [now, messageId],
    },
    {
      sql: `UPDATE message_content SET body = ?, inline_body = NULL, rendered = 1
        WHERE message_id = ? AND rendered = 0`,
      args: [body?.key ?? null, messageId],
    },
  ];
}

/**
 * Keeps the bytes of an outbound message as composed, the first time: what `capture` would have sent. Where they were
 * written ahead and are gone, nothing is kept: this is part of a write that must not fail for them.
 * @param now milliseconds
 */
export function keepComposed(messageId: string, raw: NewContent, now: number): Statement[] {
  const there = isAhead(raw) ? wholeGuard(raw) : { sql: "TRUE", args: [] };
  return [
    takeContent(raw, now, {
      sql: `EXISTS (SELECT 1 FROM message_content WHERE message_id = ? AND raw IS NULL) AND ${there.sql}`,
      args: [messageId, ...there.args],
    }),
    {
      sql: `UPDATE message_content SET raw = ? WHERE message_id = ? AND raw IS NULL AND ${there.sql}`,
      args: [raw.key, messageId, ...there.args],
    },
  ];
}
