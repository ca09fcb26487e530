import type { Db, Statement } from "./engine/client.ts";

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
  const row = await db.first<Row>(`SELECT ${COLUMNS} FROM inboxes WHERE sender_id = ? AND id = ?`, [
    senderId,
    id,
  ]);
  return row === null ? null : inboxOf(row);
}

/** All of the project's inboxes, newest first. @param domainId only those of that domain; null: all */
export async function listInboxes(db: Db, senderId: string, domainId: string | null): Promise<Inbox[]> {
  const rows = await db.all<Row>(
    `SELECT ${COLUMNS} FROM inboxes WHERE sender_id = ? AND (? IS NULL OR domain_id = ?) ORDER BY id DESC`,
    [senderId, domainId, domainId],
  );
  return rows.map(inboxOf);
}

/** Sets what is given and leaves the rest. Returns the inbox after it; null where there is none. */
export async function updateInbox(
  db: Db,
  senderId: string,
  id: string,
  changes: { displayName?: string | undefined; type?: InboxType | undefined },
): Promise<Inbox | null> {
  await db.write([
    {
      sql: `UPDATE inboxes SET display_name = COALESCE(?, display_name), type = COALESCE(?, type)
            WHERE sender_id = ? AND id = ?`,
      args: [changes.displayName ?? null, changes.type ?? null, senderId, id],
    },
  ]);
  return getInbox(db, senderId, id);
}

/** Deletes an inbox that never received mail, and its threads. Returns false where there is none such. */
export async function deleteInbox(db: Db, senderId: string, id: string): Promise<boolean> {
  const [written] = await db.write([
    {
      sql: "DELETE FROM inboxes WHERE sender_id = ? AND id = ? AND received_count = 0",
      args: [senderId, id],
    },
  ]);
  return written?.changes === 1;
}

/** The statement that counts a mail received, for the write that stores it. */
export function countReceived(senderId: string, id: string): Statement {
  return {
    sql: "UPDATE inboxes SET received_count = received_count + 1 WHERE sender_id = ? AND id = ?",
    args: [senderId, id],
  };
}
