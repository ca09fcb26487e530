import type { EventType } from "../../core/messages/events.ts";
import { idCeiling, idFloor } from "../../core/ids.ts";
import { DAY_MS } from "../../core/time/units.ts";
import type { Db, Guard, Statement } from "../engine/client.ts";
import { type Column, json, mapping, nullableJson, plain, type Row } from "../engine/columns.ts";
import { type PageOrder, type Place, pageOrder } from "../engine/place.ts";
import { timeOfId } from "../search/positions.ts";
import { firstWanted, ownedRows, type Scanned, type ScannedList, scanInSteps } from "../matching/steps.ts";
import { WEBHOOK_EXISTS } from "./webhooks.ts";

/** One entry of a webhook's delivery log. Times are milliseconds. */
export interface LoggedDelivery {
  id: string;
  type: EventType;
  messageId: string | null;
  eventId: string | null;
  status: "pending" | "succeeded" | "failed";
  attempts: number;
  /** When it is tried next; null during an attempt and after the last one. */
  nextAttemptAt: number | null;
  lastAttemptAt: number | null;
  /** HTTP status, first bytes and error of the last attempt. */
  httpStatus: number | null;
  response: string | null;
  error: string | null;
  createdAt: number;
}

const LOG_COLUMNS: { [Field in keyof LoggedDelivery]: Column<LoggedDelivery[Field]> } = {
  id: plain("id"),
  type: plain("type"),
  messageId: plain("message_id"),
  eventId: plain("event_id"),
  status: plain("status"),
  attempts: plain("attempts"),
  nextAttemptAt: plain("due_at"),
  lastAttemptAt: plain("last_attempt_at"),
  httpStatus: plain("last_status"),
  response: plain("last_response"),
  error: plain("last_error"),
  createdAt: plain("created_at"),
};
const LOG = mapping<LoggedDelivery>(LOG_COLUMNS);

/** One attempt at a delivery. `at` in milliseconds. */
export interface AttemptEntry {
  at: number;
  httpStatus: number | null;
  /** First characters of the response. */
  response: string | null;
  error: string | null;
}

/** A delivery with its attempts, oldest first, and its own data if it is a sample. */
export interface DeliveryDetail extends LoggedDelivery {
  attemptLog: AttemptEntry[];
  data: Record<string, unknown> | null;
}

const DETAIL = mapping<DeliveryDetail>({
  ...LOG_COLUMNS,
  attemptLog: json<AttemptEntry[]>("attempt_log"),
  data: nullableJson("data"),
});
const DETAIL_COLUMNS = DETAIL.names
  .map((name) => (name === "attempt_log" ? "COALESCE(attempt_log, '[]') AS attempt_log" : name))
  .join(", ");

/** Returns the delivery of a webhook of the project with all that its log has; null if there is none. */
export async function getDelivery(
  db: Db,
  senderId: string,
  webhookId: string,
  id: string,
): Promise<DeliveryDetail | null> {
  const row = await db.first<Row>(
    `SELECT ${DETAIL_COLUMNS} FROM webhook_deliveries WHERE id = ? AND webhook_id = ? AND sender_id = ?`,
    [id, webhookId, senderId],
  );
  return row === null ? null : DETAIL.read(row);
}

export interface DeliveryFilter {
  status?: LoggedDelivery["status"] | undefined;
  messageId?: string | undefined;
}

/**
 * Returns one page of a webhook's log, newest first: at most `limit` deliveries at a place. If a filter
 * is set, the log is scanned in steps, because filters have no index. A page may then end before it is full.
 */
export async function listDeliveries(
  db: Db,
  senderId: string,
  webhookId: string,
  filter: DeliveryFilter,
  place: Place,
  limit: number,
): Promise<Scanned<LoggedDelivery>> {
  const order = pageOrder(place, idCeiling("dlv"));
  const list = logOf(db, senderId, webhookId, filter, order);
  const narrowed = filter.status !== undefined || filter.messageId !== undefined;
  const scan = narrowed ? scanInSteps : firstWanted;
  const { rows, stoppedAt } = await scan(list, order.from, limit);
  return { rows: order.newestFirst(rows.map(LOG.read)), stoppedAt };
}

