import type { Db, Statement } from "../engine/client.ts";
import { rowOfPlace, SEARCHED_COLUMNS, type SearchedRow, searchable, TERMS_RULE } from "./message-index.ts";
import { termsLacking } from "./search-terms.ts";

/** A message that the index has by an older rule. */
interface OlderRow extends SearchedRow {
  position: number;
}

/** What the index of such messages holds, word for word: SQLite takes it for nothing else. ASCII is the same by any rule. */
const TEXTS = "from_email || COALESCE(from_name, '') || to_list || cc_list || bcc_list || subject";
const OF_OLDER_RULE = `position IS NOT NULL AND terms_rule < 2 AND length(CAST(${TEXTS} AS BLOB)) <> length(${TEXTS})`;

/**
 * Enters anew what programs up to schema 17 have entered: the newest `most` of those messages, in one write. They stay in the
 * index where they are, which gets the terms that it lacks, so all are found meanwhile as before. Another process may
 * enter the same ones: terms twice are as good as once. Says how many it found.
 */
export async function enterAnew(db: Db, most: number): Promise<number> {
  const rows = await db.all<OlderRow>(
    `SELECT ${SEARCHED_COLUMNS}, position FROM messages INDEXED BY messages_older_terms
      WHERE ${OF_OLDER_RULE} ORDER BY position DESC LIMIT ?`,
    [most],
  );
  // Newest first: rising rows fill one piece of the index.
  if (rows.length > 0) await db.write([...rows.flatMap(lacking), entered(rows)]);
  return rows.length;
}

/** Nothing for a message that is gone since it was read, or has another subject or place: nobody would take it out again. */
function lacking(row: OlderRow): Statement[] {
  const terms = termsLacking(searchable(row));
  if (terms === "") return [];
  return [
    {
      // Not INSERT … SELECT, before which FTS5 writes out a piece of its own.
      sql: `INSERT INTO message_terms (rowid, terms)
        VALUES (?, (SELECT ? FROM messages WHERE id = ? AND position = ? AND hex(subject) = ?))`,
      args: [rowOfPlace(row.position), terms, row.id, row.position, row.subject_hex],
    },
  ];
}

/** Those that are as they were read are done. */
function entered(rows: readonly OlderRow[]): Statement {
  const read = rows.map(({ id, position, subject_hex }) => ({ id, position, subject: subject_hex }));
  return {
    sql: `UPDATE messages SET terms_rule = ${TERMS_RULE} FROM json_each(?) j
      WHERE messages.id = j.value ->> 'id' AND position = j.value ->> 'position' AND hex(subject) = j.value ->> 'subject'`,
    args: [JSON.stringify(read)],
  };
}
