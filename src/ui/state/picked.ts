import { randomText } from "../words/random.ts";

/** Maximum number of rows that are selected at a time. */
export const MAX_PICKED = 200;

/** A selected row, with what makes a second try of an action harmless. */
export interface Picked<Row> {
  row: Row;
  token: string;
}

/** Returns the selected rows with others, as many as there may be. */
export function withRows<Row>(
  picked: ReadonlyMap<string, Picked<Row>>,
  rows: readonly Row[],
  keyOf: (row: Row) => string,
): ReadonlyMap<string, Picked<Row>> {
  const next = new Map(picked);
  for (const row of rows) {
    const key = keyOf(row);
    if (!next.has(key) && next.size < MAX_PICKED) next.set(key, { row, token: randomText() });
  }
  return next;
}
