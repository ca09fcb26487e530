import { type Folder, MAX_LABELS } from "../../core/messages/mailbox.ts";
import { wellFormedJson } from "../../core/text.ts";
import { noteChange } from "../engine/audit-triggers.ts";
import type { Db, Statement, Value } from "../engine/client.ts";
import { type Thread, THREADS } from "./threads.ts";

/** A folder, and the time at which the thread leaves it, milliseconds; null: it stays. */
export interface FolderPlace {
  folder: Folder;
  until: number | null;
}

/** The changes that clients and rules make to a thread. A field that is left out stays as it is. */
export interface ThreadChanges {
  read?: boolean | undefined;
  archived?: boolean | undefined;
  /** All labels that the thread has then. */
  labels?: readonly string[] | undefined;
  /** Labels that the thread has in addition, up to `MAX_LABELS`. */
  addLabels?: readonly string[] | undefined;
  /** A member of the account; null: nobody. One who was removed since becomes nobody. */
  assigneeId?: string | null | undefined;
  /** A member who gets the thread if it has nobody, and may see the project. */
  assignIfFree?: string | undefined;
  place?: FolderPlace | undefined;
}

/** SQL of the member who has a thread; if there is none, of the one that a parameter names. */
const ASSIGNED_OR = `COALESCE((SELECT id FROM members WHERE id = assignee_id),
  (SELECT m.id FROM members m WHERE m.id = ? AND m.status <> 'disabled' AND (m.sender_ids = '[]'
    OR EXISTS (SELECT 1 FROM json_each(m.sender_ids) WHERE value = threads.sender_id))))`;

const json = wellFormedJson;
const labelsWith = `(SELECT json_group_array(value) FROM (
  SELECT value, 0 AS late, key FROM json_each(labels)
  UNION ALL SELECT value, 1, key FROM json_each(?) WHERE value NOT IN (SELECT value FROM json_each(labels))
  ORDER BY late, key LIMIT ${MAX_LABELS}))`;

/** Returns the assignments of an UPDATE with their values. */
function assignments(changes: ThreadChanges): { set: string[]; args: Value[] } {
  const { read, archived, labels, addLabels, assigneeId, assignIfFree, place } = changes;
  const all: [sql: string, args: Value[]][] = [];
  if (read !== undefined) all.push(["unread = ?", [Number(!read)]]);
  if (archived !== undefined) all.push(["archived = ?", [Number(archived)]]);
  if (labels !== undefined) all.push(["labels = ?", [json(labels)]]);
  else if (addLabels !== undefined) all.push([`labels = ${labelsWith}`, [json(addLabels)]]);
  if (assigneeId !== undefined)
    all.push(["assignee_id = (SELECT id FROM members WHERE id = ?)", [assigneeId]]);
  else if (assignIfFree !== undefined) all.push([`assignee_id = ${ASSIGNED_OR}`, [assignIfFree]]);
  if (place !== undefined) all.push(["folder = ?, folder_until = ?", [place.folder, place.until]]);
  return { set: all.map(([sql]) => sql), args: all.flatMap(([, args]) => args) };
}

/** Returns the statement that changes a thread, for a write with others; null if it changes nothing. */
export function changeThread(senderId: string, id: string, changes: ThreadChanges): Statement | null {
  const { set, args } = assignments(changes);
  if (set.length === 0) return null;
  return {
    sql: `UPDATE threads SET ${set.join(", ")} WHERE id = ? AND sender_id = ?`,
    args: [...args, id, senderId],
  };
}

const choice = (one: string, other: string, column: string) => `iif(row.${column}, '${one}', '${other}')`;
const time = "strftime('%Y-%m-%dT%H:%M:%fZ', row.folder_until / 1000.0, 'unixepoch')";

/** Returns the changed fields for the audit trail: SQL of the JSON before, and the JSON after. */
function notedFields({ read, archived, labels, assigneeId, place }: ThreadChanges) {
  const noted: Record<string, readonly [string, string]> = {};
  if (read !== undefined) noted.read = [choice("false", "true", "unread"), `${read}`];
  if (archived !== undefined) noted.archived = [choice("true", "false", "archived"), `${archived}`];
  if (labels !== undefined) noted.labels = ["row.labels", json(labels)];
  if (assigneeId !== undefined) noted.assigneeId = ["json_quote(row.assignee_id)", json(assigneeId)];
  if (place !== undefined) {
    noted.folder = ["json_quote(row.folder)", json(place.folder)];
    const until = place.until === null ? null : new Date(place.until).toISOString();
    noted.folderUntil = [`json_quote(${time})`, json(until)];
  }
  return noted;
}

/**
 * Changes a thread of the project.
 * @returns the thread afterwards; null if the project has none with that id
 */
export async function updateThread(
  db: Db,
  senderId: string,
  id: string,
  changes: ThreadChanges,
): Promise<Thread | null> {
  const noted = notedFields(changes);
  const change = changeThread(senderId, id, changes);
  const written = await db.write([
    ...(Object.keys(noted).length === 0
      ? []
      : [noteChange({ table: "threads", verb: "update", senderId, id, changes: noted })]),
    {
      sql: `${change?.sql ?? "UPDATE threads SET unread = unread WHERE id = ? AND sender_id = ?"} RETURNING ${THREADS.columns}`,
      args: change?.args ?? [id, senderId],
    },
  ]);
  return THREADS.returned(written.at(-1));
}

/** A thread whose time in its folder is over. */
export interface LeavingThread {
  id: string;
  senderId: string;
  folder: Folder;
}

/** Returns the threads of all projects whose time in their folder is over, first those that are due for longest. */
export async function leavingThreads(db: Db, now: number, limit: number): Promise<LeavingThread[]> {
  return await db.all<LeavingThread>(
    `SELECT id, sender_id AS senderId, folder FROM threads INDEXED BY threads_leaving
      WHERE folder_until IS NOT NULL AND folder_until <= ? ORDER BY folder_until LIMIT ?`,
    [now, limit],
  );
}

/** Returns the statement that brings snoozed threads, whose time has come, back to the inbox as unread. */
export function wakeThreads(ids: readonly string[], now: number): Statement {
  return {
    sql: `UPDATE threads SET folder = 'inbox', folder_until = NULL, unread = 1, archived = 0
      WHERE id IN (SELECT value FROM json_each(?)) AND folder = 'snoozed' AND folder_until <= ?`,
    args: [json(ids), now],
  };
}

/** Returns the statement that keeps a thread in its folder until a later time, if its time is over. */
export function keepInFolder(id: string, now: number, until: number): Statement {
  return {
    sql: "UPDATE threads SET folder_until = ? WHERE id = ? AND folder_until <= ?",
    args: [until, id, now],
  };
}

/**
 * Returns the statement that takes a removed member off at most `limit` threads. Without a member of that id, no thread is
 * assigned to one any more.
 */
export function unassign(memberId: string, limit: number): Statement {
  return {
    sql: `UPDATE threads SET assignee_id = NULL WHERE id IN
      (SELECT id FROM threads WHERE assignee_id = ?1 LIMIT ?2)
      AND NOT EXISTS (SELECT 1 FROM members WHERE id = ?1)`,
    args: [memberId, limit],
  };
}
