import { AT_REST, type GoingMessage } from "../messages/retention.ts";
import type { Db, Statement } from "../engine/client.ts";
import type { RowPlace } from "../engine/place.ts";
import { keepUnsubscription } from "../projects/erased-unsubscriptions.ts";
import { eraseSuppression } from "../projects/suppressions.ts";

/** The forms in which JSON and header fields have an address. */
function formsOf(key: string): string {
  return JSON.stringify([`"${key}"`, `<${key}>`]);
}

/** Returns SQL of whether a column names the address, whose forms are one parameter. */
function names(text: string): string {
  return `EXISTS (SELECT 1 FROM json_each(?) f WHERE instr(lower(${text}), f.value))`;
}

/** A message of a project, with whether the address is its sender or a recipient, or in its header or envelope. */
export interface ReadMessage extends GoingMessage {
  isNamed: boolean;
}

/** Returns the project's messages after an id, in the order of their ids. @param key the address in lower case */
export async function messagesNaming(
  db: Db,
  senderId: string,
  key: string,
  after: string,
  limit: number,
): Promise<ReadMessage[]> {
  const rows = await db.all<{ id: string; thread_id: string | null; named: number; moving: number }>(
    `SELECT id, thread_id, named, CASE named WHEN 1 THEN NOT ${AT_REST} ELSE 0 END AS moving
      FROM (SELECT m.id, m.thread_id, lower(m.from_email) = ?
          OR EXISTS (SELECT 1 FROM recipients r WHERE r.message_id = m.id AND lower(r.email) = ?)
          OR ${names("m.to_list || m.cc_list || m.bcc_list || m.reply_to_list || c.headers || COALESCE(c.envelope, '')")} AS named
        FROM messages m JOIN message_content c ON c.message_id = m.id
        WHERE m.sender_id = ? AND m.id > ? ORDER BY m.id LIMIT ?) m ORDER BY id`,
    [key, key, formsOf(key), senderId, after, limit],
  );
  return rows.map((row) => ({
    id: row.id,
    threadId: row.thread_id,
    isNamed: row.named === 1,
    isMoving: row.moving === 1,
  }));
}

/**
 * Returns the statements that take an address out of what stays of its messages: their threads, and the audit trail. Notes and
 * drafts in those threads may be about the person in other words, so all of them go.
 */
export function eraseAround(key: string, going: readonly GoingMessage[]): Statement[] {
  const ids = JSON.stringify(going.map(({ id }) => id));
  const threads = JSON.stringify(going.flatMap(({ threadId }) => threadId ?? []));
  return [
    {
      sql: `UPDATE threads SET participants = (SELECT json_group_array(value) FROM json_each(participants)
          WHERE lower(value) <> ?) WHERE id IN (SELECT value FROM json_each(?))`,
      args: [key, threads],
    },
    { sql: "DELETE FROM thread_notes WHERE thread_id IN (SELECT value FROM json_each(?))", args: [threads] },
    { sql: "DELETE FROM drafts WHERE thread_id IN (SELECT value FROM json_each(?))", args: [threads] },
    {
      // The stored answers to those who wrote them.
      sql: `DELETE FROM idempotency WHERE scope IN (SELECT sender_id FROM threads WHERE id IN (SELECT value FROM json_each(?1)))
        AND (endpoint LIKE '%/notes' OR endpoint LIKE '%/drafts')
        AND EXISTS (SELECT 1 FROM json_each(?1) WHERE instr(endpoint || body, value))`,
      args: [threads],
    },
    {
      sql: `UPDATE audit_log SET target_name = NULL, changes = '{}' WHERE target_id IN (SELECT value FROM json_each(?))`,
      args: [ids],
    },
  ];
}

/**
 * Returns the statements that erase an address from the project's lists. Their changes are those of a contact and of a
 * suppression, in that order, after the first one's.
 */
export function eraseFromLists(senderId: string, key: string, erased: string): Statement[] {
  return [
    keepUnsubscription(senderId, key, erased),
    { sql: "DELETE FROM contacts WHERE sender_id = ? AND email_key = ?", args: [senderId, key] },
    { sql: "DELETE FROM complaints WHERE sender_id = ? AND email = ?", args: [senderId, key] },
    ...eraseSuppression(senderId, key, erased),
    { sql: "DELETE FROM listed_senders WHERE sender_id = ? AND pattern = ?", args: [senderId, key] },
    {
      sql: `UPDATE rules SET actions = json_remove(actions, '$.forwardTo')
        WHERE sender_id = ? AND lower(actions ->> '$.forwardTo') = ?`,
      args: [senderId, key],
    },
    { sql: "DELETE FROM forward_addresses WHERE sender_id = ? AND email_key = ?", args: [senderId, key] },
  ];
}

