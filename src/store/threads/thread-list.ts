import { type Folder, UNASSIGNED } from "../../core/messages/mailbox.ts";
import type { Db, Value } from "../engine/client.ts";
import { INBOX_EXISTS } from "./inboxes.ts";
import { scanInSteps } from "../matching/steps.ts";
import { allOf, type Condition, containsTextOrDomain, type TextCondition } from "../matching/substring.ts";
import { type Thread, THREADS } from "./threads.ts";

/** A position in the list of threads by last activity. */
export interface ThreadPosition {
  lastMessageAt: number;
  id: string;
}

/** The threads that a list holds. Null in a filter means all. */
export interface ThreadFilter {
  /** An inbox of the project; null: all inboxes of the project. */
  inboxId: string | null;
  archived: boolean | null;
  unread: boolean | null;
  folder: Folder;
  label: string | null;
  /** Id of a member, or `UNASSIGNED`. */
  assigneeId: string | null;
  /** A part of the subject, of a participant's address or of the preview, in any case. */
  q: string | null;
}

export interface ThreadPage {
  senderId: string;
  filter: ThreadFilter;
  /** The last thread of the page before; null: start with the last active one. */
  after: ThreadPosition | null;
  limit: number;
}

export interface ThreadsFound {
  threads: Thread[];
  /** If the page is short and the list is not at its end: the position at which the search stopped. */
  stoppedAt: ThreadPosition | null;
}

const FIRST: ThreadPosition = { lastMessageAt: Number.MAX_SAFE_INTEGER, id: "" };

/**
 * Lists threads, last active first. A thread that becomes active during a walk is met again only by a new walk. All
 * others keep their place, so a walk gives each of them exactly once.
 */
export async function listThreads(db: Db, page: ThreadPage): Promise<ThreadsFound> {
  const { q } = page.filter;
  const start = page.after ?? FIRST;
  const list = listOf(page);
  const text = q === null ? null : textFound(q);
  const wanted = [...flags(page.filter), ...(text === null ? [] : [text])];
  const { rows, stoppedAt } = await scanInSteps<Thread, ThreadPosition>(
    {
      positionAfter: (from, rows) => positionAfter(db, list, from, rows),
      wanted: (from, end, limit) => rowsAfter(db, list, from, end, wanted, limit),
      text: text === null ? undefined : textOf(db, list, text),
    },
    start,
    page.limit,
  );
  return { threads: rows, stoppedAt };
}

/** The index that holds the threads of an inbox or a project by last activity, and the condition that selects them. */
interface IndexedList {
  index: string;
  owner: Condition;
  senderId: string;
}

function listOf({ senderId, filter: { inboxId, folder, assigneeId } }: ThreadPage): IndexedList {
  const ofInbox = inboxId === null ? [] : [{ sql: "inbox_id = ?", args: [inboxId] }];
  // The second comparison is the one of the partial index.
  if (folder !== "inbox")
    return inProject("threads_by_folder", senderId, [
      { sql: `folder = '${folder}' AND folder <> 'inbox'`, args: [] },
      ...ofInbox,
    ]);
  if (assigneeId !== null && assigneeId !== UNASSIGNED)
    return inProject("threads_by_assignee", senderId, [isAssignedTo(assigneeId), ...ofInbox]);
  if (inboxId !== null) return { index: "threads_by_activity", owner: allOf(ofInbox), senderId };
  return inProject("threads_by_project", senderId, []);
}

/** Returns a list that may have threads of any inbox. Those of an inbox that is being deleted are no longer listed. */
function inProject(index: string, senderId: string, more: readonly Condition[]): IndexedList {
  const standing = {
    sql: `sender_id = ? AND EXISTS (SELECT 1 FROM inboxes WHERE id = inbox_id AND ${INBOX_EXISTS})`,
    args: [senderId],
  };
  return { index, owner: allOf([standing, ...more]), senderId };
}

/** Returns those of the project's threads that exist. */
export function threadsWithIds(db: Db, senderId: string, ids: readonly string[]): Promise<Thread[]> {
  return THREADS.all(db, "WHERE sender_id = ? AND id IN (SELECT value FROM json_each(?))", [
    senderId,
    JSON.stringify(ids),
  ]);
}

