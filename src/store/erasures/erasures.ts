import type { Db, Guard, Statement } from "../engine/client.ts";
import { type EntityOf, json, plain, table } from "../engine/columns.ts";

/** Numbers of removed rows by their kind. */
export type ErasureCounts = Readonly<Record<string, number>>;

/** The place of an erasure whose last pass over the projects is over. It sorts after each id. */
export const PASSED = "~";

const COLUMNS = {
  id: plain<string>("id"),
  accountId: plain<string>("account_id"),
  /** Null: all projects of the account. */
  senderId: plain<string | null>("sender_id"),
  status: plain<"running" | "done">("status"),
  /** The address, sealed; null once it is done. */
  sealedEmail: plain<string | null>("sealed_email"),
  projectAt: plain<string>("project_at"),
  messageAt: plain<string>("message_at"),
  /** Messages that this pass had to leave. */
  blocked: plain<number>("blocked"),
  /** Free pages to give back; null until the contents have gone. */
  pagesLeft: plain<number | null>("pages_left"),
  counts: json<ErasureCounts>("counts"),
  createdAt: plain<number>("created_at"),
  endedAt: plain<number | null>("ended_at"),
};

/** A request to erase an address. Times in milliseconds. */
export type Erasure = EntityOf<typeof COLUMNS>;

const ERASURES = table<Erasure>("erasures", COLUMNS);

/** Returns the statement that stores a request. */
export function insertErasure(erasure: Erasure): Statement {
  return ERASURES.insert(erasure);
}

/** Returns the account's request. @param senderId only one of this project; null: any */
export function getErasure(
  db: Db,
  accountId: string,
  senderId: string | null,
  id: string,
): Promise<Erasure | null> {
  const where = "WHERE id = ? AND account_id = ? AND (? IS NULL OR sender_id = ?)";
  return ERASURES.first(db, where, [id, accountId, senderId, senderId]);
}

/** Returns at most `limit` requests in progress of all accounts, oldest first. */
export function runningErasures(db: Db, limit: number): Promise<Erasure[]> {
  return ERASURES.all(db, "WHERE status = 'running' ORDER BY id LIMIT ?", [limit]);
}

/** Returns the number of the account's requests in progress, counted up to a limit. */
export async function countRunning(db: Db, accountId: string, limit: number): Promise<number> {
  const sql =
    "SELECT count(*) AS n FROM (SELECT 1 FROM erasures WHERE status = 'running' AND account_id = ? LIMIT ?)";
  return (await db.first<{ n: number }>(sql, [accountId, limit]))?.n ?? 0;
}

/** Returns the statement that records how far a request is. Another process may have done the same. */
export function progressErasure(id: string, changes: Partial<Erasure>): Statement {
  const { set, values } = ERASURES.assignments(changes);
  return {
    sql: `UPDATE erasures SET ${set.join(", ")} WHERE id = ? AND status = 'running'`,
    args: [...values, id],
  };
}

/** Returns the account's first project after an id; null at the end. */
export async function nextProject(db: Db, accountId: string, after: string): Promise<string | null> {
  const sql = "SELECT id FROM senders WHERE account_id = ? AND id > ? ORDER BY id LIMIT 1";
  return (await db.first<{ id: string }>(sql, [accountId, after]))?.id ?? null;
}

/** Returns true while contents that nothing names wait for their removal, from the database or from the object store. */
export async function contentsAreGoing(db: Db, leftBefore: number): Promise<boolean> {
  const row = await db.first<{ going: number }>(
    `SELECT EXISTS (SELECT 1 FROM contents WHERE refs = 0 AND created_at < ?)
      OR EXISTS (SELECT 1 FROM stray_objects WHERE doomed = 1) AS going`,
    [leftBefore],
  );
  return row?.going === 1;
}

/** Holds while the request is not done. */
export function runningGuard(id: string): Guard {
  return { sql: "EXISTS (SELECT 1 FROM erasures WHERE id = ? AND status = 'running')", args: [id] };
}
