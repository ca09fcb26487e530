import type { Mailbox } from "../../core/addresses.ts";
import type { MessageStatus } from "../../core/states.ts";
import { turn } from "../../core/turn.ts";
import { storedMailbox } from "../mailbox.ts";
import type { MessageFilter } from "./message-filter.ts";
import type { Direction } from "../messages.ts";
import { hasRecipient, hasText } from "./search-terms.ts";

/**
 * Messages that one walk of a page looks at; the next page goes on from there. Those that the index finds pass nearly
 * always, but whoever writes the messages can make them look alike to it; a text of one or two characters it does not help.
 */
export const MAX_LOOKED_AT = 2000;
/**
 * Characters of a message's recipients that count as one of those messages where they are compared: a stranger's mail may name
 * two thousand, which take milliseconds.
 */
export const CHARS_LOOKED_AT = 2048;
/** Messages that are compared in one go, counted so: the rest of the service runs in between (some ten milliseconds). */
const COMPARED_AT_A_TIME = 200;
/** Rows read at a time: a little more than the page at first, then more where few of them match. */
const SPARE_ROWS = 8;
const CHUNK_GROWTH = 4;
/** Not more, for their size is known only when they are read: a hundred take ten megabytes where strangers fill them. */
const MAX_CHUNK_ROWS = 128;

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
  /** 1: it passes the filters, but for text and recipient, which are compared here. */
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
  let inOneGo = 0;
  let last: SummaryRow | undefined;
  const stop = (): string | null => (left > 0 || last === undefined ? null : walk.passed(last));
  for (let wanted = limit + SPARE_ROWS; matches.length < limit; wanted *= CHUNK_GROWTH) {
    const most = Math.min(wanted, MAX_CHUNK_ROWS, left > 0 ? left : MAX_CHUNK_ROWS);
    const rows = await walk.next(most);
    for (const row of rows) {
      if (inOneGo >= COMPARED_AT_A_TIME) inOneGo = await turn().then(() => 0);
      const stoppedAt = stop();
      if (stoppedAt !== null) return { rows: matches, stoppedAt };
      if (isWanted(row, filter)) matches.push(row);
      const looks = looksAt(row, filter);
      left -= looks;
      inOneGo += looks;
      last = row;
    }
    if (rows.length < most) break;
    const stoppedAt = stop();
    if (stoppedAt !== null) return { rows: matches, stoppedAt };
  }
  return { rows: matches, stoppedAt: null };
}

/** As how many messages one counts. */
function looksAt({ to_list, cc_list, bcc_list }: SummaryRow, { q, to }: MessageFilter): number {
  if (q === undefined && to === undefined) return 1;
  return 1 + Math.floor((to_list.length + cc_list.length + bcc_list.length) / CHARS_LOOKED_AT);
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
export function isWanted(row: SummaryRow, { q, to }: MessageFilter): boolean {
  if (row.passes !== 1 || (q === undefined && to === undefined)) return row.passes === 1;
  const { to_list, cc_list, bcc_list, subject } = row;
  const message = {
    from: storedMailbox(row.from_email, row.from_name),
    to: mailboxes(to_list),
    cc: mailboxes(cc_list),
    bcc: mailboxes(bcc_list),
    subject,
  };
  return (to === undefined || hasRecipient(message, to)) && (q === undefined || hasText(message, q));
}

/** Most lists are empty, and thousands may be compared for one page. */
function mailboxes(list: string): Mailbox[] {
  return list === "[]" ? [] : (JSON.parse(list) as Mailbox[]);
}
