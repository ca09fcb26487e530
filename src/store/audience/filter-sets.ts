import { yieldToEventLoop } from "../../core/concurrency/event-loop.ts";
import type { Condition as Filter, Subject } from "../../core/audience/filter.ts";
import type { Db, Value } from "../engine/client.ts";
import type { Condition } from "../matching/substring.ts";
import { comparison } from "./filter-sql.ts";

/*
 * A filter over all contacts of a project. A person who writes one waits for its count. Each condition scans the narrow values of
 * its column in `audience_values`, and the sets of numbers are joined here. One query over rows with all values took four times
 * as long for a million contacts.
 */

/** Contacts of one step. A query takes one to three milliseconds, and other requests are served in between. */
export const NUMBERS_STEP = 16_384;

/** One flag for each number of a step: 1 if the contact is in the set. */
type Numbers = Uint8Array;

interface Step {
  db: Db;
  senderId: string;
  /** The numbers after `from`, at most `NUMBERS_STEP`. */
  from: number;
  /** All contacts, once a condition has asked for them. */
  everyone?: Numbers;
}

/** The contacts that pass a filter. */
export interface Passing {
  count: number;
  /** Those that were added last. */
  last: { id: string; email: string }[];
}

/** Returns how many of the project's contacts pass a checked filter, and the last `sample` of them. */
export async function passingContacts(
  db: Db,
  senderId: string,
  filter: Filter,
  sample: number,
): Promise<Passing> {
  const numbers: number[] = [];
  let count = 0;
  // The number of contacts of a project, which its plan limits, bounds the steps.
  for (let from = await lastStep(db, senderId); from >= 0; from -= NUMBERS_STEP) {
    const passing = await setOf(filter, { db, senderId, from });
    for (let at = passing.length - 1; at >= 0; at--) {
      if (passing[at] === 0) continue;
      count++;
      if (numbers.length < sample) numbers.push(from + at + 1);
    }
  }
  return { count, last: await contactsOf(db, senderId, numbers) };
}

/** Returns where the step with the highest number begins; below zero if the project has no contact. */
async function lastStep(db: Db, senderId: string): Promise<number> {
  const row = await db.first<{ highest: number | null }>(
    "SELECT MAX(no) AS highest FROM audience_numbers WHERE sender_id = ?",
    [senderId],
  );
  const highest = row?.highest ?? 0;
  return Math.floor((highest - 1) / NUMBERS_STEP) * NUMBERS_STEP;
}

/** The contacts with these numbers. CROSS: SQLite would look at all numbers, to be spared the sorting. */
export const CONTACTS_OF = `SELECT c.id, c.email FROM json_each(?) n CROSS JOIN audience_numbers a ON a.sender_id = ? AND a.no = n.value
  CROSS JOIN contacts c ON c.id = a.contact_id ORDER BY a.no DESC`;

function contactsOf(db: Db, senderId: string, numbers: readonly number[]): Promise<Passing["last"]> {
  return db.all(CONTACTS_OF, [JSON.stringify(numbers), senderId]);
}

async function setOf(filter: Filter, step: Step): Promise<Numbers> {
  if (!("join" in filter)) return conditionSet(filter, step);
  const [first, ...rest] = filter.of;
  if (first === undefined) return everyone(step);
  let set = await setOf(first, step);
  for (const part of rest) {
    // An empty set stays empty, so the other conditions are skipped.
    if (filter.join === "all" && !set.includes(1)) break;
    const other = await setOf(part, step);
    const joined = (flag: number, at: number) =>
      filter.join === "all" ? flag & (other[at] ?? 0) : flag | (other[at] ?? 0);
    set = set.map(joined);
  }
  return filter.join === "not" ? allBut(set, step) : set;
}

async function conditionSet(
  { subject, op, value }: Exclude<Filter, { join: string }>,
  step: Step,
): Promise<Numbers> {
  if (subject.kind === "topic") {
    const getting = await gettingTopic(subject, step);
    return (op === "eq") === (value === 1) ? getting : allBut(getting, step);
  }
  if (subject.kind === "subscribed" && (op === "eq") === value) return subscribedNumbers(step);
  const column = columnOf(subject);
  switch (op) {
    case "ne":
      return allBut(await numbersWith(column, comparison(VALUE, "eq", value), step), step);
    case "unset":
      return allBut(await numbersWith(column, comparison(VALUE, "set", null), step), step);
    default:
      return numbersWith(column, comparison(VALUE, op, value), step);
  }
}

const VALUE: Condition = { sql: "value", args: [] };

function columnOf(subject: Exclude<Subject, { kind: "topic" }>): string {
  return subject.kind === "property" ? `p:${subject.name}` : subject.kind;
}

async function gettingTopic(
  { id, defaultSubscribed }: Extract<Subject, { kind: "topic" }>,
  step: Step,
): Promise<Numbers> {
  const subscribed = await subscribedNumbers(step);
  const chosen = await numbersWith(`t:${id}`, comparison(VALUE, defaultSubscribed ? "ne" : "eq", 1), step);
  return subscribed.map((flag, at) => flag & ((chosen[at] ?? 0) ^ Number(defaultSubscribed)));
}

async function allBut(set: Numbers, step: Step): Promise<Numbers> {
  const all = await everyone(step);
  return all.map((flag, at) => flag & ((set[at] ?? 0) ^ 1));
}

/** Returns those who have not unsubscribed. Those who have are read, because they are few. */
async function subscribedNumbers(step: Step): Promise<Numbers> {
  return allBut(await numbersWith("subscribed", comparison(VALUE, "eq", 0), step), step);
}

/** Returns all contacts of a step. If no number is missing, counting them is enough. */
async function everyone(step: Step): Promise<Numbers> {
  if (step.everyone !== undefined) return step.everyone;
  const { db, senderId, from } = step;
  const row = await db.first<{ count: number }>(HOW_MANY, [senderId, "createdAt", from]);
  step.everyone =
    row?.count === NUMBERS_STEP
      ? new Uint8Array(NUMBERS_STEP).fill(1)
      : await numbersWith("createdAt", { sql: "TRUE", args: [] }, step);
  return step.everyone;
}

/** The values of a column in a step. Parameters: project, column, the number before the step. */
const IN_STEP = `FROM audience_values
  WHERE column_id = (SELECT id FROM audience_columns WHERE sender_id = ?1 AND name = ?2) AND no > ?3 AND no <= ?3 + ${NUMBERS_STEP}`;
export const HOW_MANY = `SELECT COUNT(*) AS count ${IN_STEP}`;

/** Returns the query of the numbers of a step whose value fits a condition. */
export function numbersQuery(condition: string): string {
  return `SELECT json_group_array(no) AS numbers ${IN_STEP} AND ${condition}`;
}

async function numbersWith(
  column: string,
  { sql, args }: Condition,
  { db, senderId, from }: Step,
): Promise<Numbers> {
  const values: Value[] = [senderId, column, from, ...args];
  const row = await db.first<{ numbers: string }>(numbersQuery(sql), values);
  const set = new Uint8Array(NUMBERS_STEP);
  for (const number of JSON.parse(row?.numbers ?? "[]") as number[]) set[number - from - 1] = 1;
  await yieldToEventLoop();
  return set;
}
