import { idBytes } from "../core/ids.ts";
import type { Db, Statement } from "./client.ts";
import { type Searchable, termsOf, termsOfSubject } from "./search-terms.ts";

/**
 * How the index keeps the order of ids. The posting lists hold integers and grow cheaply at their end only, while ids
 * are 128 bits and come slightly out of order: one is made before the wait for its commit. So a message gets the place
 * after the last one, but never one before the time in its id, nor more than LAG_MS after it. Thus
 *   firstPlace(time) <= position <= lastPlace(time),
 * and a walk down the positions that has come below a time has seen every id of that time and later.
 */
const PLACES_PER_MS = 16;
/** What came out of order by more takes a place among its own time, which costs the index one more piece. */
const LAG_MS = 250;

/** The first place of a time (milliseconds). */
export function firstPlace(time: number): number {
  return time * PLACES_PER_MS;
}

/** The last place that a message of that time may have. */
export function lastPlace(time: number): number {
  return (time + LAG_MS) * PLACES_PER_MS;
}

/** The time in a message's id (milliseconds): the first 48 bits, RFC 9562 §5.7. Null where it is no such id. */
export function timeOfId(id: string): number | null {
  const bytes = idBytes("msg", id);
  return bytes === null ? null : Buffer.from(bytes).readUIntBE(0, 6);
}

/** The place of a new message, as SQL; its parameters are those of `placeOf`. */
export const PLACE = `max(?, 1 + COALESCE((SELECT max(position) FROM messages WHERE position < ?), 0))`;

/** The parameters of `PLACE`. */
export function placeOf(id: string, createdAt: number): [number, number] {
  const time = timeOfId(id) ?? createdAt;
  return [firstPlace(time), lastPlace(time)];
}

/** Enters a message into the index; it follows the message's own insert in the same write. */
export function indexMessage(id: string, message: Searchable): Statement {
  return {
    sql: "INSERT INTO message_terms (rowid, terms) VALUES ((SELECT position FROM messages WHERE id = ?), ?)",
    args: [id, termsOf(message)],
  };
}

/** Enters the subject that a message's template became, where it is not rendered yet. That of before stays too. */
export function indexRendered(senderId: string, id: string, subject: string): Statement {
  return {
    sql: `INSERT INTO message_terms (rowid, terms) SELECT position, ? FROM messages
      WHERE id = ? AND position IS NOT NULL
        AND EXISTS (SELECT 1 FROM message_content WHERE message_id = ? AND rendered = 0)`,
    args: [termsOfSubject(senderId, subject), id, id],
  };
}

/** Messages entered in one write. */
const OLDER_PER_WRITE = 250;

interface OlderRow {
  id: string;
  sender_id: string;
  direction: "inbound" | "outbound";
  from_email: string;
  from_name: string | null;
  to_list: string;
  cc_list: string;
  bcc_list: string;
  subject: string;
  tags: string;
  created_at: number;
}

/** Enters the messages that were stored before there was an index. */
export async function indexOlderMessages(db: Db): Promise<void> {
  for (;;) {
    const rows = await db.all<OlderRow>(
      `SELECT id, sender_id, direction, from_email, from_name, to_list, cc_list, bcc_list, subject, tags, created_at
        FROM messages WHERE position IS NULL ORDER BY id LIMIT ?`,
      [OLDER_PER_WRITE],
    );
    if (rows.length === 0) return;
    await db.write(rows.flatMap(indexOlder));
  }
}

function indexOlder(row: OlderRow): Statement[] {
  const place = {
    sql: `UPDATE messages SET position = ${PLACE} WHERE id = ? AND position IS NULL`,
    args: [...placeOf(row.id, row.created_at), row.id],
  };
  const message: Searchable = {
    senderId: row.sender_id,
    direction: row.direction,
    from: row.from_name === null ? { email: row.from_email } : { email: row.from_email, name: row.from_name },
    to: JSON.parse(row.to_list),
    cc: JSON.parse(row.cc_list),
    bcc: JSON.parse(row.bcc_list),
    subject: row.subject,
    tags: JSON.parse(row.tags),
  };
  return [place, indexMessage(row.id, message)];
}
