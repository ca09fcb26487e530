import { idFloor } from "../../core/ids.ts";
import type { Db } from "../engine/client.ts";
import { conditionOf, passes, placesOf } from "./message-filter.ts";
import { firstPlace, PLACE_OF_ROW, rowOfPlace, timeOfId, timeOfPlace } from "./message-index.ts";
import {
  type Found,
  gather,
  isWanted,
  newestFirst,
  type Page,
  SUMMARY_COLUMNS,
  type SummaryRow,
  type Walk,
} from "./message-page.ts";
import { expressionOf, expressionOr, milestoneTerm, type Terms } from "./search-terms.ts";

/** What fewer messages have than this is looked for alone: all of them are read sooner than terms are joined. */
const FEW = 200;
/** Milestones at which a page ends that joins terms of many messages each: some four thousand of the project's. */
export const MILESTONES_PER_PAGE = 4;

/** Places of the index, from `low` to `high`. */
interface Places {
  low: number;
  high: number;
}

/**
 * A page by way of the index, whose order is nearly that of ids. A walk that has come down to the first place of a time
 * has seen all of that time and later; so the rows from the walk's end down to the time of the page's last one are read
 * too: as many as were stored within the quarter of a second that places may differ by.
 * @param terms the page's
 */
export async function searchIndex(db: Db, page: Page, terms: Terms): Promise<Found> {
  const { filter, limit } = page;
  const { expression, places, end } = await wayThrough(db, page, terms);
  const walk = downPlaces(db, page, expression, places);
  const { rows, stoppedAt } = await gather(walk, page);
  const matches = newestFirst(rows);
  const last = matches[limit - 1];
  if (last === undefined) return { rows: matches, stoppedAt: stoppedAt ?? end };
  const low = firstPlace(timeOfId(last.id) ?? last.created_at);
  const high = Math.min(...matches.map(({ position }) => position ?? low));
  const late = high < low ? [] : await between(db, page, expression, { low, high }, -1);
  const seen = newestFirst([...matches, ...late.filter((row) => isWanted(row, filter))]);
  return { rows: seen.slice(0, limit), stoppedAt: null };
}

/** What a page asks the index for. */
interface Way {
  expression: string;
  places: Places;
  /** Where the places end before all have been looked at: all ids from this one on are among them. */
  end: string | null;
}

/**
 * The way that takes bounded time, however many messages have each of the terms and how few all of them, or a status
 * that the index does not have. Grams alone are joined to their end: in a text that few messages have there is a gram
 * that few have. The status is one that many have, or this way would not be taken.
 */
async function wayThrough(db: Db, page: Page, { status, wholes, grams }: Terms): Promise<Way> {
  const terms = [...status, ...wholes];
  const places = placesOf(page.filter, page.before);
  const whole: Way = { expression: expressionOf(terms, grams), places, end: null };
  const compared = page.filter.status !== undefined && status.length === 0;
  if (!compared && (terms.length === 0 || (terms.length === 1 && grams.length === 0))) return whole;
  const parts = wholes.map((term) => expressionOf([term]));
  const few = await rarePart(db, grams.length === 0 ? parts : [...parts, expressionOf([], grams)], places);
  if (few !== null) return { ...whole, expression: few };
  const milestone = milestoneTerm(page.senderId);
  const low = await milestoneBelow(db, milestone, places);
  const end = low === null ? null : passedPlace(page, low);
  if (low === null || end === null) return whole;
  return { expression: expressionOr(terms, grams, milestone), places: { ...places, low }, end };
}

/** The place of the milestone at which a page ends; null where there are not so many. */
async function milestoneBelow(db: Db, milestone: string, { low, high }: Places): Promise<number | null> {
  const row = await db.first<{ place: number }>(
    `SELECT ${PLACE_OF_ROW} AS place FROM message_terms
      WHERE message_terms MATCH ? AND rowid BETWEEN CAST(? AS INTEGER) AND CAST(? AS INTEGER)
      ORDER BY rowid LIMIT 1 OFFSET ?`,
    [expressionOf([milestone]), rowOfPlace(high), rowOfPlace(low), MILESTONES_PER_PAGE - 1],
  );
  return row?.place ?? null;
}

/**
 * The id down to which a walk has seen all that has come down to a place. Of the time that the place lies in there may be
 * more below it, of later ones there is nothing. Null where it has not come below the page's beginning.
 */
function passedPlace({ before }: Page, place: number): string | null {
  const passed = idFloor("msg", timeOfPlace(place) + 1);
  return before === null || passed < before ? passed : null;
}

/** The first of the parts of an expression that few messages have; null: none. */
async function rarePart(db: Db, parts: readonly string[], { low, high }: Places): Promise<string | null> {
  for (const expression of parts) {
    const row = await db.first<{ count: number }>(
      `SELECT count(*) AS count FROM (SELECT 1 FROM message_terms
        WHERE message_terms MATCH ? AND rowid BETWEEN CAST(? AS INTEGER) AND CAST(? AS INTEGER) LIMIT ?)`,
      [expression, rowOfPlace(high), rowOfPlace(low), FEW],
    );
    if (row !== null && row.count < FEW) return expression;
  }
  return null;
}

/** The walk down the places of the messages that have the terms. */
function downPlaces(db: Db, page: Page, expression: string, places: Places): Walk {
  let { high } = places;
  // Two messages may share a place where a clock was set back: those given of the last place are not given again.
  let given: string[] = [];
  return {
    async next(most) {
      const rows = await between(db, page, expression, { low: places.low, high }, most + given.length);
      const fresh = rows.filter(({ id }) => !given.includes(id));
      const last = fresh.at(-1)?.position ?? high;
      given = [
        ...(last === high ? given : []),
        ...fresh.filter((row) => row.position === last).map(({ id }) => id),
      ];
      high = last;
      return fresh;
    },
    passed: ({ position }) => (position === null ? null : passedPlace(page, position)),
  };
}

/** Messages that the index finds, with a place from `low` to `high`: at most `most`, all where it is negative. */
async function between(
  db: Db,
  { senderId, filter, before }: Page,
  expression: string,
  { low, high }: Places,
  most: number,
): Promise<SummaryRow[]> {
  const { sql, args } = conditionOf(senderId, filter, before, []);
  const pass = passes(filter);
  // libSQL binds numbers as floating ones, and FTS5 begins at a bound only where it is an integer.
  return db.all<SummaryRow>(
    `SELECT ${SUMMARY_COLUMNS}, (${pass.sql}) AS passes FROM message_terms CROSS JOIN messages m INDEXED BY messages_by_position
      WHERE message_terms MATCH ? AND message_terms.rowid BETWEEN CAST(? AS INTEGER) AND CAST(? AS INTEGER)
        AND m.position = ${PLACE_OF_ROW} AND ${sql}
      ORDER BY message_terms.rowid LIMIT ?`,
    [...pass.args, expression, rowOfPlace(high), rowOfPlace(low), ...args, most],
  );
}
