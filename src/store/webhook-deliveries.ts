import type { EventType, MessageEvent } from "../core/events.ts";
import { ALWAYS, type ConfigurationQuery, type Db, type Guard, type Statement } from "./engine/client.ts";
import { numbered, type RowsText, rowsStatement, rowsText } from "./engine/rows-text.ts";
import { LISTED } from "./instances.ts";
import { STANDS } from "./webhooks.ts";

/** One push of one event to one webhook: the row of the delivery log and of the push outbox. Times are milliseconds. */
export interface WebhookDelivery {
  id: string;
  webhookId: string;
  senderId: string;
  messageId: string | null;
  eventId: string | null;
  type: EventType;
  /** The payload's `data` where it is not built from an event (test deliveries). */
  data: Record<string, unknown> | null;
  status: "pending" | "succeeded" | "failed";
  attempts: number;
  /** Whether an attempt has ended before: a replay counts its attempts anew. */
  tried: boolean;
  createdAt: number;
}

/** An enabled webhook and what it wants to hear. */
export interface Subscription {
  webhookId: string;
  eventTypes: string[];
}

/** The enabled webhooks of the project that the parameter names: one row of one column, a JSON list of `Subscription`. */
function enabledWebhooks(parameter: string): string {
  return `SELECT json_group_array(json_object('webhookId', id, 'eventTypes', json(event_types))) AS webhooks
    FROM webhooks WHERE sender_id = ${parameter} AND enabled = 1`;
}

/** Those of the project that parameter 2 names, as one column. */
export const SUBSCRIPTIONS_COLUMN = `(${enabledWebhooks("?2")})`;

const SUBSCRIPTIONS: ConfigurationQuery<{ webhooks: string }, Subscription[]> = {
  sql: enabledWebhooks("?1"),
  read: ({ webhooks }) => JSON.parse(webhooks),
};

/** The enabled webhooks of a project. */
export async function subscriptions(db: Db, senderId: string): Promise<readonly Subscription[]> {
  return (await db.recall(SUBSCRIPTIONS, [senderId])) ?? [];
}

/** What a delivery keeps of its event. */
export type ToldEvent = Pick<MessageEvent, "id" | "senderId" | "messageId" | "type">;

/** A delivery as it is first stored: due at once. */
export interface NewDelivery {
  id: string;
  webhookId: string;
  event: ToldEvent;
}

/** Rows that one statement stores: SQLite takes 32766 values in one. */
const ROWS_PER_STATEMENT = 500;

/** The statements that store the deliveries, made at `now` in milliseconds; with a guard, only where it holds. */
export function insertDeliveries(
  deliveries: readonly NewDelivery[],
  now: number,
  guard?: Guard,
): Statement[] {
  const statements: Statement[] = [];
  for (let from = 0; from < deliveries.length; from += ROWS_PER_STATEMENT)
    statements.push(insertSome(deliveries.slice(from, from + ROWS_PER_STATEMENT), now, guard));
  return statements;
}

const COLUMNS_STORED = "id, webhook_id, sender_id, message_id, event_id, type, status, due_at, created_at";
const ROW = "(?, ?, ?, ?, ?, ?, 'pending', ?, ?)";
/**
 * A webhook deleted since it was read would break the foreign key and with it the whole commit. Each is looked up: a list of
 * those that stand would be made of all webhooks of all projects, for every statement.
 */
const WEBHOOK_STANDS = `EXISTS (SELECT 1 FROM webhooks WHERE id = column2 AND ${STANDS})`;

function insertText(count: number, where: string): RowsText {
  return rowsText("webhook_deliveries", COLUMNS_STORED, Array(count).fill(ROW).join(", "), { where });
}

/** Most projects have one webhook. Made once, for wherever a text is looked up it is hashed. */
const ONE = rowsText("webhook_deliveries", COLUMNS_STORED, numbered(ROW), {
  where: WEBHOOK_STANDS,
  repeats: true,
});

function insertSome(deliveries: readonly NewDelivery[], now: number, guard?: Guard): Statement {
  const args = deliveries.flatMap(({ id, webhookId, event }) => [
    id,
    webhookId,
    event.senderId,
    event.messageId,
    event.id,
    event.type,
    now,
    now,
  ]);
  const count = deliveries.length;
  if (guard === undefined) return rowsStatement(count === 1 ? ONE : insertText(count, WEBHOOK_STANDS), args);
  // What its guard looks at may be another's row, so it stays where it stands.
  return {
    sql: insertText(count, `${WEBHOOK_STANDS} AND ${guard.sql}`).sql,
    args: [...args, ...guard.args],
  };
}

interface DeliveryRow {
  id: string;
  webhook_id: string;
  sender_id: string;
  message_id: string | null;
  event_id: string | null;
  type: EventType;
  data: string | null;
  status: "pending" | "succeeded" | "failed";
  attempts: number;
  tried: number;
  created_at: number;
}

const COLUMNS = `id, webhook_id, sender_id, message_id, event_id, type, data, status, attempts,
  last_status IS NOT NULL OR last_error IS NOT NULL AS tried, created_at`;

/** Takes a due delivery for an instance on the list; its RETURNING row is the delivery, no row: not due or taken. */
export function claimDelivery(id: string, instanceId: string, now: number): Statement {
  return {
    sql: `UPDATE webhook_deliveries SET claimed_by = ?, due_at = NULL, attempts = attempts + 1, last_attempt_at = ?
      WHERE id = ? AND due_at <= ? AND claimed_by IS NULL AND ${LISTED}
      RETURNING ${COLUMNS}`,
    args: [instanceId, now, id, now, instanceId],
  };
}

