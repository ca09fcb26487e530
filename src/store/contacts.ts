import { idCeiling } from "../core/ids.ts";
import { type Db, firstReturned, type Statement, type Value } from "./engine/client.ts";
import { firstWanted, ownedRows, type Scanned, scanInSteps } from "./search/steps.ts";
import { type Condition, containsText } from "./search/substring.ts";

/** A recipient that a project stores. Times in milliseconds. */
export interface Contact {
  id: string;
  senderId: string;
  /** Domain in A-labels, the local part as given. */
  email: string;
  /** What the contact is known by: the address all lower case. */
  emailKey: string;
  firstName: string | null;
  lastName: string | null;
  subscribed: boolean;
  /** null while subscribed. */
  unsubscribedAt: number | null;
  metadata: Record<string, unknown>;
  createdAt: number;
  updatedAt: number;
}

interface Row {
  id: string;
  sender_id: string;
  email: string;
  email_key: string;
  first_name: string | null;
  last_name: string | null;
  subscribed: number;
  unsubscribed_at: number | null;
  metadata: string;
  created_at: number;
  updated_at: number;
}

const COLUMNS = `id, sender_id, email, email_key, first_name, last_name, subscribed, unsubscribed_at, metadata,
  created_at, updated_at`;

function contactOf(row: Row): Contact {
  const metadata: Record<string, unknown> = JSON.parse(row.metadata);
  return {
    id: row.id,
    senderId: row.sender_id,
    email: row.email,
    emailKey: row.email_key,
    firstName: row.first_name,
    lastName: row.last_name,
    subscribed: row.subscribed === 1,
    unsubscribedAt: row.unsubscribed_at,
    metadata,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
  };
}

function insertArgs(contact: Contact): Value[] {
  return [
    contact.id,
    contact.senderId,
    contact.email,
    contact.emailKey,
    contact.firstName,
    contact.lastName,
    Number(contact.subscribed),
    contact.unsubscribedAt,
    JSON.stringify(contact.metadata),
    contact.createdAt,
    contact.updatedAt,
  ];
}

/** The statement that makes a contact. A taken address breaks UNIQUE on `contacts.sender_id, contacts.email_key`. */
export function insertContact(contact: Contact): Statement {
  return {
    sql: `INSERT INTO contacts (${COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    args: insertArgs(contact),
  };
}

/** The project's contact of that id; null where there is none. */
export async function getContact(db: Db, senderId: string, id: string): Promise<Contact | null> {
  const row = await db.first<Row>(`SELECT ${COLUMNS} FROM contacts WHERE sender_id = ? AND id = ?`, [
    senderId,
    id,
  ]);
  return row === null ? null : contactOf(row);
}

/** What a list may be narrowed by. `q` is a case-insensitive substring of address, first or last name. */
export interface ContactFilter {
  subscribed?: boolean | undefined;
  q?: string | undefined;
}

/** The project's contacts that pass the filter, newest first, behind the id `after`, at most `take`. */
export async function listContacts(
  db: Db,
  senderId: string,
  { subscribed, q }: ContactFilter,
  after: string | null,
  take: number,
): Promise<Scanned<Contact>> {
  const where: Condition[] = [];
  if (subscribed !== undefined) where.push({ sql: "subscribed = ?", args: [Number(subscribed)] });
  const text = q === undefined ? undefined : containsText(["email", "first_name", "last_name"], q);
  const owner = { sql: "sender_id = ?", args: [senderId] };
  const list = ownedRows<Row>(db, { from: "contacts", columns: COLUMNS, owner, where, text });
  const start = after ?? idCeiling("con");
  const { rows, stoppedAt } = await (where.length === 0 && text === undefined ? firstWanted : scanInSteps)(
    list,
    start,
    take,
  );
  return { rows: rows.map(contactOf), stoppedAt };
}

/** What of a contact may be changed; null clears a name. */
export interface ContactChanges {
  firstName?: string | null | undefined;
  lastName?: string | null | undefined;
  metadata?: Record<string, unknown> | undefined;
}

/** Sets what is given and leaves the rest. Returns the contact after it; null where there is none. */
export async function updateContact(
  db: Db,
  senderId: string,
  id: string,
  changes: ContactChanges,
  now: number,
): Promise<Contact | null> {
  const { firstName, lastName, metadata } = changes;
  const set: [string, Value][] = [];
  if (firstName !== undefined) set.push(["first_name = ?", firstName]);
  if (lastName !== undefined) set.push(["last_name = ?", lastName]);
  if (metadata !== undefined) set.push(["metadata = ?", JSON.stringify(metadata)]);
  if (set.length === 0) return getContact(db, senderId, id);
  return written(db, {
    sql: `UPDATE contacts SET ${set.map(([column]) => column).join(", ")}, updated_at = ?
      WHERE sender_id = ? AND id = ? RETURNING ${COLUMNS}`,
    args: [...set.map(([, value]) => value), now, senderId, id],
  });
}

/** The contact as the statement, which returns its columns, has left it: read later it may be as another request did. */
async function written(db: Db, statement: Statement): Promise<Contact | null> {
  const [done] = await db.write([statement]);
  const row = firstReturned<Row>(done);
  return row === null ? null : contactOf(row);
}

/**
 * Subscribes or unsubscribes a contact; one that is so already keeps its times. Returns the contact after it; null
 * where there is none.
 */
export async function setSubscribed(
  db: Db,
  senderId: string,
  id: string,
  subscribed: boolean,
  now: number,
): Promise<Contact | null> {
  return written(db, {
    sql: `UPDATE contacts SET subscribed = ?1,
        unsubscribed_at = CASE subscribed WHEN ?1 THEN unsubscribed_at ELSE ?2 END,
        updated_at = CASE subscribed WHEN ?1 THEN updated_at ELSE ?3 END
      WHERE sender_id = ?4 AND id = ?5 RETURNING ${COLUMNS}`,
    args: [Number(subscribed), subscribed ? null : now, now, senderId, id],
  });
}

/** Deletes a contact. Returns false where there is none. */
export async function deleteContact(db: Db, senderId: string, id: string): Promise<boolean> {
  const [written] = await db.write([
    { sql: "DELETE FROM contacts WHERE sender_id = ? AND id = ?", args: [senderId, id] },
  ]);
  return written?.changes === 1;
}

/**
 * The statement that unsubscribes whoever has the contact's address: the contact given is made where there is none,
 * one unsubscribed already keeps its times.
 */
export function unsubscribeAddress(contact: Contact): Statement {
  return {
    sql: `INSERT INTO contacts (${COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
      ON CONFLICT (sender_id, email_key) DO UPDATE SET subscribed = 0, unsubscribed_at = excluded.unsubscribed_at,
        updated_at = excluded.updated_at
      WHERE contacts.subscribed = 1`,
    args: insertArgs({
      ...contact,
      subscribed: false,
      unsubscribedAt: contact.unsubscribedAt ?? contact.updatedAt,
    }),
  };
}
