import { type Consent, MAX_CONSENTS } from "../../core/audience/consent.ts";
import {
  type GivenValues,
  MAX_PROPERTIES_BYTES,
  type PropertyValue,
} from "../../core/audience/properties.ts";
import type { Choice, Choices } from "../../core/audience/topics.ts";
import { idCeiling } from "../../core/ids.ts";
import { changesRow, type Db, type Guard, type Statement } from "../engine/client.ts";
import { flag, json, plain, type Row, table } from "../engine/columns.ts";
import { requireGuard } from "../engine/guards.ts";
import { type Place, pageOrder } from "../engine/place.ts";
import { NO_LIMIT, changeResult, type ChangeLimit } from "./holdings.ts";
import { firstWanted, ownedRows, type Scanned, scanInSteps } from "../matching/steps.ts";
import { type Condition, containsTextOrDomain } from "../matching/substring.ts";

/** A recipient that a project stores. Times in milliseconds. */
export interface Contact {
  id: string;
  senderId: string;
  /** Domain in A-labels, the local part as given. */
  email: string;
  /** The identity of the contact: the address all lower case. */
  emailKey: string;
  firstName: string | null;
  lastName: string | null;
  subscribed: boolean;
  /** null while subscribed. */
  unsubscribedAt: number | null;
  metadata: Record<string, unknown>;
  /** By the name of their property. */
  properties: Readonly<Record<string, PropertyValue>>;
  /** The choices of the person, by topic. */
  topics: Choices;
  /** How the person joined and left, oldest first. */
  consent: readonly Consent[];
  /** null: no message has left to the contact. */
  lastSentAt: number | null;
  /** The last open, and the last click, by a person. null: none. */
  lastOpenedAt: number | null;
  lastClickedAt: number | null;
  createdAt: number;
  updatedAt: number;
}

/** The times of a contact that has got no message. */
export const NOT_ENGAGED = { lastSentAt: null, lastOpenedAt: null, lastClickedAt: null } as const;

const CONTACTS = table<Contact>("contacts", {
  id: plain("id"),
  senderId: plain("sender_id"),
  email: plain("email"),
  emailKey: plain("email_key"),
  firstName: plain("first_name"),
  lastName: plain("last_name"),
  subscribed: flag("subscribed"),
  unsubscribedAt: plain("unsubscribed_at"),
  metadata: json("metadata"),
  properties: json("properties"),
  topics: json("topics"),
  consent: json("consent"),
  lastSentAt: plain("last_sent_at"),
  lastOpenedAt: plain("last_opened_at"),
  lastClickedAt: plain("last_clicked_at"),
  createdAt: plain("created_at"),
  updatedAt: plain("updated_at"),
});

/**
 * Returns the statement that makes a contact. If the address is taken, it breaks UNIQUE on `contacts.sender_id,
 * contacts.email_key`.
 */
export function insertContact(contact: Contact): Statement {
  return CONTACTS.insert(contact);
}

/** Returns the project's contact; null if it has none with that id. */
export function getContact(db: Db, senderId: string, id: string): Promise<Contact | null> {
  return CONTACTS.first(db, "WHERE sender_id = ? AND id = ?", [senderId, id]);
}

/** Returns the project's contact with that address key; null if there is none. */
export function findContact(db: Db, senderId: string, emailKey: string): Promise<Contact | null> {
  return CONTACTS.first(db, "WHERE sender_id = ? AND email_key = ?", [senderId, emailKey]);
}

/** Returns the project's contacts with those address keys, by key. */
export async function findContacts(
  db: Db,
  senderId: string,
  emailKeys: readonly string[],
): Promise<Map<string, Contact>> {
  const where = "WHERE sender_id = ? AND email_key IN (SELECT value FROM json_each(?))";
  const contacts = await CONTACTS.all(db, where, [senderId, JSON.stringify(emailKeys)]);
  return new Map(contacts.map((contact) => [contact.emailKey, contact]));
}

/** Returns the statement that undoes its write if one of the contacts has changed or gone since it was read. */
export function requireUnchanged(contacts: readonly Contact[]): Statement {
  const read = contacts.map(({ id, updatedAt }) => [id, updatedAt]);
  return requireGuard("changed_since_read", {
    sql: `NOT EXISTS (SELECT 1 FROM json_each(?) j LEFT JOIN contacts c ON c.id = j.value ->> 0
      WHERE c.updated_at IS NOT j.value ->> 1)`,
    args: [JSON.stringify(read)],
  });
}

