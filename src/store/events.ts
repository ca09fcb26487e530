import type { EventType, MessageEvent } from "../core/events.ts";
import type { Db, Guard, Statement, Value } from "./engine/client.ts";
import { type RowsText, rowsStatement, rowsText } from "./engine/rows-text.ts";
import { readInSteps } from "./search/steps.ts";

interface EventRow {
  id: string;
  sender_id: string;
  message_id: string;
  type: EventType;
  email: string | null;
  data: string;
  created_at: number;
}

function toEvent(row: EventRow): MessageEvent {
  return {
    id: row.id,
    senderId: row.sender_id,
    messageId: row.message_id,
    type: row.type,
    email: row.email,
    data: JSON.parse(row.data),
    createdAt: row.created_at,
  };
}

const COLUMNS_STORED = "message_id, sender_id, created_at, id, type, email, data";

function rowsOf(count: number): string {
  return Array(count).fill("(?1, ?2, ?3, ?, ?, ?, ?)").join(", ");
}

/** An accepted mail to one has two, most other changes one. Made once, for wherever a text is looked up it is hashed. */
const [ONE, TWO] = [
  rowsText("events", COLUMNS_STORED, "(?1, ?2, ?3, ?4, ?5, ?6, ?7)"),
  rowsText("events", COLUMNS_STORED, "(?1, ?2, ?3, ?4, ?5, ?6, ?7), (?1, ?2, ?3, ?8, ?9, ?10, ?11)"),
];

function textFor(count: number): RowsText {
  if (count <= 2) return count === 1 ? ONE : TWO;
  return rowsText("events", COLUMNS_STORED, rowsOf(count), { repeats: false });
}

/**
 * One statement that stores events of one message and one moment; with a guard, only where it holds. What they share is
 * handed over once: that takes a good part of the time of storing them.
 */
export function insertEvents(events: readonly MessageEvent[], guard?: Guard): Statement {
  const [first] = events;
  if (first === undefined) throw new Error("no events");
  const args: Value[] = [first.messageId, first.senderId, first.createdAt];
  for (const { id, type, email, data } of events) args.push(id, type, email, JSON.stringify(data));
  const count = events.length;
  if (guard === undefined) return rowsStatement(textFor(count), args);
  return {
    // One row, as nearly always, needs no table of its own to be selected from.
    sql:
      count === 1
        ? `INSERT INTO events (${COLUMNS_STORED}) SELECT ?, ?, ?, ?, ?, ?, ? WHERE ${guard.sql}`
        : `INSERT INTO events (${COLUMNS_STORED}) SELECT * FROM (VALUES ${rowsOf(count)}) WHERE ${guard.sql}`,
    args: [...args, ...guard.args],
  };
}

/** Events read in one go, some ten milliseconds: a mail to many that is opened often has tens of thousands. */
export const EVENTS_AT_A_TIME = 1000;

/** The events of a message of the project, oldest first. @param most of them, the first */
export async function listEvents(
  db: Db,
  senderId: string,
  messageId: string,
  most = Number.POSITIVE_INFINITY,
): Promise<MessageEvent[]> {
  const rows = await readInSteps<EventRow>(EVENTS_AT_A_TIME, most, (last, limit) =>
    db.all(
      `SELECT id, sender_id, message_id, type, email, data, created_at FROM events
        WHERE message_id = ? AND sender_id = ? AND id > ? ORDER BY id LIMIT ?`,
      [messageId, senderId, last?.id ?? "", limit],
    ),
  );
  return rows.map(toEvent);
}

/** One event; null where the message has none of that id. */
export async function getEvent(
  db: Db,
  senderId: string,
  messageId: string,
  id: string,
): Promise<MessageEvent | null> {
  const row = await db.first<EventRow>(
    `SELECT id, sender_id, message_id, type, email, data, created_at FROM events
      WHERE message_id = ? AND id = ? AND sender_id = ?`,
    [messageId, id, senderId],
  );
  return row === null ? null : toEvent(row);
}
