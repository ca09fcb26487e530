import type { Db, Guard, Statement } from "../engine/client.ts";
import { rowOfPosition, SEARCHED_COLUMNS, type SearchedRow, searchable } from "./message-index.ts";
import { FINAL_STATUSES, MAX_TERMS_UNITS, termOfStatus, termsOf } from "./search-terms.ts";

interface PlacedRow extends SearchedRow {
  position: number | null;
  /** The message's position in the index; null: it is not in the index. */
  place: number | null;
}

/** The removal of messages from the search index, within the write that deletes them. */
export interface IndexRemoval {
  /** Holds while the messages are in the index as they were read. */
  guard: Guard;
  statements: Statement[];
}

/** FTS5 takes rowids in rising order without writing a segment in between. All positions have rows after this one. */
const BALLAST_ROW = 0;
/** A term that no message has: theirs begin with a project. */
const BALLAST_TERM = " ~";

/**
 * Reads the terms that the index has of messages. FTS5's 'delete' needs them, and the index keeps no contents. So they
 * are made again from the messages, with every final status that each may have had.
 */
export async function removalFromIndex(db: Db, ids: readonly string[]): Promise<IndexRemoval> {
  const leaving = await db.all<PlacedRow>(
    `SELECT ${SEARCHED_COLUMNS}, position,
        COALESCE(position, (SELECT place FROM messages_reentering WHERE message_id = id)) AS place
      FROM messages WHERE id IN (SELECT value FROM json_each(?))`,
    [JSON.stringify(ids)],
  );
  const places = JSON.stringify(leaving.flatMap(({ place }) => place ?? []));
  const staying = await db.all<PlacedRow>(
    `SELECT ${SEARCHED_COLUMNS}, position, position AS place FROM messages INDEXED BY messages_by_position
      WHERE position IN (SELECT value FROM json_each(?)) AND id NOT IN (SELECT value FROM json_each(?))`,
    [places, JSON.stringify(ids)],
  );
  return { guard: asRead(leaving, places, staying), statements: removal(leaving, staying) };
}

function removal(leaving: readonly PlacedRow[], staying: readonly PlacedRow[]): Statement[] {
  const removed = leaving
    .flatMap((row) => (row.place === null ? [] : [{ place: row.place, terms: termsLeft(row, staying) }]))
    .sort((a, b) => b.place - a.place);
  const count = removed.reduce((sum, { terms }) => sum + terms.length, 0);
  if (count === 0) return [];
  return [
    {
      // FTS5 counts all terms for a ranking that we do not use, and takes a count below zero for a damaged index. Some
      // terms that are removed were never added, so as many are added first: one term, repeated.
      sql: "INSERT INTO message_terms (rowid, terms) VALUES (?, ?)",
      args: [BALLAST_ROW, BALLAST_TERM.repeat(count)],
    },
    ...removed.map(({ place, terms }) => ({
      sql: "INSERT INTO message_terms (message_terms, rowid, terms) VALUES ('delete', ?, ?)",
      args: [rowOfPosition(place), terms.join(" ")],
    })),
  ];
}

/** Returns the terms of a message without those of messages that stay at the same position. */
function termsLeft(row: PlacedRow, staying: readonly PlacedRow[]): string[] {
  const kept = new Set(staying.filter(({ place }) => place === row.place).flatMap(allTerms));
  const terms = allTerms(row);
  return kept.size === 0 ? terms : terms.filter((term) => !kept.has(term));
}

/** Returns all terms that the index may have of a message, with every final status. */
function allTerms(row: SearchedRow): string[] {
  const message = searchable(row);
  const statuses = FINAL_STATUSES.map((status) => termOfStatus(row.sender_id, status)).join("");
  const terms = termsOf({ ...message, status: "queued" });
  if (terms.length + statuses.length <= MAX_TERMS_UNITS) return split(terms + statuses);
  // The number of terms that fit depends on the status.
  const each = FINAL_STATUSES.map((status) => termsOf({ ...message, status }));
  return [...new Set(split(terms + statuses + each.join("")))];
}

function split(terms: string): string[] {
  return terms.split(" ").slice(1);
}

function asRead(leaving: readonly PlacedRow[], places: string, staying: readonly PlacedRow[]): Guard {
  const read = leaving.map(({ id, position, subject_hex }) => ({ id, position, subject: subject_hex }));
  const known = [...leaving, ...staying].map(({ id }) => id);
  return {
    sql: `(NOT EXISTS (SELECT 1 FROM json_each(?) j LEFT JOIN messages m ON m.id = j.value ->> 'id'
        WHERE m.id IS NULL OR m.position IS NOT j.value ->> 'position' OR hex(m.subject) <> j.value ->> 'subject')
      AND NOT EXISTS (SELECT 1 FROM messages INDEXED BY messages_by_position
        WHERE position IN (SELECT value FROM json_each(?)) AND id NOT IN (SELECT value FROM json_each(?))))`,
    args: [JSON.stringify(read), places, JSON.stringify(known)],
  };
}
