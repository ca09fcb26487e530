import type { NoticeKind } from "../../core/notices/kinds.ts";
import type { Clock } from "../../core/time/clock.ts";
import { changeNoticeSettings, noticeSettings } from "../../store/notices/notice-settings.ts";
import { deleteWebhook, updateWebhook } from "../../store/webhooks/webhooks.ts";
import { hiddenProject } from "../account/service-mail.ts";
import { createWebhook, type WebhookDeps } from "../webhooks/webhooks.ts";

/** What a client changes. Left out: as it is. Null: the owner's address, and no webhook. */
export interface WantedNotices {
  to?: readonly string[] | null | undefined;
  webhook?: string | null | undefined;
  off?: readonly NoticeKind[] | undefined;
}

/**
 * Changes who gets an account's notices. Giving the URL of a disabled webhook again enables it.
 * @returns the secret of a webhook at another URL, which is shown once; null if the webhook stays or goes
 * @throws AppError 422 for the webhook's URL
 */
export async function changeNotices(
  deps: WebhookDeps & { clock: Clock },
  accountId: string,
  { to, webhook: url, off }: WantedNotices,
): Promise<string | null> {
  const { db, clock } = deps;
  const now = clock.now();
  const { webhook: before } = await noticeSettings(db, accountId);
  const replaces = url !== undefined && url !== before?.url;
  let secret: string | null = null;
  if (typeof url === "string" && replaces) {
    const { id: senderId } = await hiddenProject(deps, accountId);
    // No event of a message has this type.
    const made = await createWebhook(
      deps,
      { senderId, scopes: [], now },
      { url, eventTypes: ["notice"], dialect: "postrider", content: true },
      ({ webhook }) => [changeNoticeSettings(accountId, { to, off, webhookId: webhook.id })],
    );
    secret = made.secret;
  } else
    await db.write([changeNoticeSettings(accountId, { to, off, ...(replaces ? { webhookId: null } : {}) })]);
  if (before !== null && url === before.url && !before.enabled)
    await updateWebhook(db, before.senderId, before.id, { enabled: true }, true, now);
  if (before !== null && replaces) await deleteWebhook(db, before.senderId, before.id, now);
  return secret;
}
