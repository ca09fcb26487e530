import type { EventType } from "../core/events.ts";
import { idCeiling, idFloor } from "../core/ids.ts";
import { DAY_MS } from "../core/time-units.ts";
import type { Db, Guard, Statement } from "./engine/client.ts";
import { timeOfId } from "./search/message-index.ts";
import { firstWanted, ownedRows, type Scanned, type ScannedList, scanInSteps } from "./search/steps.ts";
import { STANDS } from "./webhooks.ts";

/** One line of a webhook's delivery log. Times are milliseconds. */
export interface LoggedDelivery {
  id: string;
  type: EventType;
  messageId: string | null;
  eventId: string | null;
  status: "pending" | "succeeded" | "failed";
  attempts: number;
  /** When it is tried next; null while an attempt is under way and once it is over. */
  nextAttemptAt: number | null;
  lastAttemptAt: number | null;
  /** HTTP status, first bytes and trouble of the last attempt. */
  httpStatus: number | null;
  response: string | null;
  error: string | null;
  createdAt: number;
}

interface LogRow {
  id: string;
  type: EventType;
  message_id: string | null;
  event_id: string | null;
  status: "pending" | "succeeded" | "failed";
  attempts: number;
  due_at: number | null;
  last_attempt_at: number | null;
  last_status: number | null;
  last_response: string | null;
  last_error: string | null;
  created_at: number;
}

const COLUMNS = `id, type, message_id, event_id, status, attempts, due_at, last_attempt_at, last_status, last_response,
  last_error, created_at`;

function toLogged(row: LogRow): LoggedDelivery {
  return {
    id: row.id,
    type: row.type,
    messageId: row.message_id,
    eventId: row.event_id,
    status: row.status,
    attempts: row.attempts,
    nextAttemptAt: row.due_at,
    lastAttemptAt: row.last_attempt_at,
    httpStatus: row.last_status,
    response: row.last_response,
    error: row.last_error,
    createdAt: row.created_at,
  };
}

/** What a log may be narrowed by. */
export interface DeliveryFilter {
  status?: LoggedDelivery["status"] | undefined;
  messageId?: string | undefined;
}

/**
 * One page of a webhook's log, newest first: at most `limit` deliveries with ids below `before`. A filter has no index: few of a
 * million may pass it, so the log is looked through step by step, and a page may end before it is full.
 */
export async function listDeliveries(
  db: Db,
  senderId: string,
  webhookId: string,
  filter: DeliveryFilter,
  before: string | null,
  limit: number,
): Promise<Scanned<LoggedDelivery>> {
  const list = logOf(db, senderId, webhookId, filter);
  const narrowed = filter.status !== undefined || filter.messageId !== undefined;
  const scan = narrowed ? scanInSteps : firstWanted;
  const { rows, stoppedAt } = await scan(list, before ?? idCeiling("dlv"), limit);
  return { rows: rows.map(toLogged), stoppedAt };
}

/** Time by which a clock may have been put back between a message and what is told of it. */
const CLOCK_SLACK_MS = DAY_MS;

/** The log as a list that is looked through. Of a message it ends where that was made: older deliveries tell of others. */
function logOf(
  db: Db,
  senderId: string,
  webhookId: string,
  { status, messageId }: DeliveryFilter,
): ScannedList<LogRow, string> {
  const madeAt = messageId === undefined ? null : timeOfId(messageId);
  const floor = idFloor("dlv", Math.max(0, (madeAt ?? 0) - CLOCK_SLACK_MS));
  return ownedRows(db, {
    from: "webhook_deliveries INDEXED BY webhook_deliveries_by_webhook",
    columns: COLUMNS,
    owner: { sql: "webhook_id = ?", args: [webhookId] },
    where: [
      { sql: "sender_id = ?", args: [senderId] },
      ...(status === undefined ? [] : [{ sql: "status = ?", args: [status] }]),
      ...(messageId === undefined ? [] : [{ sql: "message_id = ?", args: [messageId] }]),
    ],
    floor,
  });
}

/** Stores a delivery that tells of no event of a message: its data stands in itself. Due at once. */
export function insertSampleDelivery(
  senderId: string,
  webhookId: string,
  sample: { id: string; type: EventType; data: Record<string, unknown> },
  now: number,
): Statement {
  return {
    sql: `INSERT INTO webhook_deliveries (id, webhook_id, sender_id, type, data, status, due_at, created_at)
      SELECT ?, id, sender_id, ?, ?, 'pending', ?, ? FROM webhooks
        WHERE id = ? AND sender_id = ? AND ${STANDS}`,
    args: [sample.id, sample.type, JSON.stringify(sample.data), now, now, webhookId, senderId],
  };
}

/** Holds while the webhook is enabled, which a deleted one is not: what a sample asks. */
export function enabledGuard(senderId: string, webhookId: string): Guard {
  return {
    sql: "EXISTS (SELECT 1 FROM webhooks WHERE id = ? AND sender_id = ? AND enabled = 1)",
    args: [webhookId, senderId],
  };
}

/** Holds while the webhook has not been deleted. */
export function standingWebhookGuard(senderId: string, webhookId: string): Guard {
  return {
    sql: `EXISTS (SELECT 1 FROM webhooks WHERE id = ? AND sender_id = ? AND ${STANDS})`,
    args: [webhookId, senderId],
  };
}

/** Holds while the webhook is enabled and no attempt at the delivery is under way: what a replay changes. */
export function replayGuard(senderId: string, webhookId: string, id: string): Guard {
  return {
    sql: `EXISTS (SELECT 1 FROM webhook_deliveries d JOIN webhooks w ON w.id = d.webhook_id
      WHERE d.id = ? AND d.webhook_id = ? AND d.sender_id = ? AND d.claimed_by IS NULL AND w.enabled = 1)`,
    args: [id, webhookId, senderId],
  };
}

/** Makes a delivery due anew, with the whole schedule before it. */
export function replayDelivery(senderId: string, webhookId: string, id: string, now: number): Statement {
  return {
    sql: `UPDATE webhook_deliveries SET status = 'pending', attempts = 0, due_at = ?
      WHERE id = ? AND webhook_id = ? AND sender_id = ?`,
    args: [now, id, webhookId, senderId],
  };
}

/** Whether the webhook of the project has that delivery. */
export async function hasDelivery(db: Db, senderId: string, webhookId: string, id: string): Promise<boolean> {
  const row = await db.first<{ id: string }>(
    "SELECT id FROM webhook_deliveries WHERE id = ? AND webhook_id = ? AND sender_id = ?",
    [id, webhookId, senderId],
  );
  return row !== null;
}
