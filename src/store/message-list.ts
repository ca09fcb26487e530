import type { Mailbox } from "../core/addresses.ts";
import type { MessageStatus } from "../core/states.ts";
import type { Db } from "./client.ts";
import { conditionOf, type MessageFilter, placesOf } from "./message-filter.ts";
import { firstPlace, timeOfId } from "./message-index.ts";
import type { Direction } from "./messages.ts";
import { expressionOf, hasText, isIndexed } from "./search-terms.ts";

export type { MessageFilter } from "./message-filter.ts";

/** A message as lists show it. */
export interface MessageSummary {
  id: string;
  from: string;
  to: string[];
  subject: string;
  status: MessageStatus;
  direction: Direction;
  createdAt: number;
}

/** Messages that one page looks at for a text too short for the index. */
export const MAX_SHORT_TEXT_SCAN = 4000;
/** A status of fewer messages than this is walked itself, whatever else is looked for. */
const FEW = 1000;
/** Rows read at a time: a little more than the page at first, then more where few of them match. */
const SPARE_ROWS = 8;
const CHUNK_GROWTH = 4;
const MAX_CHUNK_ROWS = 1000;

interface SummaryRow {
  id: string;
  position: number | null;
  from_email: string;
  from_name: string | null;
  to_list: string;
  cc_list: string;
  bcc_list: string;
  subject: string;
  status: MessageStatus;
  direction: Direction;
  created_at: number;
}

const COLUMNS = `m.id, m.position, m.from_email, m.from_name, m.to_list, m.cc_list, m.bcc_list, m.subject, m.status,
  m.direction, m.created_at`;

/** What a page is made of: the project, what narrows it, where it begins and how long it is. */
interface Page {
  senderId: string;
  filter: MessageFilter;
  before: string | null;
  limit: number;
}

/** Gives the next rows each time, newest first, fewer than asked for where there are no more. */
type Walk = (rows: number) => Promise<SummaryRow[]>;

/** One page of summaries, newest first: at most `limit` rows with ids below `before`. */
export async function listMessages(
  db: Db,
  senderId: string,
  filter: MessageFilter,
  before: string | null,
  limit: number,
): Promise<MessageSummary[]> {
  const page = { senderId, filter, before, limit };
  const expression = expressionOf(senderId, filter);
  if (expression === null || (await hasFewOfStatus(db, page)))
    return (await gather(downIds(db, page), page)).slice(0, limit).map(toSummary);
  return (await search(db, page, expression)).map(toSummary);
}

/** Whether the page narrows by a status that few of the messages below it have. */
async function hasFewOfStatus(db: Db, { senderId, filter, before }: Page): Promise<boolean> {
  if (filter.status === undefined) return false;
  const { sql, args } = conditionOf(senderId, filter, before, ["status"]);
  const row = await db.first<{ count: number }>(
    `SELECT count(*) AS count FROM
      (SELECT 1 FROM messages m INDEXED BY messages_by_status WHERE ${sql} LIMIT ?)`,
    [...args, FEW],
  );
  return row !== null && row.count < FEW;
}

/** Takes rows off a walk until a page's worth of them have the text in them. */
async function gather(walk: Walk, { filter: { q }, limit }: Page): Promise<SummaryRow[]> {
  const matches: SummaryRow[] = [];
  let left = q === undefined || isIndexed(q) ? Number.POSITIVE_INFINITY : MAX_SHORT_TEXT_SCAN;
  for (let wanted = limit + SPARE_ROWS; matches.length < limit && left > 0; wanted *= CHUNK_GROWTH) {
    const most = Math.min(wanted, MAX_CHUNK_ROWS, left);
    const rows = await walk(most);
    for (const row of rows) if (q === undefined || holds(row, q)) matches.push(row);
    if (rows.length < most) break;
    left -= rows.length;
  }
  return matches;
}

