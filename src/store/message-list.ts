import type { Mailbox } from "../core/addresses.ts";
import { idFloor } from "../core/ids.ts";
import type { MessageStatus } from "../core/states.ts";
import type { Db, Value } from "./client.ts";
import type { Direction } from "./messages.ts";

/** A message as lists show it. */
export interface MessageSummary {
  id: string;
  from: string;
  to: string[];
  subject: string;
  status: MessageStatus;
  direction: Direction;
  createdAt: number;
}

/** What a list may be narrowed by. `q` is a case-insensitive substring of recipient, sender or subject. */
export interface MessageFilter {
  status?: MessageStatus;
  direction?: Direction;
  q?: string;
  /** Sender's address; recipient's address, of any kind. Case does not count. */
  from?: string;
  to?: string;
  tag?: { name: string; value: string };
  /** Created at or after, and before, in milliseconds. */
  after?: number;
  before?: number;
}

interface SummaryRow {
  id: string;
  from_email: string;
  to_list: string;
  subject: string;
  status: MessageStatus;
  direction: Direction;
  created_at: number;
}

/** One page of summaries, newest first: at most `limit` rows with ids below `before`. */
export async function listMessages(
  db: Db,
  senderId: string,
  filter: MessageFilter,
  before: string | null,
  limit: number,
): Promise<MessageSummary[]> {
  const where = ["sender_id = ?"];
  const args: Value[] = [senderId];
  const add = (condition: string, ...values: Value[]) => {
    where.push(condition);
    args.push(...values);
  };
  if (filter.status !== undefined) add("status = ?", filter.status);
  if (filter.direction !== undefined) add("direction = ?", filter.direction);
  if (filter.q !== undefined) {
    const like = `%${filter.q.replace(/[\\%_]/g, "\\$&")}%`;
    add(
      `(from_email LIKE ? ESCAPE '\\' OR subject LIKE ? ESCAPE '\\' OR to_list LIKE ? ESCAPE '\\'
        OR cc_list LIKE ? ESCAPE '\\' OR bcc_list LIKE ? ESCAPE '\\')`,
      like,
      like,
      like,
      like,
      like,
    );
  }
  if (filter.from !== undefined) add("from_email = ? COLLATE NOCASE", filter.from);
  if (filter.to !== undefined)
    add(
      `EXISTS (SELECT 1 FROM json_each(to_list) t WHERE t.value ->> 'email' = ? COLLATE NOCASE
        UNION ALL SELECT 1 FROM json_each(cc_list) t WHERE t.value ->> 'email' = ? COLLATE NOCASE
        UNION ALL SELECT 1 FROM json_each(bcc_list) t WHERE t.value ->> 'email' = ? COLLATE NOCASE)`,
      filter.to,
      filter.to,
      filter.to,
    );
  if (filter.tag !== undefined)
    add(
      "EXISTS (SELECT 1 FROM json_each(tags) t WHERE t.value ->> 'name' = ? AND t.value ->> 'value' = ?)",
      filter.tag.name,
      filter.tag.value,
    );
  // Ids sort by creation time: a range of time is a range of ids.
  if (filter.after !== undefined) add("id >= ?", idFloor("msg", filter.after));
  if (filter.before !== undefined) add("id < ?", idFloor("msg", filter.before));
  if (before !== null) add("id < ?", before);
  const rows = await db.all<SummaryRow>(
    `SELECT id, from_email, to_list, subject, status, direction, created_at
      FROM messages WHERE ${where.join(" AND ")} ORDER BY id DESC LIMIT ?`,
    [...args, limit],
  );
  return rows.map((row) => ({
    id: row.id,
    from: row.from_email,
    to: (JSON.parse(row.to_list) as Mailbox[]).map((mailbox) => mailbox.email),
    subject: row.subject,
    status: row.status,
    direction: row.direction,
    createdAt: row.created_at,
  }));
}
