import { idBytes } from "../../core/ids.ts";
import type { MessageStatus } from "../../core/states.ts";
import { storedMailbox } from "../mailbox.ts";
import type { Db, Guard, Statement } from "../engine/client.ts";
import { isSettled, type Searchable, termOfStatus, termsOf } from "./search-terms.ts";

/**
 * How the index keeps the order of ids. The posting lists hold integers and grow cheaply at their end only, while ids
 * are 128 bits and come slightly out of order: one is made before the wait for its commit. So a message gets the place
 * after the last one, but never one before the time in its id, nor more than LAG_MS after it. Thus
 *   firstPlace(time) <= position <= lastPlace(time),
 * and a walk down the positions that has come below a time has seen every id of that time and later.
 */
const PLACES_PER_MS = 16;
/** What came out of order by more takes a place among its own time, which costs the index one more piece. */
const LAG_MS = 250;

/** Above every place until the year 2109. */
const LAST_ROW = 2 ** 46;

/**
 * The row of the index that a place is, counted against time: FTS5 reads posting lists upwards several times as fast as
 * downwards, and a page begins with the newest.
 */
export function rowOfPlace(place: number): number {
  return LAST_ROW - place;
}

/** The place of the index's row, in SQL. */
export const PLACE_OF_ROW = `${LAST_ROW} - message_terms.rowid`;

/** The first place of a time (milliseconds). */
export function firstPlace(time: number): number {
  return time * PLACES_PER_MS;
}

/** The time (milliseconds) whose first places a place is among: no message of a later time has one below it. */
export function timeOfPlace(place: number): number {
  return Math.floor(place / PLACES_PER_MS);
}

/** The last place that a message of that time may have. */
export function lastPlace(time: number): number {
  return (time + LAG_MS) * PLACES_PER_MS;
}

/** The time in a message's id (milliseconds): the first 48 bits, RFC 9562 §5.7. Null where it is no such id. */
export function timeOfId(id: string): number | null {
  const bytes = idBytes("msg", id);
  return bytes === null ? null : Buffer.from(bytes).readUIntBE(0, 6);
}

/** The place of a message entered after one whose place is `last`. Several may share one where they come late. */
function placeAfter(last: number, id: string, createdAt: number): number {
  const time = timeOfId(id) ?? createdAt;
  return Math.max(firstPlace(time), Math.min(last + 1, lastPlace(time)));
}

/** What of a message the index is made of. */
export interface SearchedRow {
  id: string;
  sender_id: string;
  direction: "inbound" | "outbound";
  status: MessageStatus;
  from_email: string;
  from_name: string | null;
  to_list: string;
  cc_list: string;
  bcc_list: string;
  subject: string;
  /** The subject exactly: a NUL ends it as a text on its way out of the database, not in it. */
  subject_hex: string;
  tags: string;
}

/** Its columns. */
export const SEARCHED_COLUMNS = `id, sender_id, direction, status, from_email, from_name, to_list, cc_list, bcc_list, subject,
  hex(subject) AS subject_hex, tags`;

interface WaitingRow extends SearchedRow {
  created_at: number;
  /** The place that it had in the index before; null where it has not been in it. */
  place: number | null;
}

/** The rule by which messages enter the index. Programs up to schema 17 entered them by rule 1, and say nothing of it. */
export const TERMS_RULE = 2;

/** Statements that enter something into the index, and the place they do it at. */
interface Entry {
  place: number;
  statements: Statement[];
}

/**
 * Enters what waits for the index: messages, and final states of messages in it; of each at most `most`, in one write.
 * Says how many it found, of whichever there were more. Another process may enter the same ones at the same time: a
 * message is entered by whoever commits first, and a status twice is as good as once.
 */
export async function indexWaiting(db: Db, most: number): Promise<number> {
  const waiting = await waitingMessages(db, most);
  const settled = await settledMessages(db, most);
  // Rising rows fill one piece of the index; each step back would begin another.
  const entries = [...settled, ...waiting].sort((a, b) => b.place - a.place);
  await db.write(entries.flatMap(({ statements }) => statements));
  return Math.max(waiting.length, settled.length);
}

