import { MERGED_TABLES, type ReadyStatement, type RowsText, type Statement, type Value } from "./engine.ts";

/*
 * Merges statements of writers that commit together. Most of them insert rows into the same few tables. One statement
 * for many rows takes half the time of one for each, because SQLite and its client begin and end fewer statements.
 */

/** Maximum number of rows of one statement. Each power of two up to it is a prepared statement. */
const MAX_ROWS = 16;

/** Optional parts of the SQL besides its rows. */
interface RowsOptions {
  /** Follows the rows, for example an ON CONFLICT clause. */
  after?: string;
  /** Condition for the rows that are stored, with `column1` as the first column of a row. Default: all. */
  where?: string;
  /**
   * False if each statement must run by itself: it may be moved before or after others, but not merged. Default: true
   * without `where`. Set true with `where` only if no caller reads how many rows a statement stored.
   */
  repeats?: boolean;
}

/**
 * Makes SQL that may be merged.
 * @param rows for example `(?1, ?2)`. If the rows repeat, the rest of the SQL has no parameters.
 */
export function rowsText(
  table: RowsText["table"],
  columns: string,
  rows: string,
  { after: end = "", where, repeats = where === undefined }: RowsOptions = {},
): RowsText {
  const [source, condition] =
    where === undefined ? ["VALUES ", ""] : ["SELECT * FROM (VALUES ", `) WHERE ${where}`];
  const [before, after] = [`INSERT INTO ${table} (${columns}) ${source}`, `${condition}${end}`];
  const parameters = repeats ? new Set(rows.match(/\?\d+/g)).size : null;
  return { sql: `${before}${rows}${after}`, table, before, rows, after, parameters };
}

/** Numbers the parameters of an SQL text in which each is a plain `?`. */
export function numbered(sql: string, first = 1): string {
  let number = first;
  return sql.replace(/\?/g, () => `?${number++}`);
}

/** Makes SQL that may be moved before or after others, but not merged. */
export function reorderableText(table: RowsText["table"], sql: string): RowsText {
  return { sql, table, before: sql, rows: "", after: "", parameters: null };
}

/** Makes a statement of SQL that may be merged or moved. */
export function rowsStatement(rows: RowsText, args: Statement["args"]): Statement {
  return { sql: rows.sql, args, rows };
}

/** A statement that replaces one or more of the given statements. */
export interface MergedStatement {
  sql: string;
  args: Value[];
  /** Indexes of the statements that it replaces. Each has changed the same number of rows, if a caller reads that. */
  indexes: number[];
}

/** Merges the statements and returns them in the order in which to run them; null if none can be merged. */
export function mergeStatements(statements: readonly ReadyStatement[]): MergedStatement[] | null {
  const all: MergedStatement[] = [];
  let waiting = new Map<string, number[]>();
  const flush = (): void => {
    if (waiting.size > 0)
      for (const indexes of inOrder(statements, waiting)) all.push(...merged(statements, indexes));
    waiting = new Map();
  };
  for (const [index, { sql, args, rows }] of statements.entries()) {
    if (rows === undefined) {
      flush();
      all.push({ sql, args, indexes: [index] });
      continue;
    }
    const indexes = waiting.get(sql);
    if (indexes === undefined) waiting.set(sql, [index]);
    else indexes.push(index);
  }
  flush();
  return all.length < statements.length ? all : null;
}

/** Sorts groups of statements so that rows of parent tables come first. */
function inOrder(statements: readonly ReadyStatement[], waiting: ReadonlyMap<string, number[]>): number[][] {
  const rank = ([index = 0]: number[]): number => {
    const rows = statements[index]?.rows;
    // SQL with repeated rows comes first: if a write names a content twice, the second time is SQL for one
    // statement.
    return rows === undefined ? -1 : 2 * MERGED_TABLES.indexOf(rows.table) + Number(rows.parameters === null);
  };
  return [...waiting.values()].sort((a, b) => rank(a) - rank(b));
}

function merged(statements: readonly ReadyStatement[], indexes: readonly number[]): MergedStatement[] {
  const all: MergedStatement[] = [];
  for (let from = 0; from < indexes.length; ) {
    const text = statements[indexes[from] ?? 0]?.rows;
    if (text === undefined) throw new Error("only statements with `rows` can be merged");
    const count = text.parameters === null ? 1 : powerOfTwoIn(indexes.length - from);
    const some = indexes.slice(from, from + count);
    const args = some.flatMap((index) => statements[index]?.args ?? []);
    all.push({ sql: repeated(text, count), args, indexes: some });
    from += count;
  }
  return all;
}

function powerOfTwoIn(count: number): number {
  return count >= MAX_ROWS ? MAX_ROWS : 1 << (31 - Math.clz32(count));
}

const texts = new WeakMap<RowsText, Map<number, string>>();

/** Returns the text for a number of statements. Cached, because a new string would be hashed again at each lookup. */
function repeated(text: RowsText, count: number): string {
  const { before, rows, after, parameters } = text;
  if (count === 1 || parameters === null) return text.sql;
  const known = texts.get(text) ?? new Map<number, string>();
  texts.set(text, known);
  let sql = known.get(count);
  if (sql === undefined) {
    const each = Array.from({ length: count }, (_, n) => shifted(rows, n * parameters));
    sql = `${before}${each.join(", ")}${after}`;
    known.set(count, sql);
  }
  return sql;
}

function shifted(rows: string, by: number): string {
  return rows.replace(/\?(\d+)/g, (_, number) => `?${Number(number) + by}`);
}