/** Returns the condition that a row of `messages m` is in a thread that the list holds. */
export function inListedThread({ filter }: Pick<ThreadPage, "filter">): Condition {
  const { inboxId, q } = filter;
  const { sql, args } = allOf([
    ...flags(filter),
    ...(inboxId === null ? [] : [{ sql: "inbox_id = ?", args: [inboxId] }]),
    ...(q === null ? [] : [textFound(q)]),
  ]);
  return {
    sql: `EXISTS (SELECT 1 FROM threads WHERE threads.id = m.thread_id AND threads.sender_id = m.sender_id AND ${sql}
      AND EXISTS (SELECT 1 FROM inboxes WHERE inboxes.id = threads.inbox_id AND ${INBOX_EXISTS}))`,
    args,
  };
}

/** A member who was removed has no threads, although they are taken off in steps. */
function isAssignedTo(memberId: string): Condition {
  if (memberId === UNASSIGNED)
    return { sql: "NOT EXISTS (SELECT 1 FROM members WHERE id = assignee_id)", args: [] };
  return { sql: "assignee_id = (SELECT id FROM members WHERE id = ?)", args: [memberId] };
}

function flags({ archived, unread, folder, label, assigneeId }: ThreadFilter): Condition[] {
  return [
    { sql: `folder = '${folder}'`, args: [] },
    ...(archived === null ? [] : [{ sql: "archived = ?", args: [Number(archived)] }]),
    ...(unread === null ? [] : [{ sql: "unread = ?", args: [Number(unread)] }]),
    ...(assigneeId === null ? [] : [isAssignedTo(assigneeId)]),
    ...(label === null
      ? []
      : [{ sql: "EXISTS (SELECT 1 FROM json_each(labels) WHERE value = ?)", args: [label] }]),
  ];
}

/** Participants are a JSON list. No deliverable address contains a character of its syntax. */
function textFound(q: string): TextCondition {
  const addresses = /[[\]",\\]/.test(q) ? [] : ["participants"];
  return containsTextOrDomain(["subject", "preview", ...addresses], addresses, q);
}

function textOf(db: Db, list: IndexedList, text: TextCondition) {
  return {
    octets: (from: ThreadPosition, end: ThreadPosition | null) => octetsAfter(db, list, from, end, text),
    inOneGo: text.octetsInOneGo,
  };
}

/** Returns the threads after a position, down to another and its thread; null: to the list's end. */
function threadsAfter(
  { index, owner }: IndexedList,
  from: ThreadPosition,
  end: ThreadPosition | null,
  wanted: readonly Condition[] = [],
): Condition {
  const { sql, args } = allOf([
    owner,
    { sql: "(last_message_at, id) < (?, ?)", args: [from.lastMessageAt, from.id] },
    ...(end === null ? [] : [{ sql: "(last_message_at, id) >= (?, ?)", args: [end.lastMessageAt, end.id] }]),
    ...wanted,
  ]);
  return { sql: `FROM threads INDEXED BY ${index} WHERE ${sql}`, args };
}

/** Returns the position of the `rows`-th thread after another; null if the list ends before. */
async function positionAfter(
  db: Db,
  list: IndexedList,
  from: ThreadPosition,
  rows: number,
): Promise<ThreadPosition | null> {
  const { sql, args } = threadsAfter(list, from, null);
  const row = await db.first<{ last_message_at: number; id: string }>(
    `SELECT last_message_at, id ${sql} ORDER BY last_message_at DESC, id DESC LIMIT 1 OFFSET ?`,
    [...args, rows - 1],
  );
  return row === null ? null : { lastMessageAt: row.last_message_at, id: row.id };
}

/** Returns the octets that a search compares. */
async function octetsAfter(
  db: Db,
  list: IndexedList,
  from: ThreadPosition,
  end: ThreadPosition | null,
  { octets }: TextCondition,
): Promise<number> {
  const { sql, args } = threadsAfter(list, from, end);
  const row = await db.first<{ octets: number | null }>(`SELECT SUM(${octets}) AS octets ${sql}`, args);
  return row?.octets ?? 0;
}

function rowsAfter(
  db: Db,
  list: IndexedList,
  from: ThreadPosition,
  end: ThreadPosition | null,
  wanted: readonly Condition[],
  limit: number,
): Promise<Thread[]> {
  const { sql, args } = threadsAfter(list, from, end, wanted);
  const values: Value[] = [list.senderId, ...args, limit];
  // The index tells which threads are on the page; only those are read whole.
  return THREADS.all(
    db,
    `WHERE sender_id = ? AND id IN (SELECT id ${sql} ORDER BY last_message_at DESC, id DESC LIMIT ?)
      ORDER BY last_message_at DESC, id DESC`,
    values,
  );
}
