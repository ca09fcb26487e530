import type { Condition as Filter, Subject } from "../../core/audience/filter.ts";
import type { Db } from "../engine/client.ts";
import type { Condition } from "../matching/substring.ts";
import {
  type Asking,
  everyone,
  type Numbers,
  NUMBERS_STEP,
  numbersWith,
  type Step,
  sizeOf,
} from "./condition-numbers.ts";
import { comparison } from "./filter-sql.ts";

/*
 * A filter over all contacts of a project. A person who writes one waits for its count. Each condition scans the narrow values of
 * its column in `audience_values`, and the sets of numbers are joined here. One query over rows with all values took four times
 * as long for a million contacts. Each step shows how the next ones should ask a condition. A count with many
 * conditions, which would take longer than a person waits, is estimated from a part of the contacts.
 */

/** Values after which a count is an estimate from what was read. Reading so many takes up to 0.3 s. */
export const MAX_VALUES_READ = 1_500_000;
/** The contacts that pass a filter. */
export interface Passing {
  count: number;
  /** True if the count was extrapolated from a part of the contacts, spread evenly. */
  estimated: boolean;
  /** Those that were added last, among the contacts that were counted. */
  last: { id: string; email: string }[];
}

/** How much a count may read, and how many contacts it returns. */
interface PassingOptions {
  /** Values after which the count is estimated. If left out, it is exact. */
  most?: number | undefined;
  sample?: number;
}

/** Returns how many of the project's contacts pass a checked filter, and some of them. */
export async function passingContacts(
  db: Db,
  senderId: string,
  filter: Filter,
  { most = Number.POSITIVE_INFINITY, sample = 0 }: PassingOptions = {},
): Promise<Passing> {
  const asking: Asking = { db, senderId, shares: new Map(), dense: new Map(), read: 0 };
  const highest = await highestNumber(asking);
  const found: number[] = [];
  let count = 0;
  let asked = 0;
  // The number of contacts of a project, which its plan limits, bounds the steps.
  for (const from of spreadSteps(highest)) {
    if (asking.read >= most) break;
    const size = Math.min(NUMBERS_STEP, highest - from);
    const passing = await setOf(filter, { asking, from, size });
    const newest: number[] = [];
    for (let at = passing.length - 1; at >= 0; at--) {
      if (passing[at] === 0) continue;
      count++;
      if (newest.length < sample) newest.push(from + at + 1);
    }
    found.push(...newest);
    asked += size;
  }
  const numbers = found.sort((a, b) => b - a).slice(0, sample);
  const estimated = asked < highest;
  return {
    count: estimated ? Math.round((count * highest) / asked) : count,
    estimated,
    last: await contactsOf(db, senderId, numbers),
  };
}

/** The golden section: of its multiples, any first few are spread evenly. */
const GOLDEN = (Math.sqrt(5) - 1) / 2;

/** Returns where each step begins: the highest first, then in an order of which every beginning is spread evenly. */
export function spreadSteps(highest: number): number[] {
  const steps = Math.ceil(highest / NUMBERS_STEP);
  return Array.from({ length: steps }, (_, at) => ({ place: (at * GOLDEN) % 1, at: steps - 1 - at }))
    .sort((a, b) => a.place - b.place)
    .map(({ at }) => at * NUMBERS_STEP);
}

async function highestNumber({ db, senderId }: Asking): Promise<number> {
  const row = await db.first<{ highest: number | null }>(
    "SELECT MAX(no) AS highest FROM audience_numbers WHERE sender_id = ?",
    [senderId],
  );
  return row?.highest ?? 0;
}

/** The contacts with these numbers. CROSS: SQLite would look at all numbers, to be spared the sorting. */
export const CONTACTS_OF = `SELECT c.id, c.email FROM json_each(?) n CROSS JOIN audience_numbers a ON a.sender_id = ? AND a.no = n.value
  CROSS JOIN contacts c ON c.id = a.contact_id ORDER BY a.no DESC`;

function contactsOf(db: Db, senderId: string, numbers: readonly number[]): Promise<Passing["last"]> {
  return db.all(CONTACTS_OF, [JSON.stringify(numbers), senderId]);
}

/** Returns the contacts of a step that pass, or those of `within`. */
async function setOf(filter: Filter, step: Step, within?: Numbers): Promise<Numbers> {
  const passing =
    "join" in filter ? await joined(filter, step, within) : await conditionSet(filter, step, within);
  // A scan finds others, too.
  const set = within === undefined ? passing : both(passing, within);
  step.asking.shares.set(filter, sizeOf(set) / (within === undefined ? step.size : sizeOf(within)));
  return set;
}

async function joined(
  { join, of }: Extract<Filter, { join: string }>,
  step: Step,
  within: Numbers | undefined,
): Promise<Numbers> {
  if (join === "all") return passingAll(of, step, within);
  const any = new Uint8Array(step.size);
  for (const part of of) {
    const set = await setOf(part, step, within);
    for (let at = 0; at < any.length; at++) if (set[at] === 1) any[at] = 1;
  }
  return join === "not" ? allBut(any, step, within) : any;
}

/** Asks first what fewest passed in the last step, and the rest of those who are left. */
async function passingAll(
  parts: readonly Filter[],
  step: Step,
  within: Numbers | undefined,
): Promise<Numbers> {
  const shareOf = (part: Filter): number => step.asking.shares.get(part) ?? 1;
  let left = within;
  for (const part of parts.toSorted((one, other) => shareOf(one) - shareOf(other))) {
    if (left !== undefined && !left.includes(1)) break;
    left = await setOf(part, step, left);
  }
  return left ?? everyone(step);
}

function both(one: Numbers, other: Numbers): Numbers {
  const set = new Uint8Array(one.length);
  for (let at = 0; at < set.length; at++) set[at] = (one[at] ?? 0) & (other[at] ?? 0);
  return set;
}

async function conditionSet(
  { subject, op, value }: Exclude<Filter, { join: string }>,
  step: Step,
  within: Numbers | undefined,
): Promise<Numbers> {
  if (subject.kind === "topic") {
    const getting = await gettingTopic(subject, step, within);
    return (op === "eq") === (value === 1) ? getting : allBut(getting, step, within);
  }
  const column = columnOf(subject);
  switch (op) {
    case "ne":
      return allBut(await numbersWith(column, comparison(VALUE, "eq", value), step, within), step, within);
    case "unset":
      return allBut(await numbersWith(column, comparison(VALUE, "set", null), step, within), step, within);
    default:
      return numbersWith(column, comparison(VALUE, op, value), step, within);
  }
}

const VALUE: Condition = { sql: "value", args: [] };

function columnOf(subject: Exclude<Subject, { kind: "topic" }>): string {
  return subject.kind === "property" ? `p:${subject.name}` : subject.kind;
}

async function gettingTopic(
  { id, defaultSubscribed }: Extract<Subject, { kind: "topic" }>,
  step: Step,
  within: Numbers | undefined,
): Promise<Numbers> {
  const subscribed = await numbersWith("subscribed", comparison(VALUE, "eq", 1), step, within);
  const chosen = await numbersWith(
    `t:${id}`,
    comparison(VALUE, defaultSubscribed ? "ne" : "eq", 1),
    step,
    within,
  );
  return subscribed.map((flag, at) => flag & ((chosen[at] ?? 0) ^ Number(defaultSubscribed)));
}

async function allBut(set: Numbers, step: Step, within: Numbers | undefined): Promise<Numbers> {
  const all = within ?? (await everyone(step));
  return all.map((flag, at) => flag & ((set[at] ?? 0) ^ 1));
}
