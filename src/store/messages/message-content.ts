import type { Db, Guard, Statement } from "../engine/client.ts";
import { keyEnd, type NewContent, RAW_KEY_END } from "../contents/content-bytes.ts";
import {
  CONTENT_COLUMNS,
  type Contents,
  contentBytes,
  contentIn,
  type ContentRow,
  sharedContent,
  type StoredContent,
} from "../contents/content-read.ts";
import { isStoredAhead, storeContent, completeGuard } from "../contents/contents.ts";
import { type BodyStart, type Clipped, readBodyStart, startOf } from "../contents/body-start.ts";
import type { MemoryBudget } from "../contents/memory-budget.ts";
import { bodyIn, type MessageBody, NO_BODY } from "../contents/message-body.ts";
import { type Direction, IS_WHOLE, type MessageContent } from "./messages.ts";

interface Row extends ContentRow {
  headers: string;
  data: string | null;
  envelope: string | null;
  auth: string | null;
  arrival: string | null;
  trace: string | null;
  rendered: number;
  direction: Direction;
  /** 1 if the content is the message as it was submitted, which has no separate body. */
  is_raw: number;
}

const CONTENT = `SELECT c.headers, c.data, c.envelope, c.auth, c.arrival, c.trace, c.rendered, m.direction, c.body IS NULL AS is_raw,
    ${CONTENT_COLUMNS}
  FROM message_content c JOIN messages m ON m.id = c.message_id
    LEFT JOIN contents b ON b.key = COALESCE(c.body, CASE WHEN ${IS_WHOLE} THEN c.raw END)
  WHERE c.message_id = ? AND m.sender_id = ?`;

/** Reads the body of a message that was submitted whole, from its bytes. */
export type ReadWhole = (raw: Uint8Array) => Promise<MessageBody>;

/** The sources of contents, and how to read a body that is stored only within its message. */
export interface BodyDeps extends Contents {
  readWhole: ReadWhole;
}

/**
 * Reads the bodies, headers and authentication results of a message. Returns null if the project has no such message.
 * @param budget for the whole body
 */
export async function getContent(
  deps: BodyDeps,
  senderId: string,
  id: string,
  budget: MemoryBudget,
): Promise<MessageContent | null> {
  const row = await deps.db.first<Row>(CONTENT, [id, senderId]);
  if (row === null) return null;
  const { html, text, replyText, headers } = await bodyOf(deps, row, budget);
  return {
    html,
    text,
    headers: headers ?? JSON.parse(row.headers),
    data: row.data === null ? null : JSON.parse(row.data),
    envelope: row.envelope === null ? null : JSON.parse(row.envelope),
    auth: row.auth === null ? null : JSON.parse(row.auth),
    arrival: row.arrival === null ? null : JSON.parse(row.arrival),
    // If a received message quotes nothing, as most do, the reply text is the whole text, and is not stored twice.
    replyText: row.direction === "inbound" ? (replyText ?? text?.trim() ?? null) : null,
    rendered: row.rendered === 1,
    trace: row.trace,
  };
}

async function bodyOf(deps: BodyDeps, row: Row, budget: MemoryBudget): Promise<MessageBody> {
  const stored = contentIn(row);
  if (stored === null) return NO_BODY;
  const bytes = await contentBytes(deps, stored, budget);
  return row.is_raw === 1 ? deps.readWhole(bytes) : bodyIn(bytes);
}

/** The first octets of a message's bodies, with its headers. */
export interface ContentStart extends Pick<MessageContent, "headers" | "auth" | "arrival"> {
  html: Clipped;
  text: Clipped;
}

/**
 * Reads the first octets of a message's html and text, its headers and its authentication results. No more of a large body in
 * the database is read. Returns null if the project has no such message.
 * @param budget for the parts that are read, or for the whole body if it is an object
 */
