import type { MessageEvent } from "../../core/messages/events.ts";
import type { Db, Statement } from "../engine/client.ts";
import { EVENTS } from "./events.ts";
import type { Row } from "../engine/columns.ts";
import type { Tag } from "../messages/messages.ts";

/** A committed event of a watched project, with what its message adds to a payload. */
export interface LoggedEvent extends MessageEvent {
  tags: Tag[];
  testMode: boolean;
  /** Octets of the message. */
  size: number;
}

/** A draft that a program has saved in a watched project. Its content is not logged. */
export interface LoggedDraft {
  type: "draft_saved";
  /** Names the place in the log. */
  id: string;
  draftId: string;
  /** Milliseconds. */
  createdAt: number;
}

/** A place in the log. `event` is null if retention has removed the event since, or it is a draft's place. */
export interface LogEntry {
  /** Grows in the order of commits, over all projects. */
  seq: number;
  event: LoggedEvent | null;
  draft?: LoggedDraft;
}

/** Returns the statement that logs a version of a draft, if the project is watched. */
export function logDraft(senderId: string, draftId: string, version: number, now: number): Statement {
  return {
    sql: `INSERT INTO event_log (sender_id, message_id, event_id, created_at)
      SELECT sender_id, '', ?, ? FROM watched_projects WHERE sender_id = ?`,
    args: [`${draftId}.${version}`, now, senderId],
  };
}

/** Returns the time until which the project's events are logged, milliseconds; 0 if they are not. */
export async function watchedUntil(db: Db, senderId: string): Promise<number> {
  const row = await db.first<{ until: number }>("SELECT until FROM watched_projects WHERE sender_id = ?", [
    senderId,
  ]);
  return row?.until ?? 0;
}

/** Logs the project's events from now on, at least until a time in milliseconds. */
export async function watchProject(db: Db, senderId: string, until: number): Promise<void> {
  await db.write([
    {
      sql: `INSERT INTO watched_projects (sender_id, until) VALUES (?, ?)
            ON CONFLICT (sender_id) DO UPDATE SET until = MAX(until, excluded.until)`,
      args: [senderId, until],
    },
  ]);
}

/** Returns true if any project is watched. */
export async function isAnyWatched(db: Db): Promise<boolean> {
  return (await db.first("SELECT 1 FROM watched_projects LIMIT 1")) !== null;
}

/** Returns the newest place in the log; 0 if it is empty. */
export async function logHead(db: Db): Promise<number> {
  const row = await db.first<{ seq: number | null }>("SELECT MAX(seq) AS seq FROM event_log");
  return row?.seq ?? 0;
}

/** Returns the places after `after` with their projects, in order, at most `limit`. */
export function logNews(db: Db, after: number, limit: number): Promise<{ seq: number; senderId: string }[]> {
  return db.all("SELECT seq, sender_id AS senderId FROM event_log WHERE seq > ? ORDER BY seq LIMIT ?", [
    after,
    limit,
  ]);
}

const EVENT_COLUMNS = EVENTS.names.map((name) => `e.${name}`).join(", ");

interface LogRow {
  seq: number;
  id: string | null;
  tags: string | null;
  test_mode: number;
  size: number;
}

/** Returns the project's entries after `after`, in order, at most `limit`. */
export async function listLogged(
  db: Db,
  senderId: string,
  after: number,
  limit: number,
): Promise<LogEntry[]> {
  const rows = await db.all<Row & LogRow & { place: string; logged_at: number }>(
    `SELECT l.seq, l.event_id AS place, l.created_at AS logged_at, ${EVENT_COLUMNS}, m.tags, m.test_mode, m.size
      FROM event_log l INDEXED BY event_log_by_sender
      LEFT JOIN events e ON e.message_id = l.message_id AND e.id = l.event_id
      LEFT JOIN messages m ON m.id = e.message_id
      WHERE l.sender_id = ? AND l.seq > ? ORDER BY l.seq LIMIT ?`,
    [senderId, after, limit],
  );
  return rows.map((row) => ({ seq: row.seq, event: eventOf(row), ...draftOf(row.place, row.logged_at) }));
}

