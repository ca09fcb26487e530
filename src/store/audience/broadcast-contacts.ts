import type { MergedContact } from "../../core/audience/broadcasts.ts";
import type { Condition as Filter } from "../../core/audience/filter.ts";
import type { Db } from "../engine/client.ts";
import { contactPasses } from "./filter-sql.ts";

/** Contacts that one step looks at. Each takes a few microseconds. */
export const SCAN_STEP = 2000;

/** A contact that may get a message of a broadcast. */
export interface BroadcastContact extends MergedContact {
  id: string;
  emailKey: string;
}

/** The next contacts of a broadcast. */
export interface NextContacts {
  contacts: BroadcastContact[];
  /** The contact up to which was looked; null: the last one was reached. */
  upTo: string | null;
}

/** The part of a project's contacts that a broadcast goes to. */
export interface ContactRange {
  senderId: string;
  /** Null: all contacts. */
  filter: Filter | null;
  /** Ids come after this one, and before that. */
  after: string;
  below: string;
}

/** Returns at most `take` of the next contacts that pass the filter, in the order of their ids, looking at `SCAN_STEP` of them. */
export async function nextContacts(db: Db, range: ContactRange, take: number): Promise<NextContacts> {
  const { senderId, filter, after, below } = range;
  const passes = contactPasses(filter);
  const next = `FROM contacts WHERE sender_id = ? AND id > ? AND id < ? ORDER BY id LIMIT ${SCAN_STEP}`;
  const place = [senderId, after, below];
  const found = await db.first<{ contacts: string }>(
    `SELECT json_group_array(json_object('id', id, 'email', email, 'emailKey', email_key, 'firstName', first_name,
        'lastName', last_name, 'properties', json(properties))) AS contacts
      FROM (SELECT * FROM (SELECT * ${next}) contacts WHERE ${passes.sql} LIMIT ?)`,
    [...place, ...passes.args, take],
  );
  const contacts: BroadcastContact[] = found === null ? [] : JSON.parse(found.contacts);
  const last = contacts.at(-1);
  if (contacts.length === take && last !== undefined) return { contacts, upTo: last.id };
  const end = await db.first<{ seen: number; last: string | null }>(
    `SELECT COUNT(*) AS seen, MAX(id) AS last FROM (SELECT id ${next})`,
    place,
  );
  return { contacts, upTo: end === null || end.seen < SCAN_STEP ? null : end.last };
}