export async function getContentStart(
  deps: BodyDeps,
  senderId: string,
  id: string,
  octets: number,
  budget: MemoryBudget,
): Promise<ContentStart | null> {
  const row = await deps.db.first<Row>(CONTENT, [id, senderId]);
  if (row === null) return null;
  const { html, text, headers } = await startOfBody(deps, row, octets, budget);
  return {
    html,
    text,
    headers: headers ?? JSON.parse(row.headers),
    auth: row.auth === null ? null : JSON.parse(row.auth),
    arrival: row.arrival === null ? null : JSON.parse(row.arrival),
  };
}

async function startOfBody(
  deps: BodyDeps,
  row: Row,
  octets: number,
  budget: MemoryBudget,
): Promise<BodyStart> {
  const stored = contentIn(row);
  if (stored === null || row.is_raw === 1) return startOf(await bodyOf(deps, row, budget), octets);
  return readBodyStart(deps, stored, octets, budget);
}

/** The stored bytes of a message, as received or sent. */
export interface StoredRaw {
  /** The trace fields to put before the bytes; null if there are none. */
  trace: string | null;
  content: StoredContent;
  /** True if it was submitted as it is stored, and is sent with our fields and changes. */
  submitted: boolean;
}

/** Reads the stored bytes of a message of the project; null if there are none. */
export async function getRaw(db: Db, senderId: string, id: string): Promise<StoredRaw | null> {
  const row = await db.first<ContentRow & { trace: string | null; submitted: number }>(
    `SELECT c.trace, m.direction = 'outbound' AND ${IS_WHOLE} AS submitted, ${CONTENT_COLUMNS} FROM message_content c JOIN messages m ON m.id = c.message_id
        JOIN contents b ON b.key = c.raw
      WHERE c.message_id = ? AND m.sender_id = ?`,
    [id, senderId],
  );
  const content = row === null ? null : contentIn(row);
  if (row === null || content === null) return null;
  return { trace: row.trace, content, submitted: row.submitted === 1 };
}

/** The contents of an outbound message that a further message may share. */
export interface SharedContents {
  body: NewContent | null;
  /** The message as it was submitted, and how it came; null unless it was submitted whole. */
  whole: { raw: NewContent; envelope: Record<string, unknown> } | null;
}

/** Returns the stored contents of an outbound message of the project; null if it has none with that id. */
export async function sharedContents(db: Db, senderId: string, id: string): Promise<SharedContents | null> {
  const stored = async (key: string) =>
    db.first<ContentRow & { envelope: string | null }>(
      `SELECT c.envelope, ${CONTENT_COLUMNS} FROM message_content c JOIN messages m ON m.id = c.message_id
        LEFT JOIN contents b ON b.key = c.${key} WHERE c.message_id = ? AND m.sender_id = ?`,
      [id, senderId],
    );
  const [body, raw] = await Promise.all([stored("body"), stored("raw")]);
  if (body === null || raw === null) return null;
  const bytes = sharedContent(contentIn(raw));
  return {
    body: sharedContent(contentIn(body)),
    whole:
      raw.envelope === null || bytes === null ? null : { raw: bytes, envelope: JSON.parse(raw.envelope) },
  };
}

/** Returns how a received message of the project came: our trace fields, and the result of its ARC chain; null if it has none. */
export function forwardFacts(
  db: Db,
  senderId: string,
  id: string,
): Promise<{ trace: string; arc: string } | null> {
  return db.first(
    `SELECT c.trace, COALESCE(c.auth ->> '$.arc.result', 'none') AS arc FROM message_content c
      JOIN messages m ON m.id = c.message_id
      WHERE c.message_id = ? AND m.sender_id = ? AND m.direction = 'inbound' AND c.trace IS NOT NULL`,
    [id, senderId],
  );
}

/**
 * Returns those of the project's messages whose raw bytes have a key.
 * @param key as `projectKey` makes it
 */
