import type { Accept } from "../../core/messages/listed-sender.ts";
import type { Db, Guard, Statement } from "../engine/client.ts";
import { plain, table } from "../engine/columns.ts";
import { reorderableText, rowsStatement } from "../sql/rows-text.ts";
import { readInSteps } from "../matching/steps.ts";

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
  accept: Accept;
  /** Text that the dashboard puts below a reply. */
  signature: string;
  createdAt: number;
}

/** The condition that an inbox is not being deleted (`inbox-removal`). A deleted one has its id as its address. */
export const INBOX_EXISTS = "address <> id";

const INBOXES = table<Inbox>("inboxes", {
  id: plain("id"),
  senderId: plain("sender_id"),
  domainId: plain("domain_id"),
  address: plain("address"),
  displayName: plain("display_name"),
  type: plain("type"),
  accept: plain("accept"),
  signature: plain("signature"),
  createdAt: plain("created_at"),
});

/**
 * Returns the statement that makes an inbox on a domain of the project, which the caller has looked up. If the address
 * is taken, it breaks UNIQUE on `inboxes.…`; if the domain was deleted since, it breaks the foreign key.
 */
export function insertInbox(inbox: Inbox): Statement {
  return INBOXES.insert(inbox);
}

/** Returns the project's inbox; null if it has none with that id. */
export function getInbox(db: Db, senderId: string, id: string): Promise<Inbox | null> {
  return INBOXES.first(db, `WHERE sender_id = ? AND id = ? AND ${INBOX_EXISTS}`, [senderId, id]);
}

/** Returns the addresses of the project's inboxes by id. */
export async function inboxAddresses(
  db: Db,
  senderId: string,
  ids: readonly string[],
): Promise<Map<string, string>> {
  const named = `WHERE sender_id = ? AND id IN (SELECT value FROM json_each(?)) AND ${INBOX_EXISTS}`;
  const inboxes = await INBOXES.all(db, named, [senderId, JSON.stringify(ids)]);
  return new Map(inboxes.map(({ id, address }) => [id, address]));
}

/** Inboxes read at a time, in about five milliseconds. Other requests are served in between. */
export const INBOXES_AT_A_TIME = 1000;

/**
 * Returns all of the project's inboxes, newest first.
 * @param domainId only those of that domain; null: all
 */
export async function listInboxes(db: Db, senderId: string, domainId: string | null): Promise<Inbox[]> {
  // The inboxes of a domain are read by address, so that those of other domains are not read.
  const [of, walked] =
    domainId === null ? (["sender_id = ?1", "id"] as const) : (["domain_id = ?4", "address"] as const);
  const found = await readInSteps<Inbox>(INBOXES_AT_A_TIME, Number.POSITIVE_INFINITY, (last, limit) =>
    INBOXES.all(
      db,
      `WHERE ${of} AND ${walked} > ?2 AND +sender_id = ?1 AND ${INBOX_EXISTS} ORDER BY ${walked} LIMIT ?3`,
      [senderId, last?.[walked] ?? "", limit, ...(domainId === null ? [] : [domainId])],
    ),
  );
  return found.sort((a, b) => (a.id < b.id ? 1 : -1));
}

/** Changes of an inbox. A field that is left out stays. */
export interface InboxChanges {
  displayName?: string | undefined;
  type?: InboxType | undefined;
  accept?: Accept | undefined;
  signature?: string | undefined;
}

/** Changes the given fields. Returns the inbox afterwards; null if there is none. */
export function updateInbox(
  db: Db,
  senderId: string,
  id: string,
  { displayName, type, accept, signature }: InboxChanges,
): Promise<Inbox | null> {
  return INBOXES.update(
    db,
    `SET display_name = COALESCE(?, display_name), type = COALESCE(?, type),
      accept = COALESCE(?, accept), signature = COALESCE(?, signature)
      WHERE sender_id = ? AND id = ? AND ${INBOX_EXISTS}`,
    [displayName ?? null, type ?? null, accept ?? null, signature ?? null, senderId, id],
  );
}

/** Returns the statement that counts a received message, for the write that stores it. */
export function countReceived(senderId: string, id: string): Statement {
  return rowsStatement(COUNT_RECEIVED, [senderId, id]);
}

const COUNT_RECEIVED = reorderableText(
  "inboxes",
  "UPDATE inboxes SET received_count = received_count + 1 WHERE sender_id = ? AND id = ?",
);

/**
 * Returns SQL for the id of an inbox that a row names. It is NULL, which no such row takes, if the inbox was deleted.
 */
export function standingInbox(parameter: string): string {
  return `(SELECT id FROM inboxes WHERE id = ${parameter} AND ${INBOX_EXISTS})`;
}

/** Holds while the inbox has not been deleted. It is for messages that name the inbox and have no thread. */
export function standingInboxGuard(id: string): Guard {
  // No statement that may be reordered deletes an inbox.
  return { sql: `EXISTS ${standingInbox("?")}`, args: [id], orderIndependent: true };
}
