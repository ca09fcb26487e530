import type { MessageEvent } from "../../core/messages/events.ts";
import { type Db, type Guard, type Statement, textsByGuard, type Value } from "../engine/client.ts";
import { json, plain, table } from "../engine/columns.ts";
import type { RowsText } from "../sql/engine.ts";
import { rowsStatement, rowsText } from "../sql/rows-text.ts";
import { readInSteps } from "../matching/steps.ts";

export const EVENTS = table<MessageEvent>("events", {
  id: plain("id"),
  senderId: plain("sender_id"),
  messageId: plain("message_id"),
  type: plain("type"),
  email: plain("email"),
  data: json("data"),
  createdAt: plain("created_at"),
});

const COLUMNS_STORED = "message_id, sender_id, created_at, id, type, email, data";

function rowsOf(count: number): string {
  return Array(count).fill("(?1, ?2, ?3, ?, ?, ?, ?)").join(", ");
}

/**
 * The SQL for one event, as for most changes, and for two, as for a new message to one recipient. They are
 * constants because new strings are hashed at each look-up.
 */
const [ONE, TWO] = [
  rowsText("events", COLUMNS_STORED, "(?1, ?2, ?3, ?4, ?5, ?6, ?7)"),
  rowsText("events", COLUMNS_STORED, "(?1, ?2, ?3, ?4, ?5, ?6, ?7), (?1, ?2, ?3, ?8, ?9, ?10, ?11)"),
];

function textFor(count: number): RowsText {
  if (count <= 2) return count === 1 ? ONE : TWO;
  return rowsText("events", COLUMNS_STORED, rowsOf(count), { repeats: false });
}

/** The text for one event under a guard. It needs no subquery. */
const guardedOne = textsByGuard(
  (condition) => `INSERT INTO events (${COLUMNS_STORED}) SELECT ?, ?, ?, ?, ?, ?, ? WHERE ${condition}`,
);

/**
 * Returns one statement that stores events of one message and one moment. With a guard, it stores them only if it
 * holds. Values that the events share are passed once, because passing values takes much of the time.
 */
export function insertEvents(events: readonly MessageEvent[], guard?: Guard): Statement {
  const [first] = events;
  if (first === undefined) throw new Error("no events");
  const args: Value[] = [first.messageId, first.senderId, first.createdAt];
  for (const { id, type, email, data } of events) args.push(id, type, email, JSON.stringify(data));
  const count = events.length;
  if (guard === undefined) return rowsStatement(textFor(count), args);
  return {
    sql:
      count === 1
        ? guardedOne(guard)
        : `INSERT INTO events (${COLUMNS_STORED}) SELECT * FROM (VALUES ${rowsOf(count)}) WHERE ${guard.sql}`,
    args: [...args, ...guard.args],
  };
}

/**
 * Events read at a time, in about ten milliseconds. A message to many recipients that is opened often has tens of
 * thousands.
 */
export const EVENTS_AT_A_TIME = 1000;

/** Returns the events of a message of the project, oldest first. @param most of them, the first */
export function listEvents(
  db: Db,
  senderId: string,
  messageId: string,
  most = Number.POSITIVE_INFINITY,
): Promise<MessageEvent[]> {
  const page = "WHERE message_id = ? AND sender_id = ? AND id > ? ORDER BY id LIMIT ?";
  return readInSteps<MessageEvent>(EVENTS_AT_A_TIME, most, (last, limit) =>
    EVENTS.all(db, page, [messageId, senderId, last?.id ?? "", limit]),
  );
}

/** Returns one event; null if the message has none with that id. */
export function getEvent(
  db: Db,
  senderId: string,
  messageId: string,
  id: string,
): Promise<MessageEvent | null> {
  return EVENTS.first(db, "WHERE message_id = ? AND id = ? AND sender_id = ?", [messageId, id, senderId]);
}
