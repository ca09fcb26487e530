import type { Db } from "../engine/client.ts";
import { expressionOf, milestoneTerm } from "./search-terms.ts";

/** The tables of FTS5, whose rows are messages by falling age. */
export type TermTable = "message_terms" | "message_words";

/** Rows of an index, from `first` to `last`. */
export interface Rows {
  first: number;
  last: number;
}

/** If a term has fewer messages than this, they are all read: that is faster than joining terms. */
export const FEW = 200;

/**
 * Condition that FTS5 seeks by. Parameters: the expression, the first and the last row. libSQL binds numbers as floating point, and
 * FTS5 seeks only to integers.
 */
export function matching(table: TermTable): string {
  return `${table} MATCH ? AND ${table}.rowid BETWEEN CAST(? AS INTEGER) AND CAST(? AS INTEGER)`;
}

/** Returns the first list whose terms only few messages have together; null if there is none. */
export async function rareAmong(
  db: Db,
  table: TermTable,
  lists: readonly (readonly string[])[],
  { first, last }: Rows,
): Promise<readonly string[] | null> {
  for (const terms of lists) {
    const row = await db.first<{ count: number }>(
      `SELECT count(*) AS count FROM (SELECT 1 FROM ${table} WHERE ${matching(table)} LIMIT ?)`,
      [expressionOf(terms), first, last, FEW],
    );
    if (row !== null && row.count < FEW) return terms;
  }
  return null;
}

/** Returns the row of the project's `nth` milestone; null if there are fewer. */
export async function milestoneRow(
  db: Db,
  table: TermTable,
  senderId: string,
  { first, last }: Rows,
  nth: number,
): Promise<number | null> {
  const found = await db.first<{ row: number }>(
    `SELECT rowid AS row FROM ${table} WHERE ${matching(table)} ORDER BY rowid LIMIT 1 OFFSET ?`,
    [expressionOf([milestoneTerm(senderId)]), first, last, nth - 1],
  );
  return found?.row ?? null;
}
