import { turn } from "../../core/turn.ts";
import type { Db } from "../engine/client.ts";
import type { Condition, TextCondition } from "./substring.ts";

/**
 * Rows that one page looks at for a text or another filter without an index; the next one goes on from there. A hundred
 * thousand take about a tenth of a second. Where rows are larger there are fewer.
 */
export const MAX_SCANNED = 100_000;
/** Rows looked at in one go: the rest of the service runs in between (two or three milliseconds). */
export const SCAN_STEP = 5000;

/**
 * What part of that a step counts as which is short for its texts' sake: how many of them are compared in one go is reckoned for
 * the worst of texts, and others take a hundredth of that.
 */
const SHARE_COUNTED = 1 / 4;

/** A list that is looked through. */
export interface ScannedList<Row, Place> {
  /** The place of the `rows`-th row behind `from`; null where there are fewer. */
  placeBehind(from: Place, rows: number): Promise<Place | null>;
  /** The first `limit` of the wanted rows behind `from`, down to the place `end` and its row; null: to the list's end. */
  wanted(from: Place, end: Place | null, limit: number): Promise<Row[]>;
  /** Where the rows' texts are compared: octets of them between two places, and how many are compared in one go. */
  text?: { octets(from: Place, end: Place | null): Promise<number>; inOneGo: number } | undefined;
}

/** What a page of it holds. */
export interface Scanned<Row, Place = string> {
  rows: Row[];
  /** Where fewer than asked for are not all there are: nothing behind this place has been looked at. */
  stoppedAt: Place | null;
}

/** A part of a list that is looked at in one go. */
interface Step<Place> {
  /** Where it ends; null: with the list. */
  end: Place | null;
  rows: number;
  /** What it counts as, in rows of the usual size. */
  effort: number;
}

/** The first `limit` wanted rows of a list behind a place, found step by step. */
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
    await turn();
  }
  return { rows, stoppedAt: from };
}

/** The next step of `most` rows, or of half as many until their texts can be compared in one go. */
async function nextStep<Row, Place>(
  { placeBehind, text }: ScannedList<Row, Place>,
  from: Place,
  most: number,
): Promise<Step<Place>> {
  for (let rows = most; ; rows = Math.ceil(rows / 2)) {
    const end = await placeBehind(from, rows);
    const share = text === undefined ? 0 : (await text.octets(from, end)) / text.inOneGo;
    if (share <= 1 || rows === 1)
      return { end, rows, effort: Math.max(rows, Math.ceil(SCAN_STEP * share * SHARE_COUNTED)) };
  }
}

/** The same of a list of which an index gives the wanted rows alone: in one go. */
export async function firstWanted<Row, Place>(
  list: ScannedList<Row, Place>,
  start: Place,
  limit: number,
): Promise<Scanned<Row, Place>> {
  return { rows: await list.wanted(start, null, limit), stoppedAt: null };
}

/**
 * All rows of a list, or the first `most`, read `step` of them at a time.
 * @param next the first `limit` rows behind that one; null: of the list
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
    await turn();
  }
}

/** Rows of one owner in a table that has an index on their owner and `id`. */
export interface OwnedRows {
  /** The table, and the index where SQLite is not to choose. */
  from: string;
  columns: string;
  /** Whose they are, by the index. */
  owner: Condition;
  /** What makes a row wanted; a text that it is to contain stands apart. */
  where: readonly Condition[];
  text?: TextCondition | undefined;
  /** The least id of the list; left out: it goes on to the owner's last row. */
  floor?: string;
}

/** The rows as a list that is looked through, newest first. Places are ids. */
export function ownedRows<Row>(
  db: Db,
  { from: table, columns, owner, where, text, floor }: OwnedRows,
): ScannedList<Row, string> {
  const rowsBehind = (from: string, end: string | undefined, more: readonly Condition[]): Condition => {
    const floors = end === undefined ? [] : [{ sql: "id >= ?", args: [end] }];
    const all = [owner, { sql: "id < ?", args: [from] }, ...more, ...floors];
    return {
      sql: `FROM ${table} WHERE ${all.map(({ sql }) => sql).join(" AND ")}`,
      args: all.flatMap(({ args }) => args),
    };
  };
  const behind = (from: string, end: string | undefined, more: readonly Condition[]): Condition => {
    const { sql, args } = rowsBehind(from, end, more);
    return { sql: `${sql} ORDER BY id DESC LIMIT ?`, args };
  };
  return {
    async placeBehind(from, rows) {
      const { sql, args } = behind(from, floor, []);
      const row = await db.first<{ id: string }>(`SELECT id ${sql} OFFSET ?`, [...args, 1, rows - 1]);
      return row?.id ?? null;
    },
    wanted(from, end, limit) {
      const { sql, args } = behind(from, end ?? floor, text === undefined ? where : [...where, text]);
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