export async function messagesOfRaw(
  db: Db,
  senderId: string,
  ids: readonly string[],
  key: Uint8Array,
): Promise<Set<string>> {
  const rows = await db.all<{ id: string }>(
    `SELECT m.id FROM messages m JOIN message_content c ON c.message_id = m.id
      WHERE m.id IN (SELECT value FROM json_each(?)) AND m.sender_id = ? AND ${RAW_KEY_END} = ?`,
    [JSON.stringify(ids), senderId, keyEnd(key)],
  );
  return new Set(rows.map(({ id }) => id));
}

/**
 * Returns, by message, the recipients of the SMTP envelope in the message's inbox. A message whose envelope is no longer stored
 * is left out.
 */
export async function envelopeRecipients(
  db: Db,
  senderId: string,
  ids: readonly string[],
): Promise<Map<string, string[]>> {
  const rows = await db.all<{ id: string; recipients: string }>(
    `SELECT m.id, c.envelope ->> '$.rcptTo' AS recipients FROM messages m JOIN message_content c ON c.message_id = m.id
      WHERE m.id IN (SELECT value FROM json_each(?)) AND m.sender_id = ? AND recipients IS NOT NULL`,
    [JSON.stringify(ids), senderId],
  );
  return new Map(rows.map(({ id, recipients }) => [id, JSON.parse(recipients)]));
}

/** Returns true if the output of the message's template is stored. */
export async function isRendered(db: Db, senderId: string, id: string): Promise<boolean> {
  const sql = `SELECT 1 FROM message_content c JOIN messages m ON m.id = c.message_id
    WHERE c.message_id = ? AND m.sender_id = ? AND c.rendered = 1`;
  return (await db.first(sql, [id, senderId])) !== null;
}

/** Returns the condition that the output of a message's template is not stored yet. */
function unrendered(messageId: string): Guard {
  return {
    sql: "EXISTS (SELECT 1 FROM message_content WHERE message_id = ? AND rendered = 0)",
    args: [messageId],
  };
}

/**
 * Returns the statements that store the output of a message's template, the first time. If that changes the subject, the
 * message is indexed again.
 * @param now milliseconds
 */
export function storeRendered(
  senderId: string,
  messageId: string,
  rendered: { subject: string; body: NewContent | null },
  now: number,
): Statement[] {
  const { subject, body } = rendered;
  const guard = unrendered(messageId);
  return [
    {
      sql: `UPDATE messages SET subject = ? WHERE id = ? AND sender_id = ? AND ${guard.sql}`,
      args: [subject, messageId, senderId, ...guard.args],
    },
    ...(body === null ? [] : [storeContent(body, now, guard)]),
    {
      sql: `UPDATE contents SET refs = refs - 1, created_at = ?
        WHERE key = (SELECT body FROM message_content WHERE message_id = ? AND rendered = 0)`,
      args: [now, messageId],
    },
    {
      sql: `UPDATE message_content SET body = ?, rendered = 1
        WHERE message_id = ? AND rendered = 0`,
      args: [body?.key ?? null, messageId],
    },
  ];
}

/**
 * Returns the statements that store the bytes of an outbound message as composed, the first time. If the bytes were stored
 * ahead and have been removed since, they store nothing, because their write must not fail for that.
 * @param now milliseconds
 */
export function storeComposed(messageId: string, raw: NewContent, now: number): Statement[] {
  const isComplete = isStoredAhead(raw) ? completeGuard(raw) : { sql: "TRUE", args: [] };
  return [
    storeContent(raw, now, {
      sql: `EXISTS (SELECT 1 FROM message_content WHERE message_id = ? AND raw IS NULL) AND ${isComplete.sql}`,
      args: [messageId, ...isComplete.args],
    }),
    {
      sql: `UPDATE message_content SET raw = ? WHERE message_id = ? AND raw IS NULL AND ${isComplete.sql}`,
      args: [raw.key, messageId, ...isComplete.args],
    },
  ];
}
