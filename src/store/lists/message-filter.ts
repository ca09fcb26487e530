import type { Trust } from "../../core/messages/sender.ts";
import { idFloor } from "../../core/ids.ts";
import type { Value } from "../engine/client.ts";
import { firstPosition, lastPosition, timeOfId } from "../search/positions.ts";
import { isAddress } from "../matching/same-address.ts";
import type { SearchFilter } from "../search/search-terms.ts";
import { allOf, type Condition } from "../matching/substring.ts";

export interface MessageFilter extends SearchFilter {
  /** Messages of these inboxes alone. */
  inboxIds?: readonly string[];
  /** Of received messages. */
  trust?: Trust;
  /** Created at or after, and before, in milliseconds. */
  after?: number;
  before?: number;
}

const one = (sql: string, ...args: Value[]): Condition => ({ sql, args });
const when = <Given>(given: Given | undefined, condition: (given: Given) => Condition): Condition | null =>
  given === undefined ? null : condition(given);

/**
 * The condition of each filter for a row of `messages m`; null if it is not set. Text and recipient are compared
 * outside the database, so that lists of thousands can be scanned in steps.
 */
const CONDITIONS = {
  status: (filter: MessageFilter) => when(filter.status, (status) => one("m.status = ?", status)),
  direction: (filter: MessageFilter) =>
    when(filter.direction, (direction) => one("m.direction = ?", direction)),
  trust: (filter: MessageFilter) => when(filter.trust, (trust) => one("m.trust = ?", trust)),
  inboxIds: (filter: MessageFilter) =>
    when(filter.inboxIds, (ids) =>
      one("COALESCE(m.inbox_id IN (SELECT value FROM json_each(?)), 0)", JSON.stringify(ids)),
    ),
  from: (filter: MessageFilter) => when(filter.from, (from) => isAddress("m.from_email", from)),
  tag: (filter: MessageFilter) =>
    when(filter.tag, ({ name, value }) =>
      one(
        "EXISTS (SELECT 1 FROM json_each(m.tags) t WHERE t.value ->> 'name' = ? AND t.value ->> 'value' = ?)",
        name,
        value,
      ),
    ),
};
type FilterName = keyof typeof CONDITIONS;

const ALL_FILTERS: readonly FilterName[] = ["status", "direction", "trust", "from", "tag", "inboxIds"];

/**
 * Returns the condition that a row of `messages m` is the project's, has an id below `below`, was created within the
 * filter's time, and passes the named filters.
 */
export function conditionOf(
  senderId: string,
  filter: MessageFilter,
  below: string | null,
  names: readonly FilterName[] = ALL_FILTERS,
): Condition {
  return allOf([one("m.sender_id = ?", senderId), ...idRange(filter, below), ...filtersOf(filter, names)]);
}

/** Returns the condition that a row of `messages m` passes all filters except text and recipient. */
export function passes(filter: MessageFilter): Condition {
  return allOf(filtersOf(filter, ALL_FILTERS));
}

/** The filters that a page reads by. The others are compared with each row that it has read, so that it reads a bounded number. */
export const READ_BY: readonly FilterName[] = ALL_FILTERS.filter((name) => name !== "inboxIds");

/** Returns the condition of the filters that are not in `READ_BY`. */
export function passesRest(filter: MessageFilter): Condition {
  return allOf(filtersOf(filter, ["inboxIds"]));
}

function filtersOf(filter: MessageFilter, names: readonly FilterName[]): Condition[] {
  return names.flatMap((name) => CONDITIONS[name](filter) ?? []);
}

/**
 * Ids sort by creation time, so a range of time is a range of ids. Its end and `below` make one bound, because SQLite
 * seeks to only one of two.
 */
function idRange({ after, before }: MessageFilter, below: string | null): Condition[] {
  const ends = [below, before === undefined ? null : idFloor("msg", before)].filter((end) => end !== null);
  const end = ends.sort()[0];
  return [
    ...(after === undefined ? [] : [one("m.id >= ?", idFloor("msg", after))]),
    ...(end === undefined ? [] : [one("m.id < ?", end)]),
  ];
}

/**
 * Returns the positions in the index that messages with an id below `below`, created within the filter's time, may
 * have.
 */
export function positionsOf(filter: MessageFilter, below: string | null): { low: number; high: number } {
  const times = [filter.before, below === null ? null : timeOfId(below)].filter((time) => time != null);
  return {
    low: filter.after === undefined ? 0 : firstPosition(filter.after),
    high: Math.min(Number.MAX_SAFE_INTEGER, ...times.map(lastPosition)),
  };
}
