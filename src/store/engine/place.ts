import type { Value } from "./client.ts";

/**
 * The position of a page in a list, newest first. Null: it begins at the newest row. A string: it begins below that
 * id. `above`: it ends above that id.
 */
export type Place = string | null | { above: string };

/** SQL of a page in the order of ids. An index on the owner and `id` finds its rows in both directions. */
export interface PageOrder {
  /** Condition of the page's rows, with one parameter. */
  range: string;
  /** Condition that a row is not behind another one, which is the parameter. */
  end: string;
  /** `ORDER BY`, from the place on. */
  order: string;
  from: string;
  /** Returns the rows, which come in this order, newest first. */
  newestFirst<Row>(rows: Row[]): Row[];
}

/** Returns the SQL of the page at a place. @param ceiling a string above all ids of the list */
export function pageOrder(place: Place, ceiling: string): PageOrder {
  if (typeof place === "string" || place === null)
    return {
      range: "id < ?",
      end: "id >= ?",
      order: "ORDER BY id DESC",
      from: place ?? ceiling,
      newestFirst: (rows) => rows,
    };
  return {
    range: "id > ?",
    end: "id <= ?",
    order: "ORDER BY id ASC",
    from: place.above,
    newestFirst: (rows) => rows.toReversed(),
  };
}

/** A page of one owner's rows. */
export interface OwnedPage {
  /** SQL condition of the owner and of filters that few rows fail. */
  where: string;
  args: Value[];
  place: Place;
  /** A string above all ids of the list. */
  ceiling: string;
  take: number;
}

/** A place in a list of rows. Null: its end. */
export type RowPlace = readonly [string | number, string | number] | null;