async function waitingMessages(db: Db, most: number): Promise<Entry[]> {
  const rows = await db.all<WaitingRow>(
    `SELECT ${SEARCHED_COLUMNS}, created_at, (SELECT place FROM messages_reentering WHERE message_id = id) AS place
      FROM messages INDEXED BY messages_unindexed WHERE position IS NULL LIMIT ?`,
    [most],
  );
  if (rows.length === 0) return [];
  const newest = await db.first<{ position: number }>(
    `SELECT position FROM messages INDEXED BY messages_by_position
      WHERE position IS NOT NULL ORDER BY position DESC LIMIT 1`,
  );
  let last = newest?.position ?? 0;
  return rows
    .sort((a, b) => (a.id < b.id ? -1 : 1))
    .map((row) => {
      if (row.place !== null)
        return { place: row.place, statements: [...enter(row, row.place), entered(row)] };
      last = placeAfter(last, row.id, row.created_at);
      return { place: last, statements: enter(row, last) };
    });
}

/** Holds while a message waits and is as it was read: a template may have become its subject, an attempt its status. */
const AS_READ = "id = ? AND position IS NULL AND hex(subject) = ? AND status = ?";

function enter(row: WaitingRow, place: number): Statement[] {
  const guard = [row.id, row.subject_hex, row.status];
  return [
    {
      // Not INSERT … SELECT, before which FTS5 writes out a piece of its own. No terms enter nothing.
      sql: `INSERT INTO message_terms (rowid, terms) VALUES (?, (SELECT ? FROM messages WHERE ${AS_READ}))`,
      args: [rowOfPlace(place), termsOf(searchable(row)), ...guard],
    },
    {
      sql: `UPDATE messages SET position = ?, terms_rule = ${TERMS_RULE} WHERE ${AS_READ}`,
      args: [place, ...guard],
    },
  ];
}

/**
 * Remembers the place of a message that gets another subject and so leaves the index for a while, where the guard holds.
 * Not a trigger: a statement that has one makes FTS5 write out a piece, as INSERT … SELECT does, for each message.
 */
export function rememberPlace(messageId: string, subject: string, guard: Guard): Statement {
  return {
    sql: `INSERT INTO messages_reentering (message_id, place) SELECT id, position FROM messages
      WHERE id = ? AND position IS NOT NULL AND subject <> ? AND ${guard.sql} ON CONFLICT DO NOTHING`,
    args: [messageId, subject, ...guard.args],
  };
}

/** Forgets the place that a message had before, once it has it again. */
function entered({ id }: WaitingRow): Statement {
  return {
    sql: `DELETE FROM messages_reentering
      WHERE message_id = ? AND EXISTS (SELECT 1 FROM messages WHERE id = ? AND position IS NOT NULL)`,
    args: [id, id],
  };
}

/** Messages whose final status the index lacks. One that waits for the index again brings its status itself. */
async function settledMessages(db: Db, most: number): Promise<Entry[]> {
  const rows = await db.all<{
    id: string;
    sender_id: string;
    status: MessageStatus;
    position: number | null;
  }>(
    `SELECT m.id, m.sender_id, m.status, m.position
      FROM messages_settled s CROSS JOIN messages m ON m.id = s.message_id LIMIT ?`,
    [most],
  );
  return rows.map(({ id, sender_id, status, position }) => ({
    place: position ?? 0,
    statements: [
      ...(position === null || !isSettled(status)
        ? []
        : [
            {
              // Nothing for a message that is gone since it was read: nobody would take it out again.
              sql: `INSERT INTO message_terms (rowid, terms)
                VALUES (?, (SELECT ? FROM messages WHERE id = ? AND position = ?))`,
              args: [rowOfPlace(position), termOfStatus(sender_id, status), id, position],
            },
          ]),
      {
        sql: `DELETE FROM messages_settled
          WHERE message_id = ? AND EXISTS (SELECT 1 FROM messages WHERE id = ? AND status = ?)`,
        args: [id, id, status],
      },
    ],
  }));
}

/** What of a stored message can be searched. */
export function searchable(row: SearchedRow): Searchable {
  return {
    id: row.id,
    senderId: row.sender_id,
    direction: row.direction,
    status: row.status,
    from: storedMailbox(row.from_email, row.from_name),
    to: JSON.parse(row.to_list),
    cc: JSON.parse(row.cc_list),
    bcc: JSON.parse(row.bcc_list),
    subject: row.subject,
    tags: JSON.parse(row.tags),
  };
}

/** Messages entered in one write while nothing else runs. */
const OLDER_PER_WRITE = 1000;

/** Enters all messages that wait: those stored before there was an index, and those of a process that has died. */
export async function indexOlderMessages(db: Db): Promise<void> {
  // Not until none is left: another process may be accepting all the while.
  while ((await indexWaiting(db, OLDER_PER_WRITE)) === OLDER_PER_WRITE);
}
