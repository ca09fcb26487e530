import { idFloor } from "../../core/ids.ts";
import type { Db, Statement, Value } from "../engine/client.ts";
import { HELD_MS } from "./held-by-restore.ts";
import { HELD_FOR, HOLD_MS } from "./held-recipients.ts";

/**
 * A table whose rows wait for a delay. If the clock was set back, their last event is in the future, and they would
 * wait for the clock to get there again. So their wait starts again. Scheduled mail waits for the clock.
 */
interface Waits {
  /** The columns of the index that the table is read by. */
  order: readonly string[];
  /** The position before all rows that may be stale, at a time in milliseconds. */
  from: (now: number) => WaitCursor;
  /** The index's WHERE, without which SQLite would not use the index. */
  indexed: string;
  /** The condition that a wait must start again, and the update for it; ?1 is now. */
  stale: string;
  set: string;
}

const HELD = `reason IN (${Object.values(HELD_FOR)
  .map((reason) => `'${reason}'`)
  .join(", ")})`;
/**
 * The condition that a recipient waits for a worker or is held. Being held or freed is no event, so the last event
 * does not tell when it began. But the longest such wait is known.
 */
const WAITS_FOR_NO_TRY = `(status = 'queued' OR ${HELD})`;
/** The first time at which a recipient may be due: scheduled mail waits for the clock. */
const TURN = "MAX(?1, COALESCE((SELECT scheduled_at FROM messages WHERE id = recipients.message_id), 0))";

const WAITS = {
  recipients: {
    order: ["due_at", "message_id", "ord"],
    from: (now) => [now, "", -1],
    indexed: `due_at IS NOT NULL AND status <> 'accepted' AND due_at < ${HELD_MS}`,
    stale: `(last_event_at > ?1
      OR (${WAITS_FOR_NO_TRY} AND due_at > ${TURN} + iif(${HELD}, ${HOLD_MS}, 0)))`,
    set: `due_at = MIN(due_at, MAX(${TURN}, iif(${WAITS_FOR_NO_TRY}, 0, ?1 + due_at - last_event_at))),
      last_event_at = MIN(last_event_at, ?1)`,
  },
  webhook_deliveries: {
    order: ["due_at", "id"],
    from: (now) => [now, ""],
    indexed: `due_at IS NOT NULL AND due_at < ${HELD_MS}`,
    stale: "COALESCE(last_attempt_at, created_at) > ?1",
    // The delay before a first attempt is counted from `created_at` again.
    set: `due_at = ?1 + MAX(0, due_at - COALESCE(last_attempt_at, created_at)),
      last_attempt_at = MIN(last_attempt_at, ?1), created_at = MIN(created_at, ?1)`,
  },
  // An expiry that a client has set is a time, not a delay.
  suppressions: {
    order: ["id"],
    from: (now) => [idFloor("sup", now)],
    indexed: "TRUE",
    stale: "created_at > ?1 AND reason = 'bounce' AND expires_at IS NOT NULL",
    set: "expires_at = ?1 + MAX(0, expires_at - created_at), created_at = ?1",
  },
  idempotency: {
    order: ["created_at", "scope", "endpoint", "key"],
    from: (now) => [now, "", "", ""],
    indexed: "TRUE",
    stale: "created_at > ?1",
    set: "created_at = ?1",
  },
  mta_sts_policies: {
    order: ["expires_at", "domain"],
    from: (now) => [now, ""],
    indexed: "TRUE",
    stale: "fetched_at > ?1",
    set: "expires_at = ?1 + expires_at - fetched_at, fetched_at = ?1",
  },
  // Unused contents, and objects that may not have been stored, are deleted after a while.
  contents: {
    order: ["created_at", "id"],
    from: (now) => [now, 0],
    indexed: "refs = 0",
    stale: "created_at > ?1",
    set: "created_at = ?1",
  },
  stray_objects: {
    order: ["since", "object"],
    from: (now) => [now, ""],
    indexed: "doomed = 0",
    stale: "since > ?1",
    set: "since = ?1",
  },
} satisfies Record<string, Waits>;

