import { idFloor } from "../core/ids.ts";
import type { Db, Statement, Value } from "./engine/client.ts";
import { HELD_FOR, HOLD_MS } from "./held-recipients.ts";

/**
 * What waits for a delay begins its wait anew where the clock has been put back since: the last thing that happened to it
 * lies in the future, and it would wait for the clock to come there again. Scheduled mail waits for the clock.
 */
interface Waits {
  /** The columns of the index that it is walked by. */
  order: readonly string[];
  /** Before all that may be stale at a time, milliseconds. */
  from: (now: number) => WaitPlace;
  /** What the index's WHERE says, else SQLite would not take it. */
  indexed: string;
  /** Whether a wait is to begin anew, and how; ?1 is now. */
  stale: string;
  set: string;
}

const HELD = `reason IN (${Object.values(HELD_FOR)
  .map((reason) => `'${reason}'`)
  .join(", ")})`;
/**
 * A recipient that waits for its turn, or for what holds it: being put off, or freed, is no event, so the last one does not
 * tell when that was. But how long it waits at most is known.
 */
const WAITS_FOR_NO_TRY = `(status = 'queued' OR ${HELD})`;
/** The first time at which a recipient may be due: scheduled mail waits for the clock. */
const TURN = "MAX(?1, COALESCE((SELECT scheduled_at FROM messages WHERE id = recipients.message_id), 0))";

const WAITS = {
  recipients: {
    order: ["due_at", "message_id", "ord"],
    from: (now) => [now, "", -1],
    indexed: "due_at IS NOT NULL AND status <> 'accepted'",
    stale: `(last_event_at > ?1
      OR (${WAITS_FOR_NO_TRY} AND due_at > ${TURN} + iif(${HELD}, ${HOLD_MS}, 0)))`,
    set: `due_at = MIN(due_at, MAX(${TURN}, iif(${WAITS_FOR_NO_TRY}, 0, ?1 + due_at - last_event_at))),
      last_event_at = MIN(last_event_at, ?1)`,
  },
  webhook_deliveries: {
    order: ["due_at", "id"],
    from: (now) => [now, ""],
    indexed: "due_at IS NOT NULL",
    stale: "COALESCE(last_attempt_at, created_at) > ?1",
    // The delay before a first attempt is counted from `created_at` once more.
    set: `due_at = ?1 + MAX(0, due_at - COALESCE(last_attempt_at, created_at)),
      last_attempt_at = MIN(last_attempt_at, ?1), created_at = MIN(created_at, ?1)`,
  },
  // An end that somebody has set is a time, and no delay.
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
  // Bytes that nobody names, and names of objects that nobody may have put, go when they have been so for a while.
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

/** Tables of what waits for a delay, which may hold millions of rows. */
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

/** A row's place in the order of waiting: its values of the table's `order`. */
export type WaitPlace = readonly Value[];

/**
 * Of the next `rows` rows behind a place, lets those begin their wait anew that are to. It ends sooner then: a walk on
 * from the place that is given back does not meet them again.
 * @param after null: from the beginning
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
  const from = after ?? waits.from(now);
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

/** When it was said when a domain is checked next: by a check, or as the new DKIM key was made whose record is awaited. */
const ASKED_AT = `MAX(COALESCE(checked_at, created_at),
  COALESCE((SELECT created_at FROM dkim_keys WHERE domain_id = domains.id AND status = 'pending'), 0))`;

/**
 * Statements that do the same for what is made by configuration, which is little: background checks of domains, the time that
 * one has failed for, and an endpoint has, the grace of a secret, and keys that stay published behind others. An API key that
 * was used while the clock was ahead counts as used now.
 * @param retiredKeyMs how long such a key stays, milliseconds
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
    // When it began to retire nobody has written down.
    { sql: "UPDATE dkim_keys SET retire_at = ?1 WHERE retire_at > ?1", args: [now + retiredKeyMs] },
  ];
}