/** The walk down the ids of the project, or of one of its statuses. */
function downIds(db: Db, { senderId, filter, before }: Page): Walk {
  // Said outright: without statistics SQLite may choose to sort all messages of a status.
  const index = filter.status === undefined ? "messages_by_sender" : "messages_by_status";
  let below = before;
  return async (most) => {
    const { sql, args } = conditionOf(senderId, filter, below);
    const rows = await db.all<SummaryRow>(
      `SELECT ${COLUMNS} FROM messages m INDEXED BY ${index} WHERE ${sql} ORDER BY m.id DESC LIMIT ?`,
      [...args, most],
    );
    below = rows.at(-1)?.id ?? below;
    return rows;
  };
}

/**
 * A page by way of the index, whose order is nearly that of ids. A walk that has come down to the first place of a time
 * has seen all of that time and later; so the rows from the walk's end down to the time of the page's last one are read
 * too: as many as were stored within the quarter of a second that places may differ by.
 */
async function search(db: Db, page: Page, expression: string): Promise<SummaryRow[]> {
  const { filter, before, limit } = page;
  const { q } = filter;
  const places = placesOf(filter, before);
  const matches = newestFirst(await gather(downPlaces(db, page, expression, places), page));
  const last = matches[limit - 1];
  if (last === undefined) return matches;
  const low = firstPlace(timeOfId(last.id) ?? last.created_at);
  const high = Math.min(...matches.map(({ position }) => position ?? low));
  const late = high < low ? [] : await between(db, page, expression, { low, high }, -1);
  return newestFirst([...matches, ...late.filter((row) => q === undefined || holds(row, q))]).slice(0, limit);
}

/** The walk down the places of the messages that have the terms. */
function downPlaces(db: Db, page: Page, expression: string, places: { low: number; high: number }): Walk {
  let { high } = places;
  // Two messages may share a place where a clock was set back: those given of the last place are not given again.
  let given: string[] = [];
  return async (most) => {
    const rows = await between(db, page, expression, { low: places.low, high }, most + given.length);
    const fresh = rows.filter(({ id }) => !given.includes(id));
    const last = fresh.at(-1)?.position ?? high;
    given = [
      ...(last === high ? given : []),
      ...fresh.filter((row) => row.position === last).map(({ id }) => id),
    ];
    high = last;
    return fresh;
  };
}

/** Messages that may be wanted, with a place from `low` to `high`: at most `most`, all where it is negative. */
async function between(
  db: Db,
  { senderId, filter, before }: Page,
  expression: string,
  { low, high }: { low: number; high: number },
  most: number,
): Promise<SummaryRow[]> {
  const { sql, args } = conditionOf(senderId, filter, before);
  // libSQL binds numbers as floating ones, and FTS5 begins at a bound only where it is an integer.
  return db.all<SummaryRow>(
    `SELECT ${COLUMNS} FROM message_terms CROSS JOIN messages m INDEXED BY messages_by_position
      WHERE message_terms MATCH ? AND message_terms.rowid BETWEEN CAST(? AS INTEGER) AND CAST(? AS INTEGER)
        AND m.position = message_terms.rowid AND ${sql}
      ORDER BY message_terms.rowid DESC LIMIT ?`,
    [expression, low, high, ...args, most],
  );
}

/** In the order of ids, each row once. */
function newestFirst(rows: readonly SummaryRow[]): SummaryRow[] {
  return [...new Map(rows.map((row) => [row.id, row])).values()].sort((a, b) => (a.id < b.id ? 1 : -1));
}

function holds(row: SummaryRow, q: string): boolean {
  const from =
    row.from_name === null ? { email: row.from_email } : { email: row.from_email, name: row.from_name };
  const { to_list, cc_list, bcc_list, subject } = row;
  return hasText(
    { from, to: mailboxes(to_list), cc: mailboxes(cc_list), bcc: mailboxes(bcc_list), subject },
    q,
  );
}

/** Most lists are empty, and thousands may be compared for one page. */
function mailboxes(list: string): Mailbox[] {
  return list === "[]" ? [] : (JSON.parse(list) as Mailbox[]);
}

function toSummary(row: SummaryRow): MessageSummary {
  return {
    id: row.id,
    from: row.from_email,
    to: (JSON.parse(row.to_list) as Mailbox[]).map((mailbox) => mailbox.email),
    subject: row.subject,
    status: row.status,
    direction: row.direction,
    createdAt: row.created_at,
  };
}
