import type { MergedContact } from "../../core/audience/broadcasts.ts";
import type { Places } from "../../core/audience/ab-test.ts";
import type { Condition as Filter } from "../../core/audience/filter.ts";
import { ID_DIGITS } from "../../core/ids.ts";
import type { Db } from "../engine/client.ts";
import type { Condition } from "../matching/substring.ts";
import { contactPasses } from "./filter-sql.ts";

/** Contacts that one step looks at. Each takes a few microseconds. */
export const SCAN_STEP = 2000;

/** A contact that may get a message of a broadcast. */
export interface BroadcastContact extends MergedContact {
  id: string;
  emailKey: string;
  /** Its place among those of `ContactRange.places`. */
  place: number;
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
  /** Null: contacts at all places. */
  places: Places | null;
}

/** Returns the SQL of the place of a row of `contacts`: the last four digits of its id, which are random, mixed. */
function placeSql({ factor, offset, count }: Places): Condition {
  const digits = [-4, -3, -2, -1].map((at) => `(instr('${ID_DIGITS}', substr(id, ${at}, 1)) - 1)`);
  const end = digits.reduce((higher, digit) => `(${higher} * ${ID_DIGITS.length} + ${digit})`);
  return { sql: `(${end} * ? + ?) % ?`, args: [factor, offset, count] };
}

/** Returns at most `take` of the next contacts that pass the filter, in the order of their ids, looking at `SCAN_STEP` of them. */
export async function nextContacts(db: Db, range: ContactRange, take: number): Promise<NextContacts> {
  const { senderId, filter, after, below, places } = range;
  const passes = contactPasses(filter);
  const place = places === null ? { sql: "0", args: [] } : placeSql(places);
  const isThere =
    places === null
      ? passes
      : {
          sql: `place >= ? AND place < ? AND ${passes.sql}`,
          args: [places.from, places.below, ...passes.args],
        };
  const next = `FROM contacts WHERE sender_id = ? AND id > ? AND id < ? ORDER BY id LIMIT ${SCAN_STEP}`;
  const bounds = [senderId, after, below];
  const found = await db.first<{ contacts: string }>(
    `SELECT json_group_array(json_object('id', id, 'email', email, 'emailKey', email_key, 'firstName', first_name,
        'lastName', last_name, 'properties', json(properties), 'place', place)) AS contacts
      FROM (SELECT * FROM (SELECT *, ${place.sql} AS place ${next}) contacts WHERE ${isThere.sql} LIMIT ?)`,
    [...place.args, ...bounds, ...isThere.args, take],
  );
  const contacts: BroadcastContact[] = found === null ? [] : JSON.parse(found.contacts);
  const last = contacts.at(-1);
  if (contacts.length === take && last !== undefined) return { contacts, upTo: last.id };
  const end = await db.first<{ seen: number; last: string | null }>(
    `SELECT COUNT(*) AS seen, MAX(id) AS last FROM (SELECT id ${next})`,
    bounds,
  );
  return { contacts, upTo: end === null || end.seen < SCAN_STEP ? null : end.last };
}
