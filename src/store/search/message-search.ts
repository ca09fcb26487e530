import { idFloor } from "../../core/ids.ts";
import type { Db } from "../engine/client.ts";
import { conditionOf, placesOf } from "./message-filter.ts";
import { firstPlace, PLACE_OF_ROW, rowOfPlace, timeOfId, timeOfPlace } from "./message-index.ts";
import {
  type Found,
  gather,
  holds,
  newestFirst,
  type Page,
  SUMMARY_COLUMNS,
  type SummaryRow,
  type Walk,
} from "./message-page.ts";
import { expressionOf } from "./search-terms.ts";

/** A value that fewer messages have than this is looked for alone: all of them are read sooner than terms are joined. */
const FEW = 200;

/** Places of the index, from `low` to `high`. */
interface Places {
  low: number;
  high: number;
}

/**
 * A page by way of the index, whose order is nearly that of ids. A walk that has come down to the first place of a time
 * has seen all of that time and later; so the rows from the walk's end down to the time of the page's last one are read
 * too: as many as were stored within the quarter of a second that places may differ by.
 * @param wholes terms of whole values @param grams terms of a text
 */
export async function searchIndex(
  db: Db,
  page: Page,
  { wholes, grams }: { wholes: readonly string[]; grams: readonly string[] },
): Promise<Found> {
  const { filter, before, limit } = page;
  const { q } = filter;
  const places = placesOf(filter, before);
  const few = await rareTerm(db, [...wholes, ...grams].length > 1 ? wholes : [], places);
  const expression = few ?? expressionOf([...wholes, ...grams]);
  const { rows, stoppedAt } = await gather(downPlaces(db, page, expression, places), page);
  const matches = newestFirst(rows);
  const last = matches[limit - 1];
  if (last === undefined) return { rows: matches, stoppedAt };
  const low = firstPlace(timeOfId(last.id) ?? last.created_at);
  const high = Math.min(...matches.map(({ position }) => position ?? low));
  const late = high < low ? [] : await between(db, page, expression, { low, high }, -1);
  const seen = newestFirst([...matches, ...late.filter((row) => q === undefined || holds(row, q))]);
  return { rows: seen.slice(0, limit), stoppedAt: null };
}

/** The expression of the first of the terms that few messages have; null where there is none. */
async function rareTerm(db: Db, terms: readonly string[], { low, high }: Places): Promise<string | null> {
  for (const term of terms) {
    const expression = expressionOf([term]);
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
    passed({ position }) {
      // Of the time that the place lies in there may be more below it, of later ones there is nothing.
      const passed = position === null ? null : idFloor("msg", timeOfPlace(position) + 1);
      return passed !== null && (page.before === null || passed < page.before) ? passed : null;
    },
  };
}

/** Messages that may be wanted, with a place from `low` to `high`: at most `most`, all where it is negative. */
async function between(
  db: Db,
  { senderId, filter, before }: Page,
  expression: string,
  { low, high }: Places,
  most: number,
): Promise<SummaryRow[]> {
  const { sql, args } = conditionOf(senderId, filter, before);
  // libSQL binds numbers as floating ones, and FTS5 begins at a bound only where it is an integer.
  return db.all<SummaryRow>(
    `SELECT ${SUMMARY_COLUMNS} FROM message_terms CROSS JOIN messages m INDEXED BY messages_by_position
      WHERE message_terms MATCH ? AND message_terms.rowid BETWEEN CAST(? AS INTEGER) AND CAST(? AS INTEGER)
        AND m.position = ${PLACE_OF_ROW} AND ${sql}
      ORDER BY message_terms.rowid LIMIT ?`,
    [expression, rowOfPlace(high), rowOfPlace(low), ...args, most],
  );
}
