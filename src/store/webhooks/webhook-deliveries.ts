import type { EventNames, EventType, MessageEvent } from "../../core/messages/events.ts";
import type { WebhookDialect } from "../../core/messages/resend-events.ts";
import { ALWAYS, type ConfigurationQuery, type Db, type Guard, type Statement } from "../engine/client.ts";
import { flag, mapping, nullableJson, plain, type Row, table } from "../engine/columns.ts";
import type { RowsText } from "../sql/engine.ts";
import { numbered, rowsStatement, rowsText } from "../sql/rows-text.ts";
import { IS_REGISTERED } from "../installation/instances.ts";
import { WEBHOOK_EXISTS } from "./webhooks.ts";

/** One push of one event to one webhook: an entry of the delivery log and of the outbox. Times are milliseconds. */
export interface WebhookDelivery {
  id: string;
  webhookId: string;
  senderId: string;
  messageId: string | null;
  eventId: string | null;
  type: EventType;
  /** The payload's `data` if it is not built from an event, as in a sample. */
  data: Record<string, unknown> | null;
  status: "pending" | "succeeded" | "failed";
  attempts: number;
  /** True if an attempt has ended before. A replay counts its attempts from 0 again. */
  tried: boolean;
  /** The dialect of its webhook, which never changes. */
  dialect: WebhookDialect;
  createdAt: number;
}

/** An enabled webhook and the types of events that it wants. */
export interface Subscription {
  webhookId: string;
  eventTypes: string[];
}

/** Returns a query for the enabled webhooks of a project: one row of one column, a JSON list of `Subscription`. */
function enabledWebhooks(parameter: string): string {
  return `SELECT json_group_array(json_object('webhookId', id, 'eventTypes', json(event_types))) AS webhooks
    FROM webhooks WHERE sender_id = ${parameter} AND enabled = 1`;
}

/** The enabled webhooks of the project in parameter 2, as one column. */
export const SUBSCRIPTIONS_COLUMN = `(${enabledWebhooks("?2")})`;

const SUBSCRIPTIONS: ConfigurationQuery<{ webhooks: string }, Subscription[]> = {
  sql: enabledWebhooks("?1"),
  read: ({ webhooks }) => JSON.parse(webhooks),
};

/** Returns the enabled webhooks of a project. */
export async function subscriptions(db: Db, senderId: string): Promise<readonly Subscription[]> {
  return (await db.readConfig(SUBSCRIPTIONS, [senderId])) ?? [];
}

/** The fields of an event that its delivery stores, and its names. */
export type EventRef = Pick<MessageEvent, "id" | "senderId" | "messageId"> & EventNames;

/** A delivery to store. It is due at once. */
export interface NewDelivery {
  id: string;
  webhookId: string;
  event: EventRef;
}

/** Rows that one statement stores: SQLite takes at most 32766 values in one. */
const ROWS_PER_STATEMENT = 500;

/**
 * Returns the statements that store deliveries made at `now` (milliseconds). With a guard, they take effect only if it
 * holds.
 */
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
 * The condition that the webhook has not been deleted. A missing one would break the foreign key and undo the whole
 * commit. The condition names one webhook, because a subquery would list all webhooks of all projects for every
 * statement.
 */
const WEBHOOK_STANDS = `EXISTS (SELECT 1 FROM webhooks WHERE id = column2 AND ${WEBHOOK_EXISTS})`;

function insertText(count: number, where: string): RowsText {
  return rowsText("webhook_deliveries", COLUMNS_STORED, Array(count).fill(ROW).join(", "), { where });
}

/**
 * The SQL for one delivery, because most projects have one webhook. It is a constant because new strings are hashed
 * at each look-up.
 */
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
  // The guard may read a row that another write changes, so the statement keeps its position.
  return {
    sql: insertText(count, `${WEBHOOK_STANDS} AND ${guard.sql}`).sql,
    args: [...args, ...guard.args],
  };
}

const DELIVERIES = mapping<WebhookDelivery>({
  id: plain("id"),
  webhookId: plain("webhook_id"),
  senderId: plain("sender_id"),
  messageId: plain("message_id"),
  eventId: plain("event_id"),
  type: plain("type"),
  data: nullableJson("data"),
  status: plain("status"),
  attempts: plain("attempts"),
  tried: flag("tried"),
  dialect: plain("dialect"),
  createdAt: plain("created_at"),
});

const TRIED = "last_status IS NOT NULL OR last_error IS NOT NULL AS tried";
const DIALECT = "(SELECT dialect FROM webhooks WHERE id = webhook_id) AS dialect";
const COMPUTED: Readonly<Record<string, string>> = { tried: TRIED, dialect: DIALECT };
const COLUMNS = DELIVERIES.names.map((name) => COMPUTED[name] ?? name).join(", ");

