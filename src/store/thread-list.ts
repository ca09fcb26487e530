import type { Db, Value } from "./engine/client.ts";
import { scanInSteps } from "./search/steps.ts";
import { type Condition, containsText, type TextCondition } from "./search/substring.ts";
import { THREAD_COLUMNS, type Thread, type ThreadRow, toThread } from "./threads.ts";

/** A place in the list of threads by last activity. */
export interface ThreadPosition {
  lastMessageAt: number;
  id: string;
}

/** What a list of threads is made of. */
export interface ThreadPage {
  senderId: string;
  inboxId: string;
  /** A part of the subject, of a participant's address or of the preview, in any case; null: all threads. */
  q: string | null;
  /** Threads behind this place; null: from the last active. */
  after: ThreadPosition | null;
  limit: number;
}

/** What a page holds. */
export interface ThreadsFound {
  threads: Thread[];
  /** Where fewer than asked for are not all there are: nothing behind this place has been looked at. */
  stoppedAt: ThreadPosition | null;
}

const FIRST: ThreadPosition = { lastMessageAt: Number.MAX_SAFE_INTEGER, id: "" };
const EVERY: Condition = { sql: "1", args: [] };

/**
 * One page of an inbox's threads, last active first. A thread that moves up during a walk is met again only by a new
 * walk; all others keep their place, so a walk leaves none of them out and gives none twice.
 */
export async function listThreads(db: Db, page: ThreadPage): Promise<ThreadsFound> {
  const start = page.after ?? FIRST;
  if (page.q !== null) return searchThreads(db, page, page.q, start);
  return { threads: await rowsBehind(db, page, start, EVERY, null), stoppedAt: null };
}

async function searchThreads(
  db: Db,
  page: ThreadPage,
  q: string,
  start: ThreadPosition,
): Promise<ThreadsFound> {
  const condition = containsText(columnsFor(q), q);
  const { rows, stoppedAt } = await scanInSteps<Thread, ThreadPosition>(
    {
      placeBehind: (from, rows) => placeBehind(db, page, from, rows),
      wanted: (from, end, limit) => rowsBehind(db, { ...page, limit }, from, condition, end),
      text: {
        octets: (from, end) => octetsBehind(db, page, from, condition, end),
        inOneGo: condition.octetsInOneGo,
      },
    },
    start,
    page.limit,
  );
  return { threads: rows, stoppedAt };
}

/** Participants are kept as a JSON list; what only its syntax holds is in no address that mail can be sent to. */
function columnsFor(q: string): string[] {
  return /[[\]",\\]/.test(q) ? ["subject", "preview"] : ["subject", "preview", "participants"];
}

/** The place of the `rows`-th thread behind another; null where the inbox ends before. */
async function placeBehind(
  db: Db,
  { inboxId }: ThreadPage,
  from: ThreadPosition,
  rows: number,
): Promise<ThreadPosition | null> {
  const row = await db.first<{ last_message_at: number; id: string }>(
    `SELECT last_message_at, id FROM threads WHERE inbox_id = ? AND (last_message_at, id) < (?, ?)
      ORDER BY last_message_at DESC, id DESC LIMIT 1 OFFSET ?`,
    [inboxId, from.lastMessageAt, from.id, rows - 1],
  );
  return row === null ? null : { lastMessageAt: row.last_message_at, id: row.id };
}

/** Octets that the condition looks at behind a place, down to another; null: to the inbox's end. */
async function octetsBehind(
  db: Db,
  { inboxId }: ThreadPage,
  from: ThreadPosition,
  { octets }: TextCondition,
  end: ThreadPosition | null,
): Promise<number> {
  const bound = end === null ? "" : "AND (last_message_at, id) >= (?, ?)";
  const row = await db.first<{ octets: number | null }>(
    `SELECT SUM(${octets}) AS octets FROM threads INDEXED BY threads_by_activity
      WHERE inbox_id = ? AND (last_message_at, id) < (?, ?) ${bound}`,
    [inboxId, from.lastMessageAt, from.id, ...(end === null ? [] : [end.lastMessageAt, end.id])],
  );
  return row?.octets ?? 0;
}

/**
 * The first rows behind a place.
 * @param until the last place that counts; null: the inbox's end
 */
async function rowsBehind(
  db: Db,
  { senderId, inboxId, limit }: ThreadPage,
  from: ThreadPosition,
  condition: Condition,
  until: ThreadPosition | null,
): Promise<Thread[]> {
  const args: Value[] = [inboxId, from.lastMessageAt, from.id];
  const bound = until === null ? "" : "AND (last_message_at, id) >= (?, ?)";
  if (until !== null) args.push(until.lastMessageAt, until.id);
  const rows = await db.all<ThreadRow>(
    // The index alone tells which they are; only those are read whole.
    `SELECT ${THREAD_COLUMNS} FROM threads WHERE sender_id = ? AND id IN (
        SELECT id FROM threads INDEXED BY threads_by_activity
          WHERE inbox_id = ? AND (last_message_at, id) < (?, ?) ${bound} AND ${condition.sql}
          ORDER BY last_message_at DESC, id DESC LIMIT ?)
      ORDER BY last_message_at DESC, id DESC`,
    [senderId, ...args, ...condition.args, limit],
  );
  return rows.map(toThread);
}