/** Returns the statement that changes what a client may change of a contact to the given values. */
export function replaceContact(contact: Contact): Statement {
  const { id, senderId, firstName, lastName, metadata, properties, topics, consent } = contact;
  const { subscribed, unsubscribedAt, updatedAt } = contact;
  const { set, values } = CONTACTS.assignments({
    firstName,
    lastName,
    metadata,
    properties,
    topics,
    subscribed,
    unsubscribedAt,
    consent,
    updatedAt,
  });
  return {
    sql: `UPDATE contacts SET ${set.join(", ")} WHERE sender_id = ? AND id = ?`,
    args: [...values, senderId, id],
  };
}

/** A filter of contacts. `q` is a case-insensitive substring of address, first name or last name. */
export interface ContactFilter {
  subscribed?: boolean | undefined;
  q?: string | undefined;
  /** SQL of a filter of segments over a row of `contacts`. */
  passes?: Condition | undefined;
}

/** Returns at most `take` of the project's contacts that pass the filter, newest first, at a place. */
export async function listContacts(
  db: Db,
  senderId: string,
  { subscribed, q, passes }: ContactFilter,
  place: Place,
  take: number,
): Promise<Scanned<Contact>> {
  const where: Condition[] = [];
  if (subscribed !== undefined) where.push({ sql: "subscribed = ?", args: [Number(subscribed)] });
  if (passes !== undefined) where.push(passes);
  const text =
    q === undefined ? undefined : containsTextOrDomain(["email", "first_name", "last_name"], ["email"], q);
  const owner = { sql: "sender_id = ?", args: [senderId] };
  const order = pageOrder(place, idCeiling("con"));
  const list = ownedRows<Row>(db, { from: "contacts", columns: CONTACTS.columns, owner, where, text, order });
  const { rows, stoppedAt } = await (where.length === 0 && text === undefined ? firstWanted : scanInSteps)(
    list,
    order.from,
    take,
  );
  return { rows: order.newestFirst(rows.map(CONTACTS.read)), stoppedAt };
}

/**
 * Returns SQL of a contact's trail with further entries, whose list is given as JSON. Of a long trail, the first entry and the
 * last ones stay.
 * @param among SQL of the condition that an entry `e.value` is added
 */
function longerTrail(entries: string, among = "TRUE"): string {
  return `(SELECT json_group_array(json(value)) FROM (SELECT value FROM (
      SELECT value, ROW_NUMBER() OVER (ORDER BY part, place) AS nth, COUNT(*) OVER () AS length FROM (
        SELECT value, 0 AS part, key AS place FROM json_each(contacts.consent)
        UNION ALL SELECT e.value, 1, e.key FROM json_each(${entries}) e WHERE ${among}))
    WHERE nth = 1 OR nth > length - ${MAX_CONSENTS - 1} ORDER BY nth))`;
}

/** SQL of whether an entry `e.value` differs from what the contact has chosen before. */
const TURNS = `CASE WHEN e.value ->> 'topicId' IS NULL THEN contacts.subscribed
  ELSE contacts.topics ->> ('$."' || (e.value ->> 'topicId') || '"') END IS NOT e.value ->> 'subscribed'`;

/** SQL of the properties after a change, whose JSON is given twice; NULL, which the column refuses, if they are too large. */
const CHANGED_PROPERTIES = `CASE WHEN octet_length(json_patch(properties, ?)) <= ${MAX_PROPERTIES_BYTES}
  THEN json_patch(properties, ?) END`;

/** Changes to a contact. null clears a name, and removes the value of a property. */
export interface ContactChanges {
  firstName?: string | null | undefined;
  lastName?: string | null | undefined;
  metadata?: Record<string, unknown> | undefined;
  properties?: GivenValues | undefined;
  subscribed?: boolean | undefined;
  topics?: Choices | undefined;
  /** Entries of the trail for what changes; `isTold`: also for what does not. */
  consent?: { entries: readonly Consent[]; isTold: boolean } | undefined;
}

/**
 * Changes the given fields. The guard `over_properties` undoes the write if the properties get too large. Returns the contact
 * afterwards; null if there is none.
 */
