import type { Key } from "../../core/crypto/key-ring.ts";
import { randomBytes } from "node:crypto";
import { seal } from "../../core/crypto/secretbox.ts";
import { SECRET_PREFIX } from "../../core/crypto/webhook-signature.ts";
import { notFound } from "../../core/errors.ts";
import { newId } from "../../core/ids.ts";
import type { WebhookDialect } from "../../core/messages/resend-events.ts";
import { standingWebhookGuard } from "../../store/webhooks/delivery-log.ts";
import type { Db, Statement } from "../../store/engine/client.ts";
import { isBroken, requireGuard } from "../../store/engine/guards.ts";
import { getWebhook, insertWebhook, rotateSecret, type Webhook } from "../../store/webhooks/webhooks.ts";
import { allows, requireScope } from "../../core/scopes.ts";
import { type WebhookUrlRules, webhookUrl } from "./webhook-url.ts";

/** Random bytes of a signing secret: 43 characters in base64url. */
const SECRET_BYTES = 32;
/** A key without this scope can only make webhooks without content. */
export const READ = "emails:read";

/** Dependencies of making and changing webhooks. */
export interface WebhookDeps {
  db: Db;
  /** Encrypts signing secrets in the database. */
  boxKey: Key;
  urlRules: WebhookUrlRules;
}

/** Returns a new signing secret. Libraries for Resend's dialect decode what follows the prefix from standard base64. */
export function newSigningSecret(dialect: WebhookDialect): string {
  return SECRET_PREFIX + randomBytes(SECRET_BYTES).toString(dialect === "resend" ? "base64" : "base64url");
}

/** Returns whether the key may send content to a webhook. Throws 403 if it asks for content without that right. */
export function maySendContent(scopes: readonly string[], content: boolean | undefined): boolean {
  if (content === true) requireScope(scopes, READ);
  return allows(scopes, READ);
}

/** The wishes of a client for a new webhook. */
interface WantedWebhook {
  url: string;
  eventTypes: string[];
  dialect: WebhookDialect;
  /** Null: content if the key may read messages. */
  content: boolean | null;
}

/** A webhook with its new secret, which is shown once. */
export interface Signed {
  webhook: Webhook;
  secret: string;
}

/** Returns statements for the write of a secret. */
type RecordSigned = (signed: Signed) => readonly Statement[];

/**
 * Makes a webhook with a signing secret.
 * @throws AppError 403 if it asks for content that the key may not read; 422 for its URL
 */
export async function createWebhook(
  { db, boxKey, urlRules }: WebhookDeps,
  { senderId, scopes, now }: { senderId: string; scopes: readonly string[]; now: number },
  wanted: WantedWebhook,
  record: RecordSigned,
): Promise<Signed> {
  const mayRead = maySendContent(scopes, wanted.content ?? undefined);
  const secret = newSigningSecret(wanted.dialect);
  const webhook: Webhook = {
    id: newId("whk", now),
    senderId,
    url: webhookUrl(wanted.url, urlRules),
    enabled: true,
    eventTypes: wanted.eventTypes,
    dialect: wanted.dialect,
    content: wanted.content ?? mayRead,
    disabledReason: null,
    failingSince: null,
    createdAt: now,
    updatedAt: now,
  };
  const signed = { webhook, secret };
  await db.write([insertWebhook(webhook, seal(boxKey, secret)), ...record(signed)]);
  return signed;
}

/**
 * Gives a webhook a new secret. The previous one also signs until `until`, milliseconds.
 * @throws AppError 404 if the project has no such webhook in that dialect
 */
export async function rotateWebhookSecret(
  { db, boxKey }: Pick<WebhookDeps, "db" | "boxKey">,
  { senderId, now }: { senderId: string; now: number },
  { id, until, dialect }: { id: string; until: number; dialect?: WebhookDialect },
  record: RecordSigned,
): Promise<Signed> {
  const webhook = await getWebhook(db, senderId, id);
  if (webhook === null || (dialect !== undefined && webhook.dialect !== dialect)) throw notFound("webhook");
  const secret = newSigningSecret(webhook.dialect);
  const signed = { webhook: { ...webhook, updatedAt: now }, secret };
  const write = db.write([
    requireGuard("webhook_deleted", standingWebhookGuard(senderId, webhook.id)),
    rotateSecret(senderId, webhook.id, seal(boxKey, secret), until, now),
    ...record(signed),
  ]);
  await write.catch((error: unknown) => {
    // The webhook was deleted since it was read, so a secret for it must not be shown.
    throw isBroken(error, "webhook_deleted") ? notFound("webhook") : error;
  });
  return signed;
}
