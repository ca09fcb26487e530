import { storedMailbox } from "../engine/columns.ts";
import type { Db, Guard, Statement } from "../engine/client.ts";
import { rowOfPosition } from "./positions.ts";
import { type Searchable, termsOf } from "./search-terms.ts";

/*
 * The index is FTS5 as its documentation describes it: a contentless table that deletes by rowid, with our own terms.
 * Compared in turns on 200 000 messages (2026-11-28, SQLite 3.45):
 *
 *   design                                                 octets a message   a text that all have, a tag that none has
 *   this one                                                            248   0.1 ms
 *   with terms of the status, removed by their terms                    215   0.1 ms
 *   tokenizer `trigram`, whole values in an ordinary index              367   240 ms
 *
 * Trigrams of FTS5 cannot begin with a project either, so the time of a search would show other projects' words. The
 * index of positions has the status, which costs 8 octets more. Without it a sender and a status that many messages
 * have, and none together, take 6 ms among a million messages, not 0.5.
 *
 * Bodies can have a second table of this kind, with words as terms, or bigrams if a script has no spaces. Its rowids
 * must be dense: then it has 11 % (words) and 32 % (bigrams) of the bodies' octets. With our positions, and a message
 * each half second, it would have 30 and 94 %.
 */

/** The columns of a message that the index is made of. */
export interface SearchedRow {
  id: string;
  sender_id: string;
  direction: "inbound" | "outbound";
  from_email: string;
  from_name: string | null;
  to_list: string;
  cc_list: string;
  bcc_list: string;
  subject: string;
  /** The exact subject. A NUL ends a string that leaves the database, but not the stored one. */
  subject_hex: string;
  tags: string;
  /** The message's position in the index; null: it is not in the index. */
  position: number | null;
}

export const SEARCHED_COLUMNS = `id, sender_id, direction, from_email, from_name, to_list, cc_list, bcc_list, subject,
  hex(subject) AS subject_hex, tags, position`;

/** A change of the index within a write. */
export interface IndexChange {
  /** Holds while the messages are in the index as they were read. */
  guard: Guard;
  statements: Statement[];
}

/** A message and the position that it gets or has. */
export interface Entering {
  row: SearchedRow;
  place: number;
}

/** Returns the change that removes messages, for the write that deletes them. */
export async function removalFromIndex(db: Db, ids: readonly string[]): Promise<IndexChange> {
  const leaving = await db.all<SearchedRow>(
    `SELECT ${SEARCHED_COLUMNS} FROM messages WHERE id IN (SELECT value FROM json_each(?))`,
    [JSON.stringify(ids)],
  );
  return changeOfIndex(db, [], leaving);
}

/**
 * Returns the change by which messages enter the index, or enter it again with other terms, and others leave it. A row
 * of the index has the terms of all messages at its position, which are usually one.
 */
export async function changeOfIndex(
  db: Db,
  entering: readonly Entering[],
  leaving: readonly SearchedRow[],
): Promise<IndexChange> {
  const given = [...entering.map(({ row }) => row), ...leaving];
  const places = new Map<number, string>();
  for (const place of [
    ...entering.map(({ place }) => place),
    ...leaving.flatMap((row) => row.position ?? []),
  ])
    places.set(place, "");
  const staying = await db.all<SearchedRow>(
    `SELECT ${SEARCHED_COLUMNS} FROM messages INDEXED BY messages_by_position
      WHERE position IN (SELECT value FROM json_each(?)) AND id NOT IN (SELECT value FROM json_each(?))`,
    [JSON.stringify([...places.keys()]), JSON.stringify(given.map(({ id }) => id))],
  );
  const add = (row: SearchedRow, place: number): unknown =>
    places.set(place, (places.get(place) ?? "") + termsOf(searchable(row)));
  for (const { row, place } of entering) add(row, place);
  for (const row of staying) if (row.position !== null) add(row, row.position);
  return { guard: asRead([...given, ...staying], [...places.keys()]), statements: entries(places) };
}

/** Returns the statements that store the terms at positions, and remove the positions without terms. */
function entries(places: ReadonlyMap<number, string>): Statement[] {
  // Rising rows fill one segment of the index. Each step back would begin another, and so would each statement.
  const rows = Array.from(places, ([place, terms]) => [rowOfPosition(place), terms] as const).sort(
    ([a], [b]) => a - b,
  );
  const filled = rows.filter(([, terms]) => terms !== "");
  const emptied = rows.flatMap(([row, terms]) => (terms === "" ? row : []));
  const statements: Statement[] = [];
  if (emptied.length > 0)
    statements.push({
      sql: "DELETE FROM message_terms WHERE rowid IN (SELECT value FROM json_each(?))",
      args: [JSON.stringify(emptied)],
    });
  if (filled.length > 0)
    statements.push({
      sql: `INSERT OR REPLACE INTO message_terms (rowid, terms)
        SELECT value ->> 0, value ->> 1 FROM json_each(?)`,
      args: [JSON.stringify(filled)],
    });
  return statements;
}

/** Holds while the messages have their positions and subjects, and the positions no other messages. */
function asRead(rows: readonly SearchedRow[], places: readonly number[]): Guard {
  const read = rows.map(({ id, position, subject_hex }) => ({ id, position, subject: subject_hex }));
  return {
    sql: `(NOT EXISTS (SELECT 1 FROM json_each(?) j LEFT JOIN messages m ON m.id = j.value ->> 'id'
        WHERE m.id IS NULL OR m.position IS NOT j.value ->> 'position' OR hex(m.subject) <> j.value ->> 'subject')
      AND NOT EXISTS (SELECT 1 FROM messages INDEXED BY messages_by_position
        WHERE position IN (SELECT value FROM json_each(?)) AND id NOT IN (SELECT value FROM json_each(?))))`,
    args: [JSON.stringify(read), JSON.stringify(places), JSON.stringify(rows.map(({ id }) => id))],
  };
}

/** Returns the searchable parts of a stored message. */
export function searchable(row: SearchedRow): Searchable {
  return {
    id: row.id,
    senderId: row.sender_id,
    direction: row.direction,
    from: storedMailbox(row.from_email, row.from_name),
    to: JSON.parse(row.to_list),
    cc: JSON.parse(row.cc_list),
    bcc: JSON.parse(row.bcc_list),
    subject: row.subject,
    tags: JSON.parse(row.tags),
  };
}