export async function updateContact(
  db: Db,
  senderId: string,
  id: string,
  changes: ContactChanges,
  now: number,
  growing: ChangeLimit = NO_LIMIT,
): Promise<Contact | null> {
  const { firstName, lastName, metadata, properties, topics, subscribed, consent } = changes;
  const { set, values } = CONTACTS.assignments({ firstName, lastName, metadata, subscribed });
  if (properties !== undefined) {
    set.push(`properties = ${CHANGED_PROPERTIES}`);
    values.push(JSON.stringify(properties), JSON.stringify(properties));
  }
  if (topics !== undefined) {
    set.push("topics = json_patch(topics, ?)");
    values.push(JSON.stringify(topics));
  }
  if (consent !== undefined && consent.entries.length > 0) {
    set.push(`consent = ${longerTrail("?", consent.isTold ? "TRUE" : TURNS)}`);
    values.push(JSON.stringify(consent.entries));
  }
  if (subscribed !== undefined) {
    set.push("unsubscribed_at = CASE subscribed WHEN ? THEN unsubscribed_at ELSE ? END");
    values.push(Number(subscribed), subscribed ? null : now);
  }
  if (set.length === 0) return getContact(db, senderId, id);
  const change = {
    sql: `UPDATE contacts SET ${set.join(", ")}, updated_at = ?
      WHERE sender_id = ? AND id = ? RETURNING ${CONTACTS.columns}`,
    args: [...values, now, senderId, id],
  };
  return CONTACTS.returned(changeResult(await db.write(growing(change))));
}

/**
 * Subscribes or unsubscribes a contact, as the entry of its trail says. If nothing changes, it keeps its times and its trail.
 * Returns the contact afterwards; null if there is none.
 */
export function setSubscribed(db: Db, senderId: string, id: string, entry: Consent): Promise<Contact | null> {
  const { subscribed, at } = entry;
  return CONTACTS.update(
    db,
    `SET subscribed = ?1,
        unsubscribed_at = CASE subscribed WHEN ?1 THEN unsubscribed_at ELSE ?2 END,
        updated_at = CASE subscribed WHEN ?1 THEN updated_at ELSE ?3 END,
        consent = ${longerTrail("json_array(json(?4))", TURNS)}
      WHERE sender_id = ?5 AND id = ?6`,
    [Number(subscribed), subscribed ? null : at, at, JSON.stringify(entry), senderId, id],
  );
}

/** Deletes a contact. Returns false if there is none. */
export function deleteContact(db: Db, senderId: string, id: string): Promise<boolean> {
  return changesRow(db, "DELETE FROM contacts WHERE sender_id = ? AND id = ?", [senderId, id]);
}

/** Holds unless the project has the address as an unsubscribed contact. */
export function notUnsubscribedGuard(senderId: string, emailKey: string): Guard {
  return {
    sql: "NOT EXISTS (SELECT 1 FROM contacts WHERE sender_id = ? AND email_key = ? AND subscribed = 0)",
    args: [senderId, emailKey],
  };
}

/**
 * Returns the statement that unsubscribes an address. If the project has no contact with the address, the given one is
 * stored; else its trail is added. A contact that is unsubscribed already keeps its times and its trail.
 */
export function unsubscribeAddress(contact: Contact): Statement {
  const { sql, args } = CONTACTS.insert({
    ...contact,
    subscribed: false,
    unsubscribedAt: contact.unsubscribedAt ?? contact.updatedAt,
  });
  return {
    sql: `${sql}
      ON CONFLICT (sender_id, email_key) DO UPDATE SET subscribed = 0, unsubscribed_at = excluded.unsubscribed_at,
        updated_at = excluded.updated_at, consent = ${longerTrail("excluded.consent")}
      WHERE contacts.subscribed = 1`,
    args,
  };
}

/**
 * Returns the statement that stores what an address has chosen about a topic. If the project has no contact with the address,
 * the given one is stored; else its trail is added. A contact that has chosen the same keeps its times and its trail.
 */
export function setChoice(contact: Contact, topicId: string, choice: Choice): Statement {
  const { sql, args } = CONTACTS.insert({ ...contact, topics: { [topicId]: choice } });
  return {
    sql: `${sql}
      ON CONFLICT (sender_id, email_key) DO UPDATE SET topics = json_patch(contacts.topics, excluded.topics),
        updated_at = excluded.updated_at, consent = ${longerTrail("excluded.consent")}
      WHERE contacts.topics ->> ? IS NOT ?`,
    args: [...args, `$."${topicId}"`, choice],
  };
}
