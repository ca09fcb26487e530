import { yieldToEventLoop } from "../../core/concurrency/event-loop.ts";
import type { Db } from "../engine/client.ts";
import type { PageOrder } from "../engine/place.ts";
import { allOf, type Condition, type TextCondition } from "./substring.ts";

/**
 * Rows that one page scans for a filter without an index. The next page continues there. A hundred thousand take about
 * a tenth of a second; of larger rows there are fewer.
 */
export const MAX_SCANNED = 100_000;
/** Rows scanned at a time, in two or three milliseconds. Other requests are served in between. */
export const SCAN_STEP = 5000;

/**
 * The share of a full step that a step counts as if it is short because of long strings. The number of strings per
 * step allows for the worst case, and usual strings take a hundredth of that.
 */
const SHARE_COUNTED = 1 / 4;

export interface ScannedList<Row, Place> {
  /** Returns the position of the `rows`-th row after `from`; null if there are fewer. */
  positionAfter(from: Place, rows: number): Promise<Place | null>;
  /** Returns the first `limit` matching rows after `from`, up to the row at `end`; null: to the list's end. */
  wanted(from: Place, end: Place | null, limit: number): Promise<Row[]>;
  /** If strings are compared: their bytes between two positions, and how many are compared at a time. */
  text?: { octets(from: Place, end: Place | null): Promise<number>; inOneGo: number } | undefined;
}

/** One page of a scanned list. */
export interface Scanned<Row, Place = string> {
  rows: Row[];
  /** If the page is short and the list is not at its end: nothing after this position has been looked at. */
  stoppedAt: Place | null;
}

/** A part of a list that is scanned at a time. */
interface Step<Place> {
  /** Its last position; null: the list's end. */
  end: Place | null;
  rows: number;
  /** Its cost, in rows of the usual size. */
  effort: number;
}

/** Returns the first `limit` matching rows of a list after a position, found in steps. */
export async function scanInSteps<Row, Place>(
  list: ScannedList<Row, Place>,
  start: Place,
  limit: number,
): Promise<Scanned<Row, Place>> {
  const rows: Row[] = [];
  let from: Place | null = start;
  let most = SCAN_STEP;
  for (let left = MAX_SCANNED; from !== null && left > 0; ) {
    const step: Step<Place> = await nextStep(list, from, Math.min(most, left));
    rows.push(...(await list.wanted(from, step.end, limit - rows.length)));
    if (rows.length >= limit) return { rows, stoppedAt: null };
    from = step.end;
    left -= step.effort;
    most = Math.min(SCAN_STEP, 2 * step.rows);
    await yieldToEventLoop();
  }
  return { rows, stoppedAt: from };
}

/** Returns the next step of `most` rows, or of half as many until their strings can be compared at once. */
async function nextStep<Row, Place>(
  { positionAfter, text }: ScannedList<Row, Place>,
  from: Place,
  most: number,
): Promise<Step<Place>> {
  for (let rows = most; ; rows = Math.ceil(rows / 2)) {
    const end = await positionAfter(from, rows);
    const share = text === undefined ? 0 : (await text.octets(from, end)) / text.inOneGo;
    if (share <= 1 || rows === 1)
      return { end, rows, effort: Math.max(rows, Math.ceil(SCAN_STEP * share * SHARE_COUNTED)) };
  }
}

/** Returns the first `limit` matching rows of a list after a position at once, if an index finds them. */
export async function firstWanted<Row, Place>(
  list: ScannedList<Row, Place>,
  start: Place,
  limit: number,
): Promise<Scanned<Row, Place>> {
  return { rows: await list.wanted(start, null, limit), stoppedAt: null };
}

/**
 * Returns all rows of a list, or the first `most`, read `step` at a time.
 * @param next reads the first `limit` rows after that row; null: from the beginning
 */
export async function readInSteps<Row>(
  step: number,
  most: number,
  next: (last: Row | null, limit: number) => Promise<Row[]>,
): Promise<Row[]> {
  const found: Row[] = [];
  for (;;) {
    const rows = await next(found.at(-1) ?? null, Math.min(step, most - found.length));
    found.push(...rows);
    if (rows.length < step) return found;
    await yieldToEventLoop();
  }
}

/** Rows of one owner in a table that has an index on the owner and `id`. */
export interface OwnedRows {
  /** The table, and the index if SQLite should not choose. */
  from: string;
  columns: string;
  /** The condition of the owner, which the index serves. */
  owner: Condition;
  /** The filters of a row, except the search. */
  where: readonly Condition[];
  text?: TextCondition | undefined;
  /** The direction in which the rows are read. */
  order: PageOrder;
  /** The least id of a list that is read downwards; if left out, the list has all rows of the owner. */
  floor?: string;
}

/** Returns the rows as a list to scan. Positions are ids. */
export function ownedRows<Row>(
  db: Db,
  { from: table, columns, owner, where, text, order, floor }: OwnedRows,
): ScannedList<Row, string> {
  const rowsBehind = (from: string, end: string | undefined, more: readonly Condition[]): Condition => {
    const floors = end === undefined ? [] : [{ sql: order.end, args: [end] }];
    const { sql, args } = allOf([owner, { sql: order.range, args: [from] }, ...more, ...floors]);
    return { sql: `FROM ${table} WHERE ${sql}`, args };
  };
  const rowsAfter = (from: string, end: string | undefined, more: readonly Condition[]): Condition => {
    const { sql, args } = rowsBehind(from, end, more);
    return { sql: `${sql} ${order.order} LIMIT ?`, args };
  };
  return {
    async positionAfter(from, rows) {
      const { sql, args } = rowsAfter(from, floor, []);
      const row = await db.first<{ id: string }>(`SELECT id ${sql} OFFSET ?`, [...args, 1, rows - 1]);
      return row?.id ?? null;
    },
    wanted(from, end, limit) {
      const { sql, args } = rowsAfter(from, end ?? floor, text === undefined ? where : [...where, text]);
      return db.all<Row>(`SELECT ${columns} ${sql}`, [...args, limit]);
    },
    text: text && {
      async octets(from, end) {
        const { sql, args } = rowsBehind(from, end ?? floor, []);
        const row = await db.first<{ octets: number | null }>(
          `SELECT SUM(${text.octets}) AS octets ${sql}`,
          args,
        );
        return row?.octets ?? 0;
      },
      inOneGo: text.octetsInOneGo,
    },
  };
}
