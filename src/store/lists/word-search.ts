import type { Db } from "../engine/client.ts";
import type { Condition } from "../matching/substring.ts";
import { firstPosition, lastPosition } from "../search/positions.ts";
import { expressionOf, expressionOr, milestoneTerm } from "../search/search-terms.ts";
import { matching, milestoneRow, rareAmong, type Rows } from "../search/term-queries.ts";
import { SUMMARY_COLUMNS, type SummaryRow } from "./message-page.ts";

/** Milestones within which one query joins terms: some 33 000 of the project's messages, in five to ten milliseconds. */
export const MILESTONES_PER_QUERY = 32;

/** A search by words: the project, the terms of which a message must have all, and the conditions of a row of `messages m`. */
export interface WordSearch {
  senderId: string;
  terms: readonly string[];
  passes: Condition;
}

/** A message that the index of words has found. Its text is not compared yet. */
export interface Candidate extends SummaryRow {
  sender_id: string;
  thread_id: string | null;
  place: number;
}

/** Candidates from a place on. */
export interface Candidates {
  rows: Candidate[];
  /** The place at which the search continues; null: there are no more. */
  next: number | null;
}

/** The places at which a search by words begins and ends. */
export type Places = Rows;

/** Above every place. */
const END = Number.MAX_SAFE_INTEGER;

/**
 * Returns the places of messages created at or after a time, and before another (milliseconds). The step of the schema notes by how
 * much positions may be out of order.
 */
export async function placesBetween(
  db: Db,
  { after, before }: { after?: number | undefined; before?: number | undefined },
): Promise<Places> {
  if (after === undefined && before === undefined) return { first: 0, last: END };
  const row = await db.first<{ lateness: number }>("SELECT lateness FROM word_progress");
  const lateness = row?.lateness ?? 0;
  const first = before === undefined ? null : await placeNext(db, ">", lastPosition(before) + lateness);
  const last = after === undefined ? null : await placeNext(db, "<", firstPosition(after) - lateness);
  return { first: first ?? 0, last: last ?? END };
}

/** Returns the place of the message with the next position; null if there is none. */
async function placeNext(db: Db, side: ">" | "<", position: number): Promise<number | null> {
  const row = await db.first<{ word_place: number | null }>(
    `SELECT word_place FROM messages INDEXED BY messages_by_position
      WHERE position IS NOT NULL AND position ${side} ? ORDER BY position ${side === ">" ? "ASC" : "DESC"} LIMIT 1`,
    [position],
  );
  // Below a message without a place, none is in the index.
  return row === null ? null : (row.word_place ?? END);
}

/**
 * Returns at most `most` candidates from a place on, the newest first. If there are fewer, the search may still continue: where
 * frequent words are never together, a query ends at a milestone.
 */
export async function candidatesFrom(
  db: Db,
  search: WordSearch,
  places: Places,
  most: number,
): Promise<Candidates> {
  const milestone =
    search.terms.length === 1
      ? null
      : await milestoneRow(db, "message_words", search.senderId, places, MILESTONES_PER_QUERY);
  const last = milestone ?? places.last;
  const expression =
    milestone === null
      ? expressionOf(search.terms)
      : expressionOr(search.terms, milestoneTerm(search.senderId));
  const rows = await between(db, search, expression, { ...places, last }, most);
  if (rows.length === most) return { rows, next: (rows.at(-1)?.place ?? last) + 1 };
  return { rows, next: milestone === null ? null : milestone + 1 };
}

/** Returns the search by the first term that few messages have; by all terms if there is none. */
export async function byRareTerm(db: Db, search: WordSearch, places: Places): Promise<WordSearch> {
  if (search.terms.length === 1) return search;
  const lists = search.terms.map((term) => [term]);
  return { ...search, terms: (await rareAmong(db, "message_words", lists, places)) ?? search.terms };
}

async function between(
  db: Db,
  { senderId, passes }: WordSearch,
  expression: string,
  { first, last }: Places,
  most: number,
): Promise<Candidate[]> {
  // The conditions are shown, not required, so that the query ends after so many candidates.
  return db.all<Candidate>(
    `SELECT ${SUMMARY_COLUMNS}, m.sender_id, m.thread_id, p.place, (${passes.sql}) AS passes
      FROM message_words CROSS JOIN word_places p CROSS JOIN messages m INDEXED BY messages_by_position
      WHERE ${matching("message_words")} AND p.place = message_words.rowid
        AND m.position = p.position AND m.word_place = p.place AND m.sender_id = ?
      ORDER BY message_words.rowid LIMIT ?`,
    [...passes.args, expression, first, last, senderId, most],
  );
}

/** Messages of a thread that are looked at for a newer place. */
const NEWER_LOOKED_AT = 200;

/** Returns the candidates of a thread with places from `first` to below `below`. */
export async function newerInThread(
  db: Db,
  { terms, senderId }: WordSearch,
  threadId: string,
  first: number,
  below: number,
): Promise<Candidate[]> {
  return db.all<Candidate>(
    `SELECT ${SUMMARY_COLUMNS}, m.sender_id, m.thread_id, m.word_place AS place, 1 AS passes
      FROM (SELECT id, word_place FROM messages INDEXED BY messages_by_thread
        WHERE thread_id = ? AND word_place >= ? AND word_place < ? ORDER BY id DESC LIMIT ${NEWER_LOOKED_AT}) t
      CROSS JOIN message_words w CROSS JOIN messages m
      WHERE w.message_words MATCH ? AND w.rowid = t.word_place AND m.id = t.id AND m.sender_id = ?`,
    [threadId, first, below, expressionOf(terms), senderId],
  );
}
