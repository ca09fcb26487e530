import type { Db } from "../engine/client.ts";

/** A recipient that waits for a worker. */
export interface DueRecipient extends DuePosition {
  senderId: string;
  domain: string;
  bulk: boolean;
  /** Id of the From domain if that has its own routes. */
  routedBy: string | null;
  /** Tries so far. */
  attempts: number;
  /** The outcome of its last try, or why it waits without one; null: neither. */
  reason: string | null;
}

/** A place in the order of due recipients: longest due first. */
export interface DuePosition {
  dueAt: number;
  messageId: string;
  ord: number;
}

/** The due recipients of a project's bulk mail, or of the rest of its mail. */
export interface DueStream {
  senderId: string;
  bulk: boolean;
}

/** The position before all due recipients. */
export const FIRST_DUE: DuePosition = { dueAt: -1, messageId: "", ord: -1 };

/**
 * Rows come as one JSON column, because the sweep reads thousands each time and the client reads rows several times slower
 * than their JSON. SQLite aggregates the rows of an ordered subquery in their order (the query flattener's rule 16).
 */
const AS_JSON = `json_group_array(json_object('messageId', message_id, 'ord', ord, 'senderId', sender_id, 'domain', domain,
  'bulk', json(iif(bulk, 'true', 'false')), 'routedBy', routed_by, 'dueAt', due_at, 'attempts', attempts, 'reason', reason))`;
const COLUMNS = "message_id, ord, sender_id, domain, bulk, routed_by, due_at, attempts, reason";

/** Returns the recipients that are due and unclaimed, longest due first, after a position. */
export async function dueRecipients(
  db: Db,
  now: number,
  after: DuePosition | null,
  limit: number,
): Promise<DueRecipient[]> {
  const { dueAt, messageId, ord } = after ?? FIRST_DUE;
  const found = await db.first<{ due: string }>(
    `SELECT ${AS_JSON} AS due FROM (SELECT ${COLUMNS} FROM recipients INDEXED BY recipients_due
        WHERE due_at <= ? AND status <> 'accepted' AND (due_at, message_id, ord) > (?, ?, ?)
        ORDER BY due_at, message_id, ord LIMIT ?)`,
    [now, dueAt, messageId, ord, limit],
  );
  return found === null ? [] : JSON.parse(found.due);
}

const WAITS = "due_at IS NOT NULL AND status <> 'accepted'";

/**
 * Returns the projects with waiting recipients, by id after a given one. Each is found by one search of the index, however
 * many recipients it has.
 */
export async function waitingProjects(db: Db, after: string, limit: number): Promise<string[]> {
  const next = (id: string) =>
    `(SELECT MIN(sender_id) FROM recipients INDEXED BY recipients_turns WHERE sender_id > ${id} AND ${WAITS})`;
  const rows = await db.all<{ id: string }>(
    `WITH RECURSIVE p (id) AS (SELECT ${next("?")} UNION ALL SELECT ${next("p.id")} FROM p WHERE p.id IS NOT NULL)
      SELECT id FROM p WHERE id IS NOT NULL LIMIT ?`,
    [after, limit],
  );
  return rows.map(({ id }) => id);
}

const OF_STREAM = `SELECT ${COLUMNS} FROM recipients INDEXED BY recipients_turns
  WHERE sender_id = json_extract(stream.value, '$.senderId') AND bulk = json_extract(stream.value, '$.bulk')
    AND due_at <= ? AND status <> 'accepted' AND (due_at, message_id, ord) > (json_extract(stream.value, '$.dueAt'),
      json_extract(stream.value, '$.messageId'), json_extract(stream.value, '$.ord'))
  ORDER BY due_at, message_id, ord LIMIT ?`;

/** Returns at most so many due recipients of each stream after its position, in the order of the streams. */
export async function dueOfStreams(
  db: Db,
  now: number,
  streams: readonly (DueStream & DuePosition)[],
  limitEach: number,
): Promise<DueRecipient[][]> {
  const rows = await db.all<{ due: string }>(
    `SELECT (SELECT ${AS_JSON} FROM (${OF_STREAM})) AS due FROM json_each(?) AS stream ORDER BY stream.key`,
    [now, limitEach, JSON.stringify(streams)],
  );
  return rows.map(({ due }) => JSON.parse(due));
}