/**
 * Returns the statement that claims a due delivery for a registered instance. Its RETURNING row is the delivery; no
 * row: it is not due, or claimed.
 */
export function claimDelivery(id: string, instanceId: string, now: number): Statement {
  return {
    sql: `UPDATE webhook_deliveries SET claimed_by = ?, due_at = NULL, attempts = attempts + 1, last_attempt_at = ?
      WHERE id = ? AND due_at <= ? AND claimed_by IS NULL AND ${IS_REGISTERED}
      RETURNING ${COLUMNS}`,
    args: [instanceId, now, id, now, instanceId],
  };
}

/** Returns the statement that moves the first attempt to `delayMs` after the event, if it is due earlier. */
export function delayFirstAttempt(id: string, delayMs: number): Statement {
  return {
    sql: `UPDATE webhook_deliveries SET due_at = created_at + ?
      WHERE id = ? AND attempts = 0 AND claimed_by IS NULL AND due_at < created_at + ?`,
    args: [delayMs, id, delayMs],
  };
}

/** Returns the delivery in a RETURNING row of `claimDelivery`. */
export function claimedDelivery(row: Record<string, unknown>): WebhookDelivery {
  return DELIVERIES.read(row as Row);
}

/** A delivery that waits for a worker. It is also the cursor after which the next page of due deliveries begins. */
export interface DueDelivery {
  id: string;
  senderId: string;
  webhookId: string;
  dueAt: number;
}

/** Returns deliveries that are due and unclaimed, longest due first, after a cursor. */
export function dueDeliveries(
  db: Db,
  now: number,
  after: Pick<DueDelivery, "dueAt" | "id"> | null,
  limit: number,
): Promise<DueDelivery[]> {
  return db.all<DueDelivery>(
    `SELECT id, sender_id AS senderId, webhook_id AS webhookId, due_at AS dueAt FROM webhook_deliveries
      WHERE due_at <= ? AND (due_at, id) > (?, ?) ORDER BY due_at, id LIMIT ?`,
    [now, after?.dueAt ?? -1, after?.id ?? "", limit],
  );
}

/** Returns the statement that frees every claim of an instance if the guard holds. The deliveries are due at once. */
export function freeDeliveryClaims(instanceId: string, now: number, guard: Guard = ALWAYS): Statement {
  return {
    sql: `UPDATE webhook_deliveries SET due_at = ?, claimed_by = NULL WHERE claimed_by = ? AND ${guard.sql}`,
    args: [now, instanceId, ...guard.args],
  };
}

/** The target of a delivery, and how it is signed. Secrets are sealed; times are milliseconds. */
export interface PushTarget {
  url: string;
  enabled: boolean;
  /** True if its events carry content. */
  content: boolean;
  secret: string;
  previousSecret: string | null;
  previousSecretUntil: number | null;
  /** When attempts began to fail; null if the last one succeeded. */
  failingSince: number | null;
  /** When its owner or the service last changed it. */
  updatedAt: number;
}

const TARGETS = table<PushTarget>("webhooks", {
  url: plain("url"),
  enabled: flag("enabled"),
  content: flag("content"),
  secret: plain("secret"),
  previousSecret: plain("previous_secret"),
  previousSecretUntil: plain("previous_secret_until"),
  failingSince: plain("failing_since"),
  updatedAt: plain("updated_at"),
});

/** Returns the target of a push; null if the project's webhook is gone. */
export function pushTarget(db: Db, senderId: string, webhookId: string): Promise<PushTarget | null> {
  return TARGETS.first(db, `WHERE id = ? AND sender_id = ? AND ${WEBHOOK_EXISTS}`, [webhookId, senderId]);
}

/** Returns ids of the deliveries that an instance has claimed. */
export async function claimedDeliveries(db: Db, instanceId: string, limit: number): Promise<string[]> {
  const rows = await db.all<{ id: string }>(
    "SELECT id FROM webhook_deliveries WHERE claimed_by = ? LIMIT ?",
    [instanceId, limit],
  );
  return rows.map((row) => row.id);
}

/** Returns the statements that free single claims of an instance. The deliveries are due at once. */
export function freeDeliveries(ids: readonly string[], instanceId: string, now: number): Statement[] {
  return ids.map((id) => ({
    sql: "UPDATE webhook_deliveries SET due_at = ?, claimed_by = NULL WHERE id = ? AND claimed_by = ?",
    args: [now, id, instanceId],
  }));
}
