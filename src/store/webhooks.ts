import { idCeiling } from "../core/ids.ts";
import { type Db, firstReturned, type Statement, type Value } from "./engine/client.ts";

/** A webhook endpoint, without its secret. Times in milliseconds. */
export interface Webhook {
  id: string;
  senderId: string;
  url: string;
  enabled: boolean;
  /** Event types, or `*` alone. */
  eventTypes: string[];
  /** Why the service switched it off; null where it did not. */
  disabledReason: string | null;
  createdAt: number;
  updatedAt: number;
}

interface Row {
  id: string;
  sender_id: string;
  url: string;
  enabled: number;
  event_types: string;
  disabled_reason: string | null;
  created_at: number;
  updated_at: number;
}

const COLUMNS = "id, sender_id, url, enabled, event_types, disabled_reason, created_at, updated_at";

/** The condition that a webhook has not been deleted. */
export const STANDS = "deleted_at IS NULL";

function webhookOf(row: Row): Webhook {
  const eventTypes: string[] = JSON.parse(row.event_types);
  return {
    id: row.id,
    senderId: row.sender_id,
    url: row.url,
    enabled: row.enabled === 1,
    eventTypes,
    disabledReason: row.disabled_reason,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
  };
}

/** The statement that makes a webhook. */
export function insertWebhook(webhook: Webhook, sealedSecret: string): Statement {
  return {
    sql: `INSERT INTO webhooks (id, sender_id, url, enabled, event_types, secret, created_at, updated_at)
          VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
    args: [
      webhook.id,
      webhook.senderId,
      webhook.url,
      Number(webhook.enabled),
      JSON.stringify(webhook.eventTypes),
      sealedSecret,
      webhook.createdAt,
      webhook.updatedAt,
    ],
  };
}

/** The project's webhook of that id; null where there is none. */
export async function getWebhook(db: Db, senderId: string, id: string): Promise<Webhook | null> {
  const row = await db.first<Row>(
    `SELECT ${COLUMNS} FROM webhooks WHERE sender_id = ? AND id = ? AND ${STANDS}`,
    [senderId, id],
  );
  return row === null ? null : webhookOf(row);
}

/** The project's webhooks, newest first, after the id `after`, at most `take`. */
export async function listWebhooks(
  db: Db,
  senderId: string,
  after: string | null,
  take: number,
): Promise<Webhook[]> {
  const rows = await db.all<Row>(
    `SELECT ${COLUMNS} FROM webhooks WHERE sender_id = ? AND id < ? AND ${STANDS} ORDER BY id DESC LIMIT ?`,
    [senderId, after ?? idCeiling("whk"), take],
  );
  return rows.map(webhookOf);
}

/** What of a webhook may be changed. */
export type WebhookChanges = Partial<Pick<Webhook, "url" | "enabled" | "eventTypes">>;

/**
 * Sets what is given and leaves the rest. Switching one on forgets why it was off and how long it had failed.
 * Returns the webhook after it; null where there is none.
 */
export async function updateWebhook(
  db: Db,
  senderId: string,
  id: string,
  changes: WebhookChanges,
  now: number,
): Promise<Webhook | null> {
  const { url, enabled, eventTypes } = changes;
  const set: [string, Value][] = [["updated_at = ?", now]];
  // Another endpoint has a record of its own: how long the one before had failed says nothing of it.
  if (url !== undefined)
    set.push(["failing_since = iif(url = ?, failing_since, NULL)", url], ["url = ?", url]);
  if (eventTypes !== undefined) set.push(["event_types = ?", JSON.stringify(eventTypes)]);
  if (enabled !== undefined) set.push(["enabled = ?", Number(enabled)]);
  const revived = enabled === true ? ", disabled_reason = NULL, failing_since = NULL" : "";
  const [written] = await db.write([
    {
      // Read later it may be as another request did.
      sql: `UPDATE webhooks SET ${set.map(([column]) => column).join(", ")}${revived}
        WHERE sender_id = ? AND id = ? AND ${STANDS} RETURNING ${COLUMNS}`,
      args: [...set.map(([, value]) => value), senderId, id],
    },
  ]);
  const row = firstReturned<Row>(written);
  return row === null ? null : webhookOf(row);
}

/** The statement that puts a new secret in place; the one before signs along until `previousUntil`. */
export function rotateSecret(
  senderId: string,
  id: string,
  sealedSecret: string,
  previousUntil: number,
  now: number,
): Statement {
  return {
    sql: `UPDATE webhooks SET previous_secret = secret, previous_secret_until = ?, secret = ?, updated_at = ?
          WHERE sender_id = ? AND id = ? AND ${STANDS}`,
    args: [previousUntil, sealedSecret, now, senderId, id],
  };
}

/**
 * Deletes a webhook for everybody who asks for it; its delivery log, which may have millions of lines, and its row are left
 * to `removeDeleted`. Returns false where there is none.
 * @param now milliseconds
 */
export async function deleteWebhook(db: Db, senderId: string, id: string, now: number): Promise<boolean> {
  const [written] = await db.write([
    {
      sql: `UPDATE webhooks SET enabled = 0, deleted_at = ? WHERE sender_id = ? AND id = ? AND ${STANDS}`,
      args: [now, senderId, id],
    },
  ]);
  return written?.changes === 1;
}

/** Removes at most `lines` of the log of one deleted webhook, its row with the last of them. Returns false where there is none. */
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

/** Notes that the endpoint at `url` works again; one that the webhook has moved to since has a record of its own. */
export function noteWebhookSuccess(senderId: string, webhookId: string, url: string): Statement {
  return {
    sql: `UPDATE webhooks SET failing_since = NULL
      WHERE id = ? AND sender_id = ? AND url = ? AND failing_since IS NOT NULL`,
    args: [webhookId, senderId, url],
  };
}

/** Notes the first failure of a row of them, of the endpoint at `url`. */
export function noteWebhookFailure(senderId: string, webhookId: string, url: string, now: number): Statement {
  return {
    sql: `UPDATE webhooks SET failing_since = COALESCE(failing_since, ?)
      WHERE id = ? AND sender_id = ? AND url = ?`,
    args: [now, webhookId, senderId, url],
  };
}

/**
 * What must still hold of a webhook that is switched off, since something may have happened after the attempt began: that
 * it has only failed since then or longer, or that its owner has not changed it since (it may have moved elsewhere, or been
 * switched on again). Milliseconds.
 */
export type DisablingCondition = { failingSince: number } | { updatedAt: number };

/** Switches a webhook off, for a reason that its owner is shown, where the condition holds. */
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
