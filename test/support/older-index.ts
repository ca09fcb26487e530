import type { Db, Value } from "../../src/store/engine/client.ts";
import {
  firstPlace,
  rowOfPlace,
  SEARCHED_COLUMNS,
  type SearchedRow,
} from "../../src/store/search/message-index.ts";

/**
 * What a program up to schema 17 does with the search index of messages: it knows no folding but of case, and nothing of
 * the rule by which a message was entered.
 */

/** A text as such a program compares it. */
export function asBefore(text: string): string {
  return text.normalize("NFC").toLowerCase();
}

type OlderRow = SearchedRow & { created_at: number; place: number | null };

/** Enters the oldest of the messages that wait, at most so many. Those made in one millisecond share a place. */
export async function enterAsBefore(db: Db, most: number): Promise<void> {
  const rows = await db.all<OlderRow>(
    `SELECT ${SEARCHED_COLUMNS}, created_at, (SELECT place FROM messages_reentering WHERE message_id = id) AS place
      FROM messages WHERE position IS NULL ORDER BY id LIMIT ?`,
    [most],
  );
  for (const row of rows) {
    const place = row.place ?? firstPlace(row.created_at);
    const read: Value[] = [row.id, row.subject_hex];
    await db.write([
      {
        sql: `INSERT INTO message_terms (rowid, terms)
          VALUES (?, (SELECT ? FROM messages WHERE id = ? AND position IS NULL AND hex(subject) = ?))`,
        args: [rowOfPlace(place), termsAsBefore(row).join(" "), ...read],
      },
      {
        sql: "UPDATE messages SET position = ? WHERE id = ? AND position IS NULL AND hex(subject) = ?",
        args: [place, ...read],
      },
      {
        sql: `DELETE FROM messages_reentering
          WHERE message_id = ? AND EXISTS (SELECT 1 FROM messages WHERE id = ? AND position IS NOT NULL)`,
        args: [row.id, row.id],
      },
    ]);
  }
}

/** The ids of the messages in the index that such a program finds by a text of three letters and more. */
export async function foundAsBefore(db: Db, senderId: string, q: string): Promise<Set<string>> {
  const expression = grams(senderId, q)
    .map((gram) => `"${gram}"`)
    .join(" AND ");
  const rows = await db.all<{ id: string }>(
    `SELECT id FROM messages WHERE position IN
      (SELECT ${rowOfPlace(0)} - rowid FROM message_terms WHERE message_terms MATCH ?)`,
    [expression],
  );
  return new Set(rows.map(({ id }) => id));
}

function termsAsBefore(row: SearchedRow): string[] {
  const project = row.sender_id.slice(-5);
  const others = [row.to_list, row.cc_list, row.bcc_list].flatMap(
    (list) => JSON.parse(list) as { email: string; name?: string }[],
  );
  const from = { email: row.from_email, ...(row.from_name === null ? {} : { name: row.from_name }) };
  const texts = [row.subject, ...[from, ...others].flatMap(({ email, name }) => [email, name ?? ""])];
  return [
    `${project}direction=${row.direction}`,
    `${project}from=${asBefore(row.from_email)}`,
    ...others.map(({ email }) => `${project}to=${asBefore(email)}`),
    ...texts.flatMap((text) => grams(row.sender_id, text)),
  ];
}

function grams(senderId: string, text: string): string[] {
  const folded = asBefore(text).replace(/[\0-\x20"'\x7f]/g, "_");
  return Array.from(
    { length: Math.max(0, folded.length - 2) },
    (_, at) => senderId.slice(-5) + folded.slice(at, at + 3),
  );
}
