import type { Mailbox } from "../../core/addresses.ts";
import type { MessageStatus } from "../../core/messages/states.ts";
import { yieldToEventLoop } from "../../core/concurrency/event-loop.ts";
import { storedMailbox } from "../engine/columns.ts";
import type { MessageFilter } from "./message-filter.ts";
import type { Direction } from "../messages/messages.ts";
import { hasRecipient, hasText } from "../search/search-terms.ts";

/**
 * Maximum number of messages that one page reads. The next page continues there. Messages found by the index nearly
 * always match, but a sender can craft messages that match the index alone. The index does not help for searches of
 * one or two characters.
 */
export const MAX_LOOKED_AT = 2000;
/**
 * Characters of a message's recipients that count as one message if they are compared: a stranger's message may name
 * two thousand, which take milliseconds.
 */
export const CHARS_LOOKED_AT = 2048;
/** Messages compared at a time, in about ten milliseconds. Other requests are served in between. */
const COMPARED_AT_A_TIME = 200;
/** Rows read at a time: at first a few more than the page, then more if few of them match. */
const SPARE_ROWS = 8;
const CHUNK_GROWTH = 4;
/**
 * Bounded, because the size of rows is known only after reading: a hundred may take ten megabytes if strangers fill
 * them.
 */
const MAX_CHUNK_ROWS = 128;

/** A row of a list of messages, with the strings that a search compares. */
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
  /** 1: it passes all filters except text and recipient, which are compared here. */
  passes: number;
}

/** The columns of `SummaryRow` in `messages m`, without `passes`. */
export const SUMMARY_COLUMNS = `m.id, m.position, m.from_email, m.from_name, m.to_list, m.cc_list, m.bcc_list, m.subject,
  m.status, m.direction, m.created_at`;

/** The request for a page: the project, the filter, the start and the length. */
export interface Page {
  senderId: string;
  filter: MessageFilter;
  /** Ids are below this one. */
  before: string | null;
  limit: number;
}

/** A walk down the messages of a page. */
export interface Walk {
  /** Returns the next rows, newest first; fewer than asked for if there are no more. */
  next(rows: number): Promise<SummaryRow[]>;
  /**
   * Returns how far the walk has come with a row: it has seen every id from this text on. null if it is not below the
   * page's beginning yet.
   */
  passed(last: SummaryRow): string | null;
}

/** The result of walks. */
export interface Found {
  rows: SummaryRow[];
  /** Nothing below this id has been looked at; null: everything has. */
  stoppedAt: string | null;
}

/** Reads rows from a walk until a page of them match. */
export async function collectPage(walk: Walk, { filter, limit }: Page): Promise<Found> {
  const matches: SummaryRow[] = [];
  let left = MAX_LOOKED_AT;
  let inOneGo = 0;
  let last: SummaryRow | undefined;
  const stop = (): string | null => (left > 0 || last === undefined ? null : walk.passed(last));
  for (let wanted = limit + SPARE_ROWS; matches.length < limit; wanted *= CHUNK_GROWTH) {
    const most = Math.min(wanted, MAX_CHUNK_ROWS, left > 0 ? left : MAX_CHUNK_ROWS);
    const rows = await walk.next(most);
    for (const row of rows) {
      if (inOneGo >= COMPARED_AT_A_TIME) inOneGo = await yieldToEventLoop().then(() => 0);
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

/** Returns the number of messages that a row counts as. */
function looksAt({ to_list, cc_list, bcc_list }: SummaryRow, { q, to }: MessageFilter): number {
  if (q === undefined && to === undefined) return 1;
  return 1 + Math.floor((to_list.length + cc_list.length + bcc_list.length) / CHARS_LOOKED_AT);
}

/** Merges the results of several walks, as far down as all of them have come. */
export function mergeFound(found: readonly Found[]): Found {
  const stops = found.flatMap(({ stoppedAt }) => stoppedAt ?? []).sort();
  const stoppedAt = stops.at(-1) ?? null;
  const rows = newestFirst(found.flatMap((one) => one.rows));
  return { rows: stoppedAt === null ? rows : rows.filter(({ id }) => id >= stoppedAt), stoppedAt };
}

/** Returns the rows in the order of ids, each once. */
export function newestFirst(rows: readonly SummaryRow[]): SummaryRow[] {
  return [...new Map(rows.map((row) => [row.id, row])).values()].sort((a, b) => (a.id < b.id ? 1 : -1));
}

/** Returns true if the row passes all filters. */
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

/**
 * Returns a stored list of mailboxes. The shortcut is worth it: most lists are empty, and a page may compare
 * thousands.
 */
function mailboxes(list: string): Mailbox[] {
  return list === "[]" ? [] : (JSON.parse(list) as Mailbox[]);
}