/** Returns the draft of a place; nothing if it is that of an event. */
function draftOf(id: string, createdAt: number): Pick<LogEntry, "draft"> {
  if (!id.startsWith("drf_")) return {};
  return { draft: { type: "draft_saved", id, draftId: id.slice(0, id.indexOf(".")), createdAt } };
}

function eventOf(row: Row & LogRow): LoggedEvent | null {
  if (row.id === null || row.tags === null) return null;
  const tags: Tag[] = JSON.parse(row.tags);
  return { ...EVENTS.read(row), tags, testMode: row.test_mode === 1, size: row.size };
}

/** Maximum number of events that a stream begins with, and of messages that they are of. */
export const MAX_RECENT = 100;

/**
 * Returns the newest events of the project's newest messages and of the log, oldest first, but none after the place `position`
 * in the log. Events have no index by time, so those of older messages are found only while they are in the log.
 * @param limit at most MAX_RECENT
 */
export async function recentEvents(
  db: Db,
  senderId: string,
  position: number,
  limit: number,
): Promise<LoggedEvent[]> {
  const rows = await db.all<Row & LogRow>(
    `WITH newest AS (
        SELECT e.message_id, e.id
          FROM (SELECT id FROM messages INDEXED BY messages_by_sender WHERE sender_id = ?1 ORDER BY id DESC LIMIT ?3) n
          JOIN events e ON e.message_id = n.id
            AND e.id IN (SELECT id FROM events WHERE message_id = n.id ORDER BY id DESC LIMIT ?3)
        UNION
        SELECT message_id, event_id FROM (SELECT message_id, event_id FROM event_log INDEXED BY event_log_by_sender
          WHERE sender_id = ?1 AND seq <= ?2 ORDER BY seq DESC LIMIT ?3))
      SELECT 0 AS seq, ${EVENT_COLUMNS}, m.tags, m.test_mode, m.size
        FROM newest n JOIN events e ON e.message_id = n.message_id AND e.id = n.id JOIN messages m ON m.id = e.message_id
        WHERE NOT EXISTS (SELECT 1 FROM event_log l WHERE l.event_id = e.id AND l.seq > ?2)
        ORDER BY e.id DESC LIMIT ?3`,
    [senderId, position, limit],
  );
  return rows.reverse().flatMap((row) => eventOf(row) ?? []);
}

/** Returns the place of an event of the project and its time in milliseconds; null if the log does not have it. */
export function findLogged(
  db: Db,
  senderId: string,
  eventId: string,
): Promise<{ seq: number; createdAt: number } | null> {
  return db.first("SELECT seq, created_at AS createdAt FROM event_log WHERE event_id = ? AND sender_id = ?", [
    eventId,
    senderId,
  ]);
}

/** Returns the id of the project's newest logged event since a time in milliseconds; null if there is none, or the watch has ended. */
export async function newestLogged(
  db: Db,
  senderId: string,
  since: number,
  now: number,
): Promise<string | null> {
  const row = await db.first<{ id: string; createdAt: number }>(
    `SELECT l.event_id AS id, l.created_at AS createdAt FROM event_log l INDEXED BY event_log_by_sender
      WHERE l.sender_id = ? AND EXISTS (SELECT 1 FROM watched_projects w WHERE w.sender_id = l.sender_id AND w.until > ?)
      ORDER BY l.seq DESC LIMIT 1`,
    [senderId, now],
  );
  return row !== null && row.createdAt >= since ? row.id : null;
}

/**
 * Ends the watch of projects whose time is over, and removes the oldest entries of before a time in milliseconds.
 * @returns the number of entries removed, at most `limit`
 */
export async function trimLog(db: Db, now: number, before: number, limit: number): Promise<number> {
  const [, trimmed] = await db.write([
    { sql: "DELETE FROM watched_projects WHERE until < ?", args: [now] },
    {
      sql: `DELETE FROM event_log WHERE seq IN (SELECT seq FROM event_log ORDER BY seq LIMIT ?)
              AND created_at < ? AND seq < (SELECT MAX(seq) FROM event_log)`,
      args: [limit, before],
    },
  ]);
  return trimmed?.changes ?? 0;
}
