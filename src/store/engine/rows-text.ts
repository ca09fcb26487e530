import type { ReadyStatement, Statement, Value } from "./engine.ts";

/*
 * Many requests commit together, and most of them store rows of the same few kinds. A statement for each of those rows
 * takes twice the time of one for many: SQLite and its client begin and end each one, and a `CHECK` with a list is made anew
 * for it.
 */

/** The tables that rows may be put into together, parents first. */
const ORDER = [
  ...["usage", "idempotency", "contents", "messages"],
  ...["message_content", "attachments", "recipients", "events", "webhook_deliveries"],
  ...["threads", "thread_references", "inboxes"],
] as const;

/** Rows of one statement at most. Each power of two up to it is a prepared statement. */
const MOST_AT_ONCE = 16;

/**
 * A text that does nothing but add rows to a table, or count on one that is there. Its writer says with it that its
 * statements may be run before or after those of others in a transaction, and before or after its own for other tables, as
 * long as parents come first. Such statements return nothing.
 */
export interface RowsText {
  /** The whole text for one statement. */
  sql: string;
  table: (typeof ORDER)[number];
  before: string;
  /** What is repeated for each statement: rows in brackets, whose parameters are numbered from `?1` on. */
  rows: string;
  after: string;
  /** Parameters of `rows`. Null: others stand elsewhere in the text, so it is for one statement. */
  parameters: number | null;
}

/** What a text has besides its rows. */
interface RowsOptions {
  /** Behind the rows: what is done where there is one of that key. */
  after?: string;
  /** What holds for the rows that are stored, `column1` being the first of a row; left out: all of them are. */
  where?: string;
  /**
   * False for a text that stands for one statement alone, as with `where` unless told otherwise: it is run before or after
   * others, but never with them. True with `where`: nobody asks how many rows a statement has stored.
   */
  repeats?: boolean;
}

/** @param rows e.g. `(?1, ?2)`. Of a text that repeats they have no other parameters. */
export function rowsText(
  table: RowsText["table"],
  columns: string,
  rows: string,
  { after: behind = "", where, repeats = where === undefined }: RowsOptions = {},
): RowsText {
  const [source, end] =
    where === undefined ? ["VALUES ", ""] : ["SELECT * FROM (VALUES ", `) WHERE ${where}`];
  const [before, after] = [`INSERT INTO ${table} (${columns}) ${source}`, `${end}${behind}`];
  const parameters = repeats ? new Set(rows.match(/\?\d+/g)).size : null;
  return { sql: `${before}${rows}${after}`, table, before, rows, after, parameters };
}

/** An SQL text whose parameters are `?` alone, with numbers for them. */
export function numbered(sql: string, first = 1): string {
  let number = first;
  return sql.replace(/\?/g, () => `?${number++}`);
}

/**
 * A text for one statement alone, which adds rows to a table or counts on one that is there as others do: it is run before or
 * after them.
 */
export function movableText(table: RowsText["table"], sql: string): RowsText {
  return { sql, table, before: sql, rows: "", after: "", parameters: null };
}

/** A statement of such a text. */
export function rowsStatement(rows: RowsText, args: Statement["args"]): Statement {
  return { sql: rows.sql, args, rows };
}

/** A statement that stands for some of those that were given. */
export interface Together {
  sql: string;
  args: Value[];
  /** Places of those it stands for, each of which changes as many rows as the others, if anybody asks. */
  places: number[];
}

/** The statements put together where they can be, to be run in that order; null where none can. */
export function together(statements: readonly ReadyStatement[]): Together[] | null {
  const all: Together[] = [];
  let waiting = new Map<string, number[]>();
  const flush = (): void => {
    if (waiting.size > 0)
      for (const places of inOrder(statements, waiting)) all.push(...joined(statements, places));
    waiting = new Map();
  };
  for (const [place, { sql, args, rows }] of statements.entries()) {
    if (rows === undefined) {
      flush();
      all.push({ sql, args, places: [place] });
      continue;
    }
    const places = waiting.get(sql);
    if (places === undefined) waiting.set(sql, [place]);
    else places.push(place);
  }
  flush();
  return all.length < statements.length ? all : null;
}

function inOrder(statements: readonly ReadyStatement[], waiting: ReadonlyMap<string, number[]>): number[][] {
  const rank = ([place = 0]: number[]): number => {
    const rows = statements[place]?.rows;
    // A content that a write names a second time, by a text for one statement, is stored by one that repeats.
    return rows === undefined ? -1 : 2 * ORDER.indexOf(rows.table) + Number(rows.parameters === null);
  };
  return [...waiting.values()].sort((a, b) => rank(a) - rank(b));
}

/** Statements of one text, as few. */
function joined(statements: readonly ReadyStatement[], places: readonly number[]): Together[] {
  const all: Together[] = [];
  for (let from = 0; from < places.length; ) {
    const text = statements[places[from] ?? 0]?.rows;
    if (text === undefined) throw new Error("only rows are put together");
    const count = text.parameters === null ? 1 : powerOfTwoIn(places.length - from);
    const some = places.slice(from, from + count);
    const args = some.flatMap((place) => statements[place]?.args ?? []);
    all.push({ sql: repeated(text, count), args, places: some });
    from += count;
  }
  return all;
}

function powerOfTwoIn(count: number): number {
  return count >= MOST_AT_ONCE ? MOST_AT_ONCE : 1 << (31 - Math.clz32(count));
}

const texts = new WeakMap<RowsText, Map<number, string>>();

/** The text for so many statements. Made once: a text that is made anew is hashed anew wherever it is looked up. */
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