/** Time by which a clock may have been set back between a message and a delivery about it. */
const CLOCK_SLACK_MS = DAY_MS;

/**
 * Returns the log as a list to scan. If the filter names a message, the list ends where that message was made: older
 * deliveries are about other messages.
 */
function logOf(
  db: Db,
  senderId: string,
  webhookId: string,
  { status, messageId }: DeliveryFilter,
  order: PageOrder,
): ScannedList<Row, string> {
  const madeAt = messageId === undefined ? null : timeOfId(messageId);
  return ownedRows(db, {
    from: "webhook_deliveries INDEXED BY webhook_deliveries_by_webhook",
    columns: LOG.columns,
    owner: { sql: "webhook_id = ?", args: [webhookId] },
    where: [
      { sql: "sender_id = ?", args: [senderId] },
      ...(status === undefined ? [] : [{ sql: "status = ?", args: [status] }]),
      ...(messageId === undefined ? [] : [{ sql: "message_id = ?", args: [messageId] }]),
    ],
    order,
    ...(madeAt === null ? {} : { floor: idFloor("dlv", Math.max(0, madeAt - CLOCK_SLACK_MS)) }),
  });
}

/** Returns the statement that stores a delivery without an event, which carries its own data. It is due at once. */
export function insertOwnDelivery(
  senderId: string,
  webhookId: string,
  own: { id: string; type: EventType | "notice"; data: Record<string, unknown> },
  now: number,
): Statement {
  return {
    sql: `INSERT INTO webhook_deliveries (id, webhook_id, sender_id, type, data, status, due_at, created_at)
      SELECT ?, id, sender_id, ?, ?, 'pending', ?, ? FROM webhooks
        WHERE id = ? AND sender_id = ? AND ${WEBHOOK_EXISTS}`,
    args: [own.id, own.type, JSON.stringify(own.data), now, now, webhookId, senderId],
  };
}

/** Holds while the webhook is enabled. A deleted one is not. */
export function enabledGuard(senderId: string, webhookId: string): Guard {
  return {
    sql: "EXISTS (SELECT 1 FROM webhooks WHERE id = ? AND sender_id = ? AND enabled = 1)",
    args: [webhookId, senderId],
  };
}

/** Holds while the webhook has not been deleted. */
export function standingWebhookGuard(senderId: string, webhookId: string): Guard {
  return {
    sql: `EXISTS (SELECT 1 FROM webhooks WHERE id = ? AND sender_id = ? AND ${WEBHOOK_EXISTS})`,
    args: [webhookId, senderId],
  };
}

/**
 * Holds while the webhook is enabled and no attempt at the delivery is in progress, so that it may be replayed.
 */
export function replayGuard(senderId: string, webhookId: string, id: string): Guard {
  return {
    sql: `EXISTS (SELECT 1 FROM webhook_deliveries d JOIN webhooks w ON w.id = d.webhook_id
      WHERE d.id = ? AND d.webhook_id = ? AND d.sender_id = ? AND d.claimed_by IS NULL AND w.enabled = 1)`,
    args: [id, webhookId, senderId],
  };
}

/** Returns the statement that makes a delivery due again, with the whole retry schedule before it. */
export function replayDelivery(senderId: string, webhookId: string, id: string, now: number): Statement {
  return {
    sql: `UPDATE webhook_deliveries SET status = 'pending', attempts = 0, due_at = ?
      WHERE id = ? AND webhook_id = ? AND sender_id = ?`,
    args: [now, id, webhookId, senderId],
  };
}

/** Returns true if the project's webhook has that delivery. */
export async function hasDelivery(db: Db, senderId: string, webhookId: string, id: string): Promise<boolean> {
  const row = await db.first<{ id: string }>(
    "SELECT id FROM webhook_deliveries WHERE id = ? AND webhook_id = ? AND sender_id = ?",
    [id, webhookId, senderId],
  );
  return row !== null;
}
