import { idCeiling } from "../../core/ids.ts";
import type { WebhookDialect } from "../../core/messages/resend-events.ts";
import { changesRow, type Db, type Statement, type Value } from "../engine/client.ts";
import { flag, json, plain, table } from "../engine/columns.ts";
import type { Place } from "../engine/place.ts";

/** A webhook endpoint, without its secret. Times in milliseconds. */
export interface Webhook {
  id: string;
  senderId: string;
  url: string;
  enabled: boolean;
  /** Event types, or `*` alone. */
  eventTypes: string[];
  /** How its events are named, built and signed. It never changes. */
  dialect: WebhookDialect;
  /** True if its events carry content: subject, bodies, headers, further addresses. */
  content: boolean;
  /** Why the service disabled it; null if it did not. */
  disabledReason: string | null;
  /** Since when every push has failed; null if the last one did not. */
  failingSince: number | null;
  createdAt: number;
  updatedAt: number;
}

const WEBHOOKS = table<Webhook>("webhooks", {
  id: plain("id"),
  senderId: plain("sender_id"),
  url: plain("url"),
  enabled: flag("enabled"),
  eventTypes: json("event_types"),
  dialect: plain("dialect"),
  content: flag("content"),
  disabledReason: plain("disabled_reason"),
  failingSince: plain("failing_since"),
  createdAt: plain("created_at"),
  updatedAt: plain("updated_at"),
});

/** The condition that a webhook has not been deleted. */
export const WEBHOOK_EXISTS = "deleted_at IS NULL";

