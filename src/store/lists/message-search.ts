import { idFloor } from "../../core/ids.ts";
import type { Db } from "../engine/client.ts";
import { conditionOf, passes, positionsOf } from "./message-filter.ts";
import {
  firstPosition,
  POSITION_OF_ROW,
  positionOfRow,
  rowOfPosition,
  timeOfId,
  timeOfPosition,
} from "../search/positions.ts";
import {
  type Found,
  collectPage,
  isWanted,
  newestFirst,
  type Page,
  SUMMARY_COLUMNS,
  type SummaryRow,
  type Walk,
} from "./message-page.ts";
import { expressionOf, expressionOr, milestoneTerm, type Terms } from "../search/search-terms.ts";
import { matching, milestoneRow, rareAmong, type Rows } from "../search/term-queries.ts";

/** Milestones after which a page ends if it joins frequent terms: some four thousand of the project's messages. */
export const MILESTONES_PER_PAGE = 4;

/** Positions of the index, from `low` to `high`. */
interface Positions {
  low: number;
  high: number;
}

/**
 * Returns a page by means of the index, whose order is nearly that of ids. Positions may be out of order by a quarter
 * of a second. So the rows from the walk's end down to the time of the page's last message are read, too.
 * @param terms the page's
 */
export async function searchIndex(db: Db, page: Page, terms: Terms): Promise<Found> {
  const { filter, limit } = page;
  const { expression, places, end } = await chooseQuery(db, page, terms);
  const walk = downPositions(db, page, expression, places);
  const { rows, stoppedAt } = await collectPage(walk, page);
  const matches = newestFirst(rows);
  const last = matches[limit - 1];
  if (last === undefined) return { rows: matches, stoppedAt: stoppedAt ?? end };
  const low = firstPosition(timeOfId(last.id) ?? last.created_at);
  const high = Math.min(...matches.map(({ position }) => position ?? low));
  const late = high < low ? [] : await between(db, page, expression, { low, high }, -1);
  const seen = newestFirst([...matches, ...late.filter((row) => isWanted(row, filter))]);
  return { rows: seen.slice(0, limit), stoppedAt: null };
}

/** A query of the index. */
interface IndexQuery {
  expression: string;
  places: Positions;
  /** If the positions end early: all ids from this one on are among them. */
  end: string | null;
}

/**
 * Chooses a query of bounded time, even if each term is frequent and their combination rare, or there is a status,
 * which the index lacks. Trigrams alone are joined to their end: a rare text has a rare trigram. The status is frequent
 * here, or the index would not be used.
 */
async function chooseQuery(db: Db, page: Page, { wholes, grams }: Terms): Promise<IndexQuery> {
  const terms = [...wholes, ...grams];
  const places = positionsOf(page.filter, page.before);
  const whole: IndexQuery = { expression: expressionOf(terms), places, end: null };
  if (page.filter.status === undefined && (wholes.length === 0 || terms.length === 1)) return whole;
  const parts = [...wholes.map((term) => [term]), ...(grams.length === 0 ? [] : [grams])];
  const rows = rowsAt(places);
  const few = await rareAmong(db, "message_terms", parts, rows);
  if (few !== null) return { ...whole, expression: expressionOf(few) };
  const row = await milestoneRow(db, "message_terms", page.senderId, rows, MILESTONES_PER_PAGE);
  const low = row === null ? null : positionOfRow(row);
  const end = low === null ? null : idPassed(page, low);
  if (low === null || end === null) return whole;
  return { expression: expressionOr(terms, milestoneTerm(page.senderId)), places: { ...places, low }, end };
}

/** Returns the rows at positions: the newest is the first. */
function rowsAt({ low, high }: Positions): Rows {
  return { first: rowOfPosition(high), last: rowOfPosition(low) };
}

/**
 * Returns the id down to which a walk has seen everything once it is at a position. The position's own millisecond may
 * have more below it, later ones do not. null if the walk is not below the page's beginning.
 */
function idPassed({ before }: Page, place: number): string | null {
  const passed = idFloor("msg", timeOfPosition(place) + 1);
  return before === null || passed < before ? passed : null;
}

/** Returns a walk down the positions of the messages that have the terms. */
function downPositions(db: Db, page: Page, expression: string, places: Positions): Walk {
  let { high } = places;
  // Two messages may share a position if the clock was set back. Those already returned for the last position are not
  // returned again.
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
    passed: ({ position }) => (position === null ? null : idPassed(page, position)),
  };
}

/**
 * Returns messages that the index finds with a position from `low` to `high`: at most `most`, all if it is negative.
 */
async function between(
  db: Db,
  { senderId, filter, before }: Page,
  expression: string,
  places: Positions,
  most: number,
): Promise<SummaryRow[]> {
  // With a status, the positions end at a milestone, so other messages need not count as looked at.
  const { sql, args } = conditionOf(senderId, filter, before, ["status"]);
  const pass = passes(filter);
  const { first, last } = rowsAt(places);
  return db.all<SummaryRow>(
    `SELECT ${SUMMARY_COLUMNS}, (${pass.sql}) AS passes FROM message_terms CROSS JOIN messages m INDEXED BY messages_by_position
      WHERE ${matching("message_terms")} AND m.position = ${POSITION_OF_ROW} AND ${sql}
      ORDER BY message_terms.rowid LIMIT ?`,
    [...pass.args, expression, first, last, ...args, most],
  );
}