/** Erases an address from the next stored answers to requests of the project, and returns the place of the last. */
export async function eraseFromAnswers(
  db: Db,
  senderId: string,
  key: string,
  after: RowPlace,
  limit: number,
): Promise<RowPlace> {
  const rows = await db.all<{ endpoint: string; key: string; named: number }>(
    `SELECT endpoint, key, ${names("body")} AS named FROM idempotency
      WHERE scope = ? AND (endpoint, key) > (?, ?) ORDER BY endpoint, key LIMIT ?`,
    [formsOf(key), senderId, ...(after ?? ["", ""]), limit],
  );
  const named = rows.filter((row) => row.named === 1).map(({ endpoint, key: at }) => [endpoint, at]);
  if (named.length > 0)
    await db.write([
      {
        sql: `DELETE FROM idempotency WHERE scope = ?
          AND (endpoint, key) IN (SELECT value ->> 0, value ->> 1 FROM json_each(?))`,
        args: [senderId, JSON.stringify(named)],
      },
    ]);
  const last = rows.length < limit ? undefined : rows.at(-1);
  return last === undefined ? null : [last.endpoint, last.key];
}

/** Tables of what the team has written, with the column that has it. */
export const WRITTEN = { thread_notes: "text", drafts: "item" } as const;

/**
 * Returns which of the next rows of such a table name the address, and the place of the last row.
 * @param taking also rows of threads in which the address takes part
 */
export async function writtenNaming(
  db: Db,
  table: keyof typeof WRITTEN,
  { senderId, key, taking }: { senderId: string; key: string; taking: boolean },
  after: string,
  limit: number,
): Promise<{ ids: string[]; next: string | null }> {
  const rows = await db.all<{ id: string; text: string | null; taking: number }>(
    `SELECT id, iif(instr(lower(${WRITTEN[table]}), ?1), ${WRITTEN[table]}, NULL) AS text,
      ?2 AND EXISTS (SELECT 1 FROM threads t, json_each(t.participants) p WHERE t.id = thread_id AND lower(p.value) = ?1) AS taking
      FROM ${table} WHERE sender_id = ?3 AND id > ?4 ORDER BY id LIMIT ?5`,
    [key, Number(taking), senderId, after, limit],
  );
  const named = wholeAddress(key);
  const found = rows.filter(({ text, taking: takes }) => takes === 1 || (text !== null && named.test(text)));
  return { ids: found.map(({ id }) => id), next: rows.length < limit ? null : (rows.at(-1)?.id ?? null) };
}

/** Returns the pattern of an address that is not a part of a longer one. */
function wholeAddress(key: string): RegExp {
  return new RegExp(`(?<![\\w.+-])${RegExp.escape(key)}(?![\\w-]|\\.\\w)`, "i");
}

/** Erases those of the next rows of such a table that name the address, and returns the place of the last row. */
export async function eraseFromWritten(
  db: Db,
  table: keyof typeof WRITTEN,
  senderId: string,
  key: string,
  after: string,
  limit: number,
): Promise<string | null> {
  const { ids, next } = await writtenNaming(db, table, { senderId, key, taking: false }, after, limit);
  if (ids.length > 0)
    await db.write([
      {
        sql: `DELETE FROM ${table} WHERE id IN (SELECT value FROM json_each(?))`,
        args: [JSON.stringify(ids)],
      },
    ]);
  return next;
}

/** Returns which of the next rows of the project's audit trail name the address, and the place of the last row. */
export async function auditNaming(
  db: Db,
  senderId: string,
  key: string,
  after: RowPlace,
  limit: number,
): Promise<{ seqs: number[]; next: RowPlace }> {
  const rows = await db.all<{ seq: number; at: number; named: number }>(
    `SELECT seq, at, lower(COALESCE(target_name, '')) = ? OR ${names("changes")} AS named FROM audit_log
      WHERE sender_id = ? AND (at, seq) > (?, ?) ORDER BY at, seq LIMIT ?`,
    [key, formsOf(key), senderId, ...(after ?? [0, 0]), limit],
  );
  const last = rows.length < limit ? undefined : rows.at(-1);
  return {
    seqs: rows.filter((row) => row.named === 1).map(({ seq }) => seq),
    next: last === undefined ? null : [last.at, last.seq],
  };
}

/** Erases an address from the next rows of the project's audit trail, and returns the place of the last. */
export async function eraseFromAudit(
  db: Db,
  senderId: string,
  key: string,
  after: RowPlace,
  limit: number,
): Promise<RowPlace> {
  const { seqs, next } = await auditNaming(db, senderId, key, after, limit);
  if (seqs.length > 0)
    await db.write([
      {
        sql: "UPDATE audit_log SET target_name = NULL, changes = '{}' WHERE seq IN (SELECT value FROM json_each(?))",
        args: [JSON.stringify(seqs)],
      },
    ]);
  return next;
}
