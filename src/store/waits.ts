import type { Db, Statement, Value } from "./engine/client.ts";

/**
 * What waits for a delay begins its wait anew where the clock has been put back since: the last thing that happened to it
 * lies in the future, and it would wait for the clock to come there again. Scheduled mail waits for the clock.
 */
interface Waits {
  /** The columns of the index that it is walked by; the first is the time at which a wait ends. */
  order: readonly string[];
  /** What the index's WHERE says, else SQLite would not take it. */
  indexed: string;
  /** Whether a wait is to begin anew, and how; ?1 is now. */
  stale: string;
  set: string;
}

const WAITS = {
  recipients: {
    order: ["due_at", "message_id", "ord"],
    indexed: "due_at IS NOT NULL AND status <> 'accepted'",
    stale: `last_event_at > ?1
      AND NOT EXISTS (SELECT 1 FROM messages WHERE id = recipients.message_id AND scheduled_at > ?1)`,
    set: "due_at = ?1 + MAX(0, due_at - last_event_at), last_event_at = ?1",
  },
  webhook_deliveries: {
    order: ["due_at", "id"],
    indexed: "due_at IS NOT NULL",
    stale: "COALESCE(last_attempt_at, created_at) > ?1",
    set: "due_at = ?1 + MAX(0, due_at - COALESCE(last_attempt_at, created_at))",
  },
} satisfies Record<string, Waits>;

/** Tables of what waits for a delay, which may hold millions of rows. */
export type WaitingTable = keyof typeof WAITS;
export const WAITING_TABLES: readonly WaitingTable[] = ["recipients", "webhook_deliveries"];

/** A row's place in the order of waiting: its values of the table's `order`. */
export type WaitPlace = readonly Value[];

/** Before all that waits beyond a time; ids are never empty. */
function placeOf(now: number, { order }: Waits): WaitPlace {
  return [now, "", -1].slice(0, order.length);
}

/**
 * Of the next `rows` rows behind a place, lets those begin their wait anew that are to. It ends sooner then: a walk on
 * from the place that is given back does not meet them again.
 * @param after null: from what ends behind `now`
 * @param now milliseconds
 * @returns the last of the rows; null where there are no more
 */
export async function restartSome(
  db: Db,
  table: WaitingTable,
  after: WaitPlace | null,
  now: number,
  rows: number,
): Promise<WaitPlace | null> {
  const waits: Waits = WAITS[table];
  const columns = waits.order.join(", ");
  const from = after ?? placeOf(now, waits);
  const behind = `${waits.indexed} AND (${columns}) > (${from.map((_, at) => `?${at + 2}`).join(", ")})`;
  const end = await db.first<Record<string, Value>>(
    `SELECT ${columns} FROM ${table} WHERE ${behind} ORDER BY ${columns} LIMIT 1 OFFSET ${rows - 1}`,
    [now, ...from],
  );
  const last = end === null ? null : waits.order.map((column) => end[column] ?? null);
  const until = last?.map((_, at) => `?${at + 2 + from.length}`).join(", ");
  const stale = `${behind}${until === undefined ? "" : ` AND (${columns}) <= (${until})`} AND ${waits.stale}`;
  const args = [now, ...from, ...(last ?? [])];
  // Mostly there is none, and a read keeps nobody else from writing.
  if ((await db.first(`SELECT 1 FROM ${table} WHERE ${stale} LIMIT 1`, args)) !== null)
    await db.write([{ sql: `UPDATE ${table} SET ${waits.set} WHERE ${stale}`, args }]);
  return last;
}

/** Lets background checks of domains begin their wait anew that are to. */
export function restartChecks(now: number): Statement {
  return {
    sql: `UPDATE domains SET next_check_at = ?1 + MAX(0, next_check_at - COALESCE(checked_at, created_at))
      WHERE next_check_at > ?1 AND COALESCE(checked_at, created_at) > ?1`,
    args: [now],
  };
}
