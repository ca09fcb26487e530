import type { Db, Guard, Statement, Value } from "../engine/client.ts";
import type { Sealed } from "./secrets.ts";

/** The sealed values of a row, in the order of the table's columns. */
export interface SealedRow {
  key: readonly Value[];
  values: readonly (string | null)[];
}

/** Returns at most `limit` rows with sealed values in the order of their keys, behind `after`. Null: from the first. */
export async function sealedRows(
  db: Db,
  { table, key, columns, where = "1" }: Sealed,
  after: readonly Value[] | null,
  limit: number,
): Promise<SealedRow[]> {
  const keys = key.join(", ");
  const place = after === null ? "1" : `(${keys}) > (${key.map(() => "?").join(", ")})`;
  const rows = await db.all<Record<string, Value>>(
    `SELECT ${keys}, ${columns.map((column, at) => `${column} AS sealed${at}`).join(", ")} FROM ${table}
      WHERE ${place} AND ${where} ORDER BY ${keys} LIMIT ?`,
    [...(after ?? []), limit],
  );
  return rows.map((row) => ({
    key: key.map((name) => row[name] ?? null),
    values: columns.map((_, at) => row[`sealed${at}`] as string | null),
  }));
}

/** Returns the statement that replaces a row's sealed values, if they are still those that were read and the guard holds. */
export function replaceSealed(
  { table, key, columns }: Sealed,
  row: SealedRow,
  values: readonly (string | null)[],
  guard: Guard,
): Statement {
  const same = [...key, ...columns].map((name) => `${name} IS ?`).join(" AND ");
  return {
    sql: `UPDATE ${table} SET ${columns.map((name) => `${name} = ?`).join(", ")} WHERE ${same} AND ${guard.sql}`,
    args: [...values, ...row.key, ...row.values, ...guard.args],
  };
}
