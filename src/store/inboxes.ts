import { ConstraintError, type Db, firstReturned, type Guard, type Statement } from "./engine/client.ts";
import { movableText, rowsStatement } from "./engine/rows-text.ts";
import { readInSteps } from "./search/steps.ts";

/** What an inbox is for. */
export const INBOX_TYPES = ["sending", "agent"] as const;
export type InboxType = (typeof INBOX_TYPES)[number];

/** A receive address. Times in milliseconds. */
export interface Inbox {
  id: string;
  senderId: string;
  domainId: string;
  /** Lower case, A-labels. */
  address: string;
  displayName: string;
  type: InboxType;
  createdAt: number;
}

interface Row {
  id: string;
  sender_id: string;
  domain_id: string;
  address: string;
  display_name: string;
  type: InboxType;
  created_at: number;
}

/** What tells an inbox from one that is on its way out (`inbox-removal`): that has its id for an address. */
export const STANDS = "address <> id";

const COLUMNS = "id, sender_id, domain_id, address, display_name, type, created_at";

function inboxOf(row: Row): Inbox {
  return {
    id: row.id,
    senderId: row.sender_id,
    domainId: row.domain_id,
    address: row.address,
    displayName: row.display_name,
    type: row.type,
    createdAt: row.created_at,
  };
}

/**
 * The statement that makes an inbox on a domain of the project, which the caller has looked up. A taken address breaks
 * UNIQUE on `inboxes.…`; a domain deleted meanwhile breaks the foreign key.
 */
export function insertInbox(inbox: Inbox): Statement {
  return {
    sql: `INSERT INTO inboxes (${COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?)`,
    args: [
      inbox.id,
      inbox.senderId,
      inbox.domainId,
      inbox.address,
      inbox.displayName,
      inbox.type,
      inbox.createdAt,
    ],
  };
}

/** The project's inbox of that id; null where there is none. */
export async function getInbox(db: Db, senderId: string, id: string): Promise<Inbox | null> {
  const row = await db.first<Row>(
    `SELECT ${COLUMNS} FROM inboxes WHERE sender_id = ? AND id = ? AND ${STANDS}`,
    [senderId, id],
  );
  return row === null ? null : inboxOf(row);
}

/** Inboxes read in one go: the rest of the service runs in between (some five milliseconds). */
export const INBOXES_AT_A_TIME = 1000;

/** All of the project's inboxes, newest first. @param domainId only those of that domain; null: all */
export async function listInboxes(db: Db, senderId: string, domainId: string | null): Promise<Inbox[]> {
  // A domain's are walked by address: those of the others are not looked at.
  const [of, walked] =
    domainId === null ? (["sender_id = ?1", "id"] as const) : (["domain_id = ?4", "address"] as const);
  const rows = await readInSteps<Row>(INBOXES_AT_A_TIME, Number.POSITIVE_INFINITY, (last, limit) =>
    db.all(
      `SELECT ${COLUMNS} FROM inboxes WHERE ${of} AND ${walked} > ?2 AND +sender_id = ?1 AND ${STANDS}
        ORDER BY ${walked} LIMIT ?3`,
      [senderId, last?.[walked] ?? "", limit, ...(domainId === null ? [] : [domainId])],
    ),
  );
  return rows.map(inboxOf).sort((a, b) => (a.id < b.id ? 1 : -1));
}

/** Sets what is given and leaves the rest. Returns the inbox after it; null where there is none. */
export async function updateInbox(
  db: Db,
  senderId: string,
  id: string,
  changes: { displayName?: string | undefined; type?: InboxType | undefined },
): Promise<Inbox | null> {
  const [written] = await db.write([
    {
      // Read later it may be as another request did.
      sql: `UPDATE inboxes SET display_name = COALESCE(?, display_name), type = COALESCE(?, type)
            WHERE sender_id = ? AND id = ? AND ${STANDS} RETURNING ${COLUMNS}`,
      args: [changes.displayName ?? null, changes.type ?? null, senderId, id],
    },
  ]);
  const row = firstReturned<Row>(written);
  return row === null ? null : inboxOf(row);
}

/** The statement that counts a mail received, for the write that stores it. */
export function countReceived(senderId: string, id: string): Statement {
  return rowsStatement(COUNT_RECEIVED, [senderId, id]);
}

const COUNT_RECEIVED = movableText(
  "inboxes",
  "UPDATE inboxes SET received_count = received_count + 1 WHERE sender_id = ? AND id = ?",
);

/**
 * The statement's value for an inbox that a row names; NULL, which no such row takes, for one that was deleted meanwhile.
 * @param parameter e.g. `?3`
 */
export function standingInbox(parameter: string): string {
  return `(SELECT id FROM inboxes WHERE id = ${parameter} AND ${STANDS})`;
}

/** Holds while the inbox has not been deleted, for a message that names it and moves no thread. */
export function standingInboxGuard(id: string): Guard {
  // What deletes it is no statement that is moved.
  return { sql: `EXISTS ${standingInbox("?")}`, args: [id], apart: true };
}

/** Whether a write that stores a message was refused since its inbox was deleted meanwhile. */
export function isInboxGone(error: unknown): boolean {
  return error instanceof ConstraintError && error.notNull === "threads.inbox_id";
}
