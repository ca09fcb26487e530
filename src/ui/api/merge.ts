import type { Page } from "./types.ts";

/** The position of a row in the list's order, as a sortable string. */
export type OrderOf<Row> = (row: Row) => string;

/** Rows that are known, and the cursor of the page after them. */
export interface Known<Row> {
  rows: readonly Row[];
  next: string | null;
}

/** Merges a reread first page into the known rows. Rows within its span that it lacks have left the list. */
export function merge<Row>(known: Known<Row>, fresh: Page<Row>, orderOf: OrderOf<Row>): Known<Row> {
  const last = fresh.data.at(-1);
  if (fresh.nextCursor === null || last === undefined) return { rows: fresh.data, next: fresh.nextCursor };
  const floor = orderOf(last);
  const first = known.rows[0];
  // More than a page of rows is new, so those between are not known.
  if (first === undefined || orderOf(first) < floor) return { rows: fresh.data, next: fresh.nextCursor };
  const older = known.rows.filter((row) => orderOf(row) < floor);
  return older.length === 0
    ? { rows: fresh.data, next: fresh.nextCursor }
    : { rows: [...fresh.data, ...older], next: known.next };
}
