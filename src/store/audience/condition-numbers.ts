import { yieldToEventLoop } from "../../core/concurrency/event-loop.ts";
import type { Condition as Filter } from "../../core/audience/filter.ts";
import type { Db, Value } from "../engine/client.ts";
import type { Condition } from "../matching/substring.ts";

/*
 * The contacts of a step whose value fits one condition. The values of a column are scanned, unless few contacts are left to ask.
 */

/** Contacts of one step. A query takes about a millisecond, and other requests are served in between. */
export const NUMBERS_STEP = 8192;
/** Time to look up one value, in values of a scan. */
const LOOK_UP = 16;

/** One flag for each number of a step: 1 if the contact is in the set. */
export type Numbers = Uint8Array;

/** A count in progress. */
export interface Asking {
  db: Db;
  senderId: string;
  /** Of each part of the filter, the share of those asked who passed it in the last step. */
  shares: Map<Filter, number>;
  /** Of each scan, whether more than half of a step passed it the last time, and each contact had a value. */
  dense: Map<string, boolean>;
  /** Values read. */
  read: number;
}

export interface Step {
  asking: Asking;
  /** The numbers after `from`, of which there are `size`. */
  from: number;
  size: number;
  /** All contacts, once they are known. */
  everyone?: Numbers;
}

/** Returns how many are in a set. */
export function sizeOf(set: Numbers): number {
  let size = 0;
  for (let at = 0; at < set.length; at++) size += set[at] ?? 0;
  return size;
}

/** Returns all contacts of a step. */
export async function everyone(step: Step): Promise<Numbers> {
  step.everyone ??= await numbersWith("createdAt", { sql: "TRUE", args: [] }, step);
  return step.everyone;
}

/** A condition compares with at most one value. */
function numbered(condition: string): string {
  return condition.replace("?", "?4");
}

const COLUMN = "(SELECT id FROM audience_columns WHERE sender_id = ?1 AND name = ?2)";

/** Returns the query of the numbers of a step whose value fits a condition. Parameters: project, column, step, compared value. */
export function numbersQuery(condition: string): string {
  return `SELECT COUNT(*) AS read, json_group_array(no) FILTER (WHERE ${numbered(condition)}) AS numbers FROM audience_values
    WHERE column_id = ${COLUMN} AND no > ?3 AND no <= ?3 + ${NUMBERS_STEP}`;
}

/** Returns the query of those of some numbers whose value fits a condition. Parameters: project, column, numbers, compared value. */
export function lookUpQuery(condition: string): string {
  return `SELECT json_group_array(v.no) AS numbers FROM (SELECT value AS no FROM json_each(?3)) n
    CROSS JOIN audience_values v ON v.column_id = ${COLUMN} AND v.no = n.no WHERE ${numbered(condition)}`;
}

/** Returns the numbers of a step whose value fits a condition, or those of `within`. */
export async function numbersWith(
  column: string,
  condition: Condition,
  step: Step,
  within?: Numbers,
): Promise<Numbers> {
  await yieldToEventLoop();
  const few = within !== undefined && sizeOf(within) * LOOK_UP <= step.size ? within : null;
  return few === null ? scanned(column, condition, step) : lookedUp(column, condition, step, few);
}

async function lookedUp(
  column: string,
  { sql, args }: Condition,
  step: Step,
  few: Numbers,
): Promise<Numbers> {
  const { asking, from, size } = step;
  const asked: number[] = [];
  for (let at = few.indexOf(1); at !== -1; at = few.indexOf(1, at + 1)) asked.push(from + at + 1);
  asking.read += LOOK_UP * asked.length;
  const row = await asking.db.first<{ numbers: string }>(lookUpQuery(sql), [
    asking.senderId,
    column,
    JSON.stringify(asked),
    ...args,
  ]);
  return flagsOf(row?.numbers, from, size);
}

async function scanned(column: string, { sql, args }: Condition, step: Step): Promise<Numbers> {
  const { asking, from, size } = step;
  const key = JSON.stringify([column, sql, args]);
  const scan = async (condition: string): Promise<{ all: boolean; set: Numbers }> => {
    const values: Value[] = [asking.senderId, column, from, ...args];
    const row = await asking.db.first<{ read: number; numbers: string }>(numbersQuery(condition), values);
    const read = row?.read ?? 0;
    asking.read += read;
    if (read === size) step.everyone ??= new Uint8Array(size).fill(1);
    return { all: read === size, set: flagsOf(row?.numbers, from, size) };
  };
  if (asking.dense.get(key) === true) {
    // Those that do not pass are fewer, but each contact must have a value.
    const { all, set } = await scan(`NOT (${sql})`);
    if (all) {
      asking.dense.set(key, sizeOf(set) * 2 < size);
      return set.map((flag) => flag ^ 1);
    }
  }
  const { all, set } = await scan(sql);
  asking.dense.set(key, all && sizeOf(set) * 2 > size);
  return set;
}

function flagsOf(numbers: string | undefined, from: number, size: number): Numbers {
  const set = new Uint8Array(size);
  for (const number of JSON.parse(numbers ?? "[]") as number[]) set[number - from - 1] = 1;
  return set;
}