/** Returns the statement that makes a webhook. */
export function insertWebhook(webhook: Webhook, sealedSecret: string): Statement {
  return {
    sql: `INSERT INTO webhooks (${WEBHOOKS.columns}, secret) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    args: [...WEBHOOKS.values(webhook), sealedSecret],
  };
}

/** Returns the project's webhook; null if it has none with that id. */
export function getWebhook(db: Db, senderId: string, id: string): Promise<Webhook | null> {
  return WEBHOOKS.first(db, `WHERE sender_id = ? AND id = ? AND ${WEBHOOK_EXISTS}`, [senderId, id]);
}

/**
 * Returns at most `take` of the project's webhooks, newest first, at a place.
 * @param dialect only those of this dialect; null: all
 */
export function listWebhooks(
  db: Db,
  senderId: string,
  place: Place,
  take: number,
  dialect: WebhookDialect | null = null,
): Promise<Webhook[]> {
  const where = `sender_id = ? AND dialect = COALESCE(?, dialect) AND ${WEBHOOK_EXISTS}`;
  return WEBHOOKS.page(db, { where, args: [senderId, dialect], place, ceiling: idCeiling("whk"), take });
}

/** A column's assignment and the values of its parameters. */
type Assignment = [sql: string, ...values: Value[]];

/** The fields of a webhook that may be changed. */
export type WebhookChanges = Partial<Pick<Webhook, "url" | "enabled" | "eventTypes" | "content">>;

/**
 * Changes the given fields. If it is enabled, the reason why it was disabled and its time of failures are forgotten.
 * Returns the webhook afterwards; null if there is none.
 * @param mayRead true if the caller may read messages. If not, another URL or other types end the webhook's content:
 *   the caller could have it sent to its own server.
 */
export function updateWebhook(
  db: Db,
  senderId: string,
  id: string,
  changes: WebhookChanges,
  mayRead: boolean,
  now: number,
): Promise<Webhook | null> {
  const { url, enabled, eventTypes, content } = changes;
  const set: Assignment[] = [["updated_at = ?", now]];
  // The failures of the old endpoint do not count for the new one.
  if (url !== undefined)
    set.push(["failing_since = iif(url = ?, failing_since, NULL)", url], ["url = ?", url]);
  if (eventTypes !== undefined) set.push(["event_types = ?", JSON.stringify(eventTypes)]);
  if (content !== undefined && (mayRead || !content)) set.push(["content = ?", Number(content)]);
  else if (!mayRead) set.push(contentIfUnchanged(changes));
  if (enabled !== undefined) set.push(["enabled = ?", Number(enabled)]);
  const revived = enabled === true ? ", disabled_reason = NULL, failing_since = NULL" : "";
  return WEBHOOKS.update(
    db,
    `SET ${set.map(([column]) => column).join(", ")}${revived}
      WHERE sender_id = ? AND id = ? AND ${WEBHOOK_EXISTS}`,
    [...set.flatMap(([, ...values]) => values), senderId, id],
  );
}

/** Keeps the webhook's content only if URL and types stay as they are. */
function contentIfUnchanged({ url, eventTypes }: WebhookChanges): Assignment {
  const types = eventTypes === undefined ? null : JSON.stringify(eventTypes);
  const unchanged = "url = COALESCE(?, url) AND event_types = COALESCE(?, event_types)";
  return [`content = iif(${unchanged}, content, 0)`, url ?? null, types];
}

/** Returns the statement that sets a new secret. The old one also signs until `previousUntil`. */
export function rotateSecret(
  senderId: string,
  id: string,
  sealedSecret: string,
  previousUntil: number,
  now: number,
): Statement {
  return {
    sql: `UPDATE webhooks SET previous_secret = secret, previous_secret_until = ?, secret = ?, updated_at = ?
          WHERE sender_id = ? AND id = ? AND ${WEBHOOK_EXISTS}`,
    args: [previousUntil, sealedSecret, now, senderId, id],
  };
}

/**
 * Hides a webhook from every request. `removeDeleted` removes its row and its delivery log, which may have millions of
 * entries. Returns false if there is none.
 * @param now milliseconds
 */
export function deleteWebhook(db: Db, senderId: string, id: string, now: number): Promise<boolean> {
  const sql = `UPDATE webhooks SET enabled = 0, deleted_at = ? WHERE sender_id = ? AND id = ? AND ${WEBHOOK_EXISTS}`;
  return changesRow(db, sql, [now, senderId, id]);
}

/**
 * Removes at most `lines` entries of the log of one deleted webhook, and its row after the last of them. Returns false
 * if no webhook is deleted.
 */
export async function removeDeleted(db: Db, lines: number): Promise<boolean> {
  const deleted = await db.first<{ id: string }>(
    "SELECT id FROM webhooks INDEXED BY webhooks_deleted WHERE deleted_at IS NOT NULL LIMIT 1",
  );
  if (deleted === null) return false;
  await db.write([
    {
      sql: `DELETE FROM webhook_deliveries WHERE id IN
        (SELECT id FROM webhook_deliveries WHERE webhook_id = ? LIMIT ?)`,
      args: [deleted.id, lines],
    },
    {
      sql: `DELETE FROM webhooks WHERE id = ?1 AND deleted_at IS NOT NULL
        AND NOT EXISTS (SELECT 1 FROM webhook_deliveries WHERE webhook_id = ?1)`,
      args: [deleted.id],
    },
  ]);
  return true;
}

/** Returns the statement that notes a success of the endpoint at `url`, unless the webhook has another URL by now. */
export function noteWebhookSuccess(senderId: string, webhookId: string, url: string): Statement {
  return {
    sql: `UPDATE webhooks SET failing_since = NULL
      WHERE id = ? AND sender_id = ? AND url = ? AND failing_since IS NOT NULL`,
    args: [webhookId, senderId, url],
  };
}

/** Returns the statement that notes the first of several failures of the endpoint at `url`. */
export function noteWebhookFailure(senderId: string, webhookId: string, url: string, now: number): Statement {
  return {
    sql: `UPDATE webhooks SET failing_since = COALESCE(failing_since, ?)
      WHERE id = ? AND sender_id = ? AND url = ?`,
    args: [now, webhookId, senderId, url],
  };
}

/**
 * The condition for disabling a webhook, because it may have changed during the attempt. Either it has failed since
 * that time or longer, or its owner has not changed it since. Milliseconds.
 */
export type DisablingCondition = { failingSince: number } | { updatedAt: number };

/** Returns the statement that disables a webhook if the condition holds. Its owner sees the reason. */
export function disableWebhook(
  senderId: string,
  webhookId: string,
  where: DisablingCondition,
  reason: string,
  now: number,
): Statement {
  const [condition, value] =
    "updatedAt" in where ? ["updated_at = ?", where.updatedAt] : ["failing_since <= ?", where.failingSince];
  return {
    sql: `UPDATE webhooks SET enabled = 0, disabled_reason = ?, updated_at = ?
      WHERE id = ? AND sender_id = ? AND enabled = 1 AND ${condition}`,
    args: [reason, now, webhookId, senderId, value],
  };
}