/** Tables with rows that wait for a delay. They may have millions of rows. */
export type WaitingTable = keyof typeof WAITS;
export const WAITING_TABLES: readonly WaitingTable[] = [
  "recipients",
  "webhook_deliveries",
  "suppressions",
  "idempotency",
  "mta_sts_policies",
  "contents",
  "stray_objects",
];

/** A position in a table: a row's values of the table's `order`. */
export type WaitCursor = readonly Value[];

/**
 * Restarts the stale waits among the next `rows` rows after a position. A restarted wait ends sooner, so the next call
 * does not meet it again.
 * @param after null: from the beginning
 * @param now milliseconds
 * @returns the position of the last of the rows; null if there are no more
 */
export async function restartWaits(
  db: Db,
  table: WaitingTable,
  after: WaitCursor | null,
  now: number,
  rows: number,
): Promise<WaitCursor | null> {
  const waits: Waits = WAITS[table];
  const columns = waits.order.join(", ");
  const from = after ?? waits.from(now);
  const later = `${waits.indexed} AND (${columns}) > (${from.map((_, at) => `?${at + 2}`).join(", ")})`;
  const end = await db.first<Record<string, Value>>(
    `SELECT ${columns} FROM ${table} WHERE ${later} ORDER BY ${columns} LIMIT 1 OFFSET ${rows - 1}`,
    [now, ...from],
  );
  const last = end === null ? null : waits.order.map((column) => end[column] ?? null);
  const until = last?.map((_, at) => `?${at + 2 + from.length}`).join(", ");
  const stale = `${later}${until === undefined ? "" : ` AND (${columns}) <= (${until})`} AND ${waits.stale}`;
  const args = [now, ...from, ...(last ?? [])];
  // Usually there is none, and a read does not block other writers.
  if ((await db.first(`SELECT 1 FROM ${table} WHERE ${stale} LIMIT 1`, args)) !== null)
    await db.write([{ sql: `UPDATE ${table} SET ${waits.set} WHERE ${stale}`, args }]);
  return last;
}

/**
 * The time at which a domain's next check was set: by a check, or when the new DKIM key was made whose record is
 * awaited.
 */
const ASKED_AT = `MAX(COALESCE(checked_at, created_at),
  COALESCE((SELECT created_at FROM dkim_keys WHERE domain_id = domains.id AND status = 'pending'), 0))`;

/**
 * Returns the statements that restart the waits of configuration, which has few rows. These are checks of domains,
 * failures of domains and endpoints, the grace of a secret, and retired keys. An API key that was used while the clock
 * was ahead counts as used now.
 * @param retiredKeyMs how long a retired key stays published, milliseconds
 */
export function restartConfigured(now: number, retiredKeyMs: number): Statement[] {
  return [
    {
      sql: `UPDATE domains SET next_check_at = ?1 + MAX(0, next_check_at - ${ASKED_AT})
        WHERE next_check_at > ?1 AND ${ASKED_AT} > ?1`,
      args: [now],
    },
    { sql: "UPDATE domains SET failing_since = ?1 WHERE failing_since > ?1", args: [now] },
    { sql: "UPDATE webhooks SET failing_since = ?1 WHERE failing_since > ?1", args: [now] },
    {
      sql: `UPDATE webhooks SET previous_secret_until = ?1 + MAX(0, previous_secret_until - updated_at), updated_at = ?1
        WHERE previous_secret_until > ?1 AND updated_at > ?1`,
      args: [now],
    },
    { sql: "UPDATE api_keys SET last_used_at = ?1 WHERE last_used_at > ?1", args: [now] },
    // The time at which it was retired is not stored.
    { sql: "UPDATE dkim_keys SET retire_at = ?1 WHERE retire_at > ?1", args: [now + retiredKeyMs] },
  ];
}
