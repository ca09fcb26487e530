import { idBytes } from "../../core/ids.ts";
import type { MessageStatus } from "../../core/messages/states.ts";
import { storedMailbox } from "../engine/columns.ts";
import type { Db, Guard, Statement } from "../engine/client.ts";
import { isSettled, type Searchable, termOfStatus, termsOf } from "./search-terms.ts";

/**
 * How the index keeps the order of ids. Its posting lists hold integers and grow cheaply at their end only. Ids have
 * 128 bits and arrive slightly out of order, because an id is made before the wait for its commit. So a message gets
 * the position after the last one, but never one before the time in its id, nor more than LAG_MS after it:
 *   firstPosition(time) <= position <= lastPosition(time).
 * A walk down the positions that has come below a time has seen every id of that time and later.
 */
const POSITIONS_PER_MS = 16;
/**
 * A message that is later than this gets the position of its time, which costs the index one more segment.
 */
const LAG_MS = 250;

/** Above every position until the year 2109. */
const LAST_ROW = 2 ** 46;

/**
 * Returns the index's rowid of a position. Rowids fall as time rises: FTS5 reads posting lists upwards several times
 * faster, and a page begins with the newest.
 */
export function rowOfPosition(place: number): number {
  return LAST_ROW - place;
}

/** SQL for the position of the index's row. */
export const POSITION_OF_ROW = `${LAST_ROW} - message_terms.rowid`;

/** Returns the first position of a time (milliseconds). */
export function firstPosition(time: number): number {
  return time * POSITIONS_PER_MS;
}

/** Returns the time (milliseconds) of a position. No message of a later time has a lower position. */
export function timeOfPosition(place: number): number {
  return Math.floor(place / POSITIONS_PER_MS);
}

/** Returns the last position that a message of that time may have. */
export function lastPosition(time: number): number {
  return (time + LAG_MS) * POSITIONS_PER_MS;
}

/** Returns the time in a message's id (milliseconds): the first 48 bits, RFC 9562 §5.7; null if it is no such id. */
export function timeOfId(id: string): number | null {
  const bytes = idBytes("msg", id);
  return bytes === null ? null : Buffer.from(bytes).readUIntBE(0, 6);
}

/** Returns the position of a message added after position `last`. Late messages may share one. */
function positionAfter(last: number, id: string, createdAt: number): number {
  const time = timeOfId(id) ?? createdAt;
  return Math.max(firstPosition(time), Math.min(last + 1, lastPosition(time)));
}

/** The columns of a message that the index is made of. */
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
  /** The exact subject. A NUL ends a string that leaves the database, but not the stored one. */
  subject_hex: string;
  tags: string;
}

export const SEARCHED_COLUMNS = `id, sender_id, direction, status, from_email, from_name, to_list, cc_list, bcc_list, subject,
  hex(subject) AS subject_hex, tags`;

interface WaitingRow extends SearchedRow {
  created_at: number;
  /** The position that it had in the index before; null if it has not been there. */
  place: number | null;
}

/** Statements that add something to the index, and their position. */
interface Entry {
  place: number;
  statements: Statement[];
}

/**
 * Adds to the index in one write: new messages, and final states of messages, at most `most` of each. If another
 * process adds the same, the first commit adds a message, and a status may be added twice. Returns the larger of the
 * two numbers.
 */
export async function indexWaiting(db: Db, most: number): Promise<number> {
  const waiting = await waitingMessages(db, most);
  const settled = await settledMessages(db, most);
  // Rising rows fill one segment of the index; each step back would begin another.
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
      last = positionAfter(last, row.id, row.created_at);
      return { place: last, statements: enter(row, last) };
    });
}

/**
 * The condition that a message waits for the index and is as it was read: a template may have changed its subject, an
 * attempt its status.
 */
const AS_READ = "id = ? AND position IS NULL AND hex(subject) = ? AND status = ?";

function enter(row: WaitingRow, place: number): Statement[] {
  const guard = [row.id, row.subject_hex, row.status];
  return [
    {
      // Not INSERT … SELECT, before which FTS5 writes a segment. NULL terms add nothing.
      sql: `INSERT INTO message_terms (rowid, terms) VALUES (?, (SELECT ? FROM messages WHERE ${AS_READ}))`,
      args: [rowOfPosition(place), termsOf(searchable(row)), ...guard],
    },
    {
      sql: `UPDATE messages SET position = ? WHERE ${AS_READ}`,
      args: [place, ...guard],
    },
  ];
}

/**
 * Returns the statement that remembers the position of a message whose subject changes, if the guard holds. The
 * message leaves the index for a while. A trigger would make FTS5 write a segment for each message, as INSERT … SELECT
 * does.
 */
export function rememberPlace(messageId: string, subject: string, guard: Guard): Statement {
  return {
    sql: `INSERT INTO messages_reentering (message_id, place) SELECT id, position FROM messages
      WHERE id = ? AND position IS NOT NULL AND subject <> ? AND ${guard.sql} ON CONFLICT DO NOTHING`,
    args: [messageId, subject, ...guard.args],
  };
}

/** Returns the statement that forgets a message's earlier position once the message has it again. */
function entered({ id }: WaitingRow): Statement {
  return {
    sql: `DELETE FROM messages_reentering
      WHERE message_id = ? AND EXISTS (SELECT 1 FROM messages WHERE id = ? AND position IS NOT NULL)`,
    args: [id, id],
  };
}

/**
 * Returns the entries of messages whose final status the index lacks. A message that waits for the index again brings
 * its status itself.
 */
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
              // NULL for a message that was deleted since: its term would never be removed.
              sql: `INSERT INTO message_terms (rowid, terms)
                VALUES (?, (SELECT ? FROM messages WHERE id = ? AND position = ?))`,
              args: [rowOfPosition(position), termOfStatus(sender_id, status), id, position],
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

/** Returns the searchable parts of a stored message. */
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
