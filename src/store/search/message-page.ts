import type { Mailbox } from "../../core/addresses.ts";
import type { MessageStatus } from "../../core/states.ts";
import { storedMailbox } from "../mailbox.ts";
import type { MessageFilter } from "./message-filter.ts";
import type { Direction } from "../messages.ts";
import { hasText, isIndexed } from "./search-terms.ts";

/** Messages that one page looks at for a text too short for the index. */
export const MAX_SHORT_TEXT_SCAN = 3000;
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
}

/** Its columns, of `messages m`. */
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

/** Gives the next rows each time, newest first, fewer than asked for where there are no more. */
export type Walk = (rows: number) => Promise<SummaryRow[]>;

/** Takes rows off a walk until a page's worth of them have the text in them. */
export async function gather(walk: Walk, { filter: { q }, limit }: Page): Promise<SummaryRow[]> {
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

/** In the order of ids, each row once. */
export function newestFirst(rows: readonly SummaryRow[]): SummaryRow[] {
  return [...new Map(rows.map((row) => [row.id, row])).values()].sort((a, b) => (a.id < b.id ? 1 : -1));
}

/** Whether the text stands in the row. */
export function holds(row: SummaryRow, q: string): boolean {
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
