import type { Db, Guard, Statement, Value } from "../engine/client.ts";
import { isBroken, requireGuard } from "../engine/guards.ts";
import { SEARCHED_COLUMNS, searchable, type SearchedRow } from "./index-entries.ts";
import { wordTermsOf } from "./search-terms.ts";

/*
 * The index of words is a second table like that of index-entries.ts, for which bodies are too large. A person who remembers only
 * what a message said would miss it. Measured with 50 000 messages of 2048 octets (2026-11-29, SQLite 3.45), all tables counted:
 *
 *   text       terms a message   share of the text   indexing a message
 *   English                196              16.6 %              0.22 ms
 *   Japanese               395              26.8 %              0.42 ms
 *
 * With words as terms, or trigrams, the share is above a third. Bodies are too many to be indexed as they are stored, so a chore
 * comes after. The step of the schema gives places to messages, and takes them away with their contents, by triggers.
 */

/** A message whose words the index will have. */
export interface WordsRow extends SearchedRow {
  /** Its place; null: it is from before the index. */
  word_place: number | null;
  thread_id: string | null;
  /** Its template's output is stored. */
  rendered: number;
  /** Its contents were removed. */
  removed: number;
}

/** Messages that wait for the index, and what the write that adds them has to do. */
export interface WordsWaiting {
  rows: WordsRow[];
  /** Their places. */
  places: number[];
  /** Holds while no other process has come as far. */
  guard: Guard;
  /** Notes that they were added. */
  passed: Statement[];
}

interface Progress {
  newest: number;
  indexed: number;
  oldest: number;
  filled: number | null;
}

const COLUMNS = `${SEARCHED_COLUMNS.replace("position", "m.position")}, m.word_place, m.thread_id,
  COALESCE(c.rendered, 0) AS rendered, c.content_removed_at IS NOT NULL AS removed`;
const OF_PLACE = `CROSS JOIN messages m INDEXED BY messages_by_position ON m.position = p.position AND m.word_place = p.place
  LEFT JOIN message_content c ON c.message_id = m.id`;

/** Returns how far the index has come. */
export async function wordProgress(db: Db): Promise<Progress> {
  const row = await db.first<Progress>("SELECT newest, indexed, oldest, filled FROM word_progress");
  if (row === null) throw new Error("the index of words has lost its progress");
  return row;
}

/** Returns messages that came since the last turn, the oldest first. */
export async function newWords(db: Db, most: number): Promise<WordsWaiting> {
  const progress = await wordProgress(db);
  const rows = await db.all<WordsRow & { word_place: number }>(
    `SELECT ${COLUMNS} FROM word_places p ${OF_PLACE} WHERE p.place < ? ORDER BY p.place DESC LIMIT ?`,
    [progress.indexed, most],
  );
  const end = rows.length < most ? progress.newest : progress.indexed;
  const indexed = Math.min(end, rows.at(-1)?.word_place ?? end);
  const passed = { sql: "UPDATE word_progress SET indexed = ?", args: [indexed] };
  return {
    rows,
    places: rows.map(({ word_place }) => word_place),
    guard: asFar(progress),
    passed: indexed === progress.indexed ? [] : [passed],
  };
}

/** Returns indexed messages that have got another text. */
export async function changedWords(db: Db, most: number): Promise<WordsWaiting> {
  const progress = await wordProgress(db);
  const rows = await db.all<WordsRow & { word_place: number }>(
    `SELECT ${COLUMNS} FROM words_changed w CROSS JOIN word_places p ON p.place = w.place ${OF_PLACE} LIMIT ?`,
    [most],
  );
  const places = rows.map(({ word_place }) => word_place);
  const forget = {
    sql: "DELETE FROM words_changed WHERE place IN (SELECT value FROM json_each(?))",
    args: [JSON.stringify(places)],
  };
  return { rows, places, guard: asFar(progress), passed: rows.length === 0 ? [] : [forget] };
}

/** Returns messages from before the index, the newest first. Each gets a place, and those with contents keep it. */
export async function oldWords(db: Db, most: number): Promise<WordsWaiting> {
  const progress = await wordProgress(db);
  const guard = asFar(progress);
  if (progress.filled === null) return { rows: [], places: [], guard, passed: [] };
  const rows = await db.all<WordsRow>(
    `SELECT ${COLUMNS} FROM messages m INDEXED BY messages_by_position
      LEFT JOIN message_content c ON c.message_id = m.id
      WHERE m.position <= ? AND m.word_place IS NULL ORDER BY m.position DESC LIMIT ?`,
    [progress.filled, most],
  );
  const places = rows.map((_, at) => progress.oldest + 1 + at);
  const given = JSON.stringify(
    rows.map(({ id, position, removed }, at) => [id, places[at], position, removed]),
  );
  return {
    rows,
    places,
    guard,
    passed: [
      {
        sql: "UPDATE messages SET word_place = value ->> 1 FROM json_each(?) WHERE messages.id = value ->> 0",
        args: [given],
      },
      {
        sql: `INSERT INTO word_places (place, position)
          SELECT value ->> 1, value ->> 2 FROM json_each(?) WHERE value ->> 3 = 0`,
        args: [given],
      },
      {
        sql: "UPDATE word_progress SET oldest = oldest + ?, filled = ?",
        args: [rows.length, rows.length < most ? null : (rows.at(-1)?.position ?? null)],
      },
    ],
  };
}

/**
 * Adds messages to the index in one write. If one of them has changed since it was read, or another process was faster,
 * nothing is added.
 * @param wordsOf the words of each message
 */
export async function addWords(
  db: Db,
  { rows, places, guard, passed }: WordsWaiting,
  wordsOf: readonly Iterable<string>[],
): Promise<void> {
  if (passed.length === 0) return;
  const entries = rows
    .map(
      (row, at) =>
        [places[at] ?? 0, wordTermsOf(searchable(row), wordsOf[at] ?? [], row.thread_id !== null)] as const,
    )
    .filter((_, at) => rows[at]?.removed === 0)
    .sort(([a], [b]) => a - b);
  try {
    await db.write([
      requireGuard("changed_since_read", guard),
      requireGuard("changed_since_read", asRead(rows)),
      ...passed,
      {
        sql: `INSERT OR REPLACE INTO message_words (rowid, terms)
          SELECT value ->> 0, value ->> 1 FROM json_each(?)`,
        args: [JSON.stringify(entries)],
      },
    ]);
  } catch (error) {
    if (!isBroken(error, "changed_since_read")) throw error;
  }
}

function asFar({ indexed, oldest }: Progress): Guard {
  return {
    sql: "EXISTS (SELECT 1 FROM word_progress WHERE indexed = ? AND oldest = ?)",
    args: [indexed, oldest],
  };
}

/** Holds while the messages exist with the contents that they had. */
function asRead(rows: readonly WordsRow[]): Guard {
  const read: Value = JSON.stringify(rows.map(({ id, rendered, removed }) => [id, rendered, removed]));
  return {
    sql: `NOT EXISTS (SELECT 1 FROM json_each(?) j LEFT JOIN messages m ON m.id = j.value ->> 0
      LEFT JOIN message_content c ON c.message_id = m.id
      WHERE m.id IS NULL OR COALESCE(c.rendered, 0) <> j.value ->> 1
        OR (c.content_removed_at IS NOT NULL) <> j.value ->> 2)`,
    args: [read],
  };
}