/** Puts the first attempt off to `delayMs` behind the event, where it is due before. */
export function delayFirstAttempt(id: string, delayMs: number): Statement {
  return {
    sql: `UPDATE webhook_deliveries SET due_at = created_at + ?
      WHERE id = ? AND attempts = 0 AND claimed_by IS NULL AND due_at < created_at + ?`,
    args: [delayMs, id, delayMs],
  };
}

/** The delivery in a RETURNING row of `claimDelivery`. */
export function claimedDelivery(row: Record<string, unknown>): WebhookDelivery {
  const delivery = row as unknown as DeliveryRow;
  return {
    id: delivery.id,
    webhookId: delivery.webhook_id,
    senderId: delivery.sender_id,
    messageId: delivery.message_id,
    eventId: delivery.event_id,
    type: delivery.type,
    data: delivery.data === null ? null : JSON.parse(delivery.data),
    status: delivery.status,
    attempts: delivery.attempts,
    tried: delivery.tried === 1,
    createdAt: delivery.created_at,
  };
}

/** What an attempt leaves behind in the log. `dueAt`: the next try; null where the delivery is over. */
export interface DeliveryResult {
  status: "pending" | "succeeded" | "failed";
  dueAt: number | null;
  /** HTTP status answered; null where there was no answer. */
  httpStatus: number | null;
  /** First bytes of the answer's body. */
  response: string | null;
  error: string | null;
}

/**
 * Ends the claim of an attempt with its result. Changes nothing where the claim no longer holds. It does, too, where others
 * have freed it (they took its process for dead) and nobody has taken the delivery up since: what the endpoint has said must
 * not be forgotten, or it hears the event again.
 */
export function settleDelivery(
  delivery: WebhookDelivery,
  instanceId: string,
  result: DeliveryResult,
): Statement {
  return {
    sql: `UPDATE webhook_deliveries SET status = ?, due_at = ?, claimed_by = NULL, last_status = ?, last_response = ?,
        last_error = ?
      WHERE id = ? AND (claimed_by = ? OR (claimed_by IS NULL AND due_at IS NOT NULL)) AND attempts = ?`,
    args: [
      result.status,
      result.dueAt,
      result.httpStatus,
      result.response,
      result.error,
      delivery.id,
      instanceId,
      delivery.attempts,
    ],
  };
}

/** A delivery that waits for a worker, and the place in the order of waiting where a later look goes on. */
export interface DueDelivery {
  id: string;
  webhookId: string;
  dueAt: number;
}

/** Deliveries that are due and unclaimed, longest due first, from behind `after` on. */
export async function dueDeliveries(
  db: Db,
  now: number,
  after: Pick<DueDelivery, "dueAt" | "id"> | null,
  limit: number,
): Promise<DueDelivery[]> {
  const rows = await db.all<{ id: string; webhook_id: string; due_at: number }>(
    `SELECT id, webhook_id, due_at FROM webhook_deliveries
      WHERE due_at <= ? AND (due_at, id) > (?, ?) ORDER BY due_at, id LIMIT ?`,
    [now, after?.dueAt ?? -1, after?.id ?? "", limit],
  );
  return rows.map((row) => ({ id: row.id, webhookId: row.webhook_id, dueAt: row.due_at }));
}

/** Frees every claim of an instance that is gone, where the guard holds: the deliveries are due again at once. */
export function freeDeliveryClaims(instanceId: string, now: number, guard: Guard = ALWAYS): Statement {
  return {
    sql: `UPDATE webhook_deliveries SET due_at = ?, claimed_by = NULL WHERE claimed_by = ? AND ${guard.sql}`,
    args: [now, instanceId, ...guard.args],
  };
}

/** Where a delivery goes and how it is signed. Secrets are sealed; times are milliseconds. */
export interface PushTarget {
  url: string;
  enabled: boolean;
  secret: string;
  previousSecret: string | null;
  previousSecretUntil: number | null;
  /** Since when every attempt has failed; null where the last one succeeded. */
  failingSince: number | null;
  /** When its owner or the service last changed it. */
  updatedAt: number;
}

/** The webhook of the project as a push needs it; null where it is gone. */
export async function pushTarget(db: Db, senderId: string, webhookId: string): Promise<PushTarget | null> {
  const row = await db.first<{
    url: string;
    enabled: number;
    secret: string;
    previous_secret: string | null;
    previous_secret_until: number | null;
    failing_since: number | null;
    updated_at: number;
  }>(
    `SELECT url, enabled, secret, previous_secret, previous_secret_until, failing_since, updated_at
      FROM webhooks WHERE id = ? AND sender_id = ? AND ${STANDS}`,
    [webhookId, senderId],
  );
  if (row === null) return null;
  return {
    url: row.url,
    enabled: row.enabled === 1,
    secret: row.secret,
    previousSecret: row.previous_secret,
    previousSecretUntil: row.previous_secret_until,
    failingSince: row.failing_since,
    updatedAt: row.updated_at,
  };
}

/** Ids of the deliveries that an instance has claimed. */
export async function claimedDeliveries(db: Db, instanceId: string, limit: number): Promise<string[]> {
  const rows = await db.all<{ id: string }>(
    "SELECT id FROM webhook_deliveries WHERE claimed_by = ? LIMIT ?",
    [instanceId, limit],
  );
  return rows.map((row) => row.id);
}

/** Frees single claims of an instance: the deliveries are due again at once. */
export function freeDeliveries(ids: readonly string[], instanceId: string, now: number): Statement[] {
  return ids.map((id) => ({
    sql: "UPDATE webhook_deliveries SET due_at = ?, claimed_by = NULL WHERE id = ? AND claimed_by = ?",
    args: [now, id, instanceId],
  }));
}
