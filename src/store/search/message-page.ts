import type { Mailbox } from "../../core/addresses.ts";
import type { MessageStatus } from "../../core/states.ts";
import { storedMailbox } from "../mailbox.ts";
import type { MessageFilter } from "./message-filter.ts";
import type { Direction } from "../messages.ts";
import { hasText } from "./search-terms.ts";

/**
 * Messages that one walk of a page looks at; the next page goes on from there. Those that the index finds pass nearly
 * always, but whoever writes the messages can make them look alike to it; a text of one or two characters it does not help.
 */
export const MAX_LOOKED_AT = 2000;
/** Rows read at a time: a little more than the page at first, then more where few of them match. */
const SPARE_ROWS = 8;
const CHUNK_GROWTH = 4;
const MAX_CHUNK_ROWS = 1000;

/** A row of a list of messages, with what a text is looked for in. */
export interface SummaryRow {
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
  /** 1: it passes the filters, but for the text, which is compared here. */
  passes: number;
}

/** Its columns, of `messages m`, but for `passes`. */
export const SUMMARY_COLUMNS = `m.id, m.position, m.from_email, m.from_name, m.to_list, m.cc_list, m.bcc_list, m.subject,
  m.status, m.direction, m.created_at`;

/** What a page is made of: the project, what narrows it, where it begins and how long it is. */
export interface Page {
  senderId: string;
  filter: MessageFilter;
  /** Ids are below this one. */
  before: string | null;
  limit: number;
}

/** A walk down the messages of a page. */
export interface Walk {
  /** The next rows each time, newest first, fewer than asked for where there are no more. */
  next(rows: number): Promise<SummaryRow[]>;
  /**
   * How far the walk has come with that row: a text that sorts behind no message's id it has passed, and before all
   * others below the page's beginning. Null where it has not come below that beginning yet.
   */
  passed(last: SummaryRow): string | null;
}

/** What walks have found. */
export interface Found {
  rows: SummaryRow[];
  /** Nothing below this id has been looked at; null: all has. */
  stoppedAt: string | null;
}

/** Takes rows off a walk until a page's worth of them are wanted. */
export async function gather(walk: Walk, { filter, limit }: Page): Promise<Found> {
  const matches: SummaryRow[] = [];
  let left = MAX_LOOKED_AT;
  for (let wanted = limit + SPARE_ROWS; matches.length < limit; wanted *= CHUNK_GROWTH) {
    const most = Math.min(wanted, MAX_CHUNK_ROWS, left > 0 ? left : MAX_CHUNK_ROWS);
    const rows = await walk.next(most);
    for (const row of rows) if (isWanted(row, filter)) matches.push(row);
    const last = rows.at(-1);
    if (last === undefined || rows.length < most) break;
    left -= rows.length;
    const stoppedAt = left > 0 ? null : walk.passed(last);
    if (stoppedAt !== null) return { rows: matches, stoppedAt };
  }
  return { rows: matches, stoppedAt: null };
}

/** What several walks have found, as far down as all of them have come. */
export function together(found: readonly Found[]): Found {
  const stops = found.flatMap(({ stoppedAt }) => stoppedAt ?? []).sort();
  const stoppedAt = stops.at(-1) ?? null;
  const rows = newestFirst(found.flatMap((one) => one.rows));
  return { rows: stoppedAt === null ? rows : rows.filter(({ id }) => id >= stoppedAt), stoppedAt };
}

/** In the order of ids, each row once. */
export function newestFirst(rows: readonly SummaryRow[]): SummaryRow[] {
  return [...new Map(rows.map((row) => [row.id, row])).values()].sort((a, b) => (a.id < b.id ? 1 : -1));
}

/** Whether the row passes all filters. */
export function isWanted(row: SummaryRow, { q }: MessageFilter): boolean {
  return row.passes === 1 && (q === undefined || holds(row, q));
}

/** Whether the text stands in the row. */
function holds(row: SummaryRow, q: string): boolean {
  const { to_list, cc_list, bcc_list, subject } = row;
  return hasText(
    {
      from: storedMailbox(row.from_email, row.from_name),
      to: mailboxes(to_list),
      cc: mailboxes(cc_list),
      bcc: mailboxes(bcc_list),
      subject,
    },
    q,
  );
}

/** Most lists are empty, and thousands may be compared for one page. */
function mailboxes(list: string): Mailbox[] {
  return list === "[]" ? [] : (JSON.parse(list) as Mailbox[]);
}
