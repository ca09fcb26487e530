import type { NoticeKind } from "../../core/notices/kinds.ts";
import type { Db, Statement } from "../engine/client.ts";
import { inForce } from "../projects/suppressions.ts";

/** The recipients of an account's notices. */
export interface NoticeSettings {
  /** Addresses. */
  to: readonly string[];
  /** Kinds that are shown in the dashboard, and not sent. */
  off: readonly NoticeKind[];
  /** The webhook that gets them, of the account's hidden project; null if none does. */
  webhook: { id: string; senderId: string; url: string; enabled: boolean } | null;
}

interface SettingsRow {
  owner: string;
  to_list: string | null;
  off: string | null;
  id: string | null;
  sender_id: string | null;
  url: string | null;
  enabled: number | null;
}

/** Returns who gets the account's notices: the owner alone if nothing else was chosen. */
export async function noticeSettings(db: Db, accountId: string): Promise<NoticeSettings> {
  const row = await db.first<SettingsRow>(
    `SELECT a.owner_email AS owner, n.to_list, n.off, w.id, w.sender_id, w.url, w.enabled FROM accounts a
      LEFT JOIN notice_settings n ON n.account_id = a.id
      LEFT JOIN webhooks w ON w.id = n.webhook_id AND w.deleted_at IS NULL WHERE a.id = ?`,
    [accountId],
  );
  const owner = row === null ? [] : [row.owner];
  const { id = null, sender_id: senderId = null, url = null, enabled = 0 } = row ?? {};
  return {
    to: row?.to_list == null ? owner : JSON.parse(row.to_list),
    off: JSON.parse(row?.off ?? "[]"),
    webhook:
      id === null || senderId === null || url === null ? null : { id, senderId, url, enabled: enabled === 1 },
  };
}

/** Changes of the settings. Left out: as they are. `to: null`: the owner's address. */
export interface NoticeSettingChanges {
  to?: readonly string[] | null | undefined;
  off?: readonly NoticeKind[] | undefined;
  webhookId?: string | null | undefined;
}

/** Returns the statement that changes an account's settings. */
export function changeNoticeSettings(
  accountId: string,
  { to, off, webhookId }: NoticeSettingChanges,
): Statement {
  const json = (value: unknown) => (value == null ? null : JSON.stringify(value));
  return {
    sql: `INSERT INTO notice_settings (account_id, to_list, off, webhook_id) VALUES (?1, ?2, COALESCE(?4, '[]'), ?5)
      ON CONFLICT (account_id) DO UPDATE SET to_list = iif(?3, ?2, to_list), off = COALESCE(?4, off),
        webhook_id = iif(?6, ?5, webhook_id)`,
    args: [
      accountId,
      json(to),
      Number(to !== undefined),
      json(off),
      webhookId ?? null,
      Number(webhookId !== undefined),
    ],
  };
}

/**
 * Returns those of the address keys that get no mail of the account: suppressed in one of its projects, the hidden one included, or
 * unsubscribed from one.
 * @param keys keys of addresses, and their erased forms
 */
export async function refusingMail(
  db: Db,
  accountId: string,
  keys: readonly string[],
  now: number,
): Promise<Set<string>> {
  const rows = await db.all<{ key: string }>(
    `SELECT s.email AS key FROM senders p JOIN suppressions s ON s.sender_id = p.id AND s.email IN (SELECT value FROM json_each(?2))
      WHERE p.account_id = ?1 AND ${inForce("?3", "s.")}
     UNION SELECT c.email_key FROM senders p JOIN contacts c ON c.sender_id = p.id AND c.email_key IN (SELECT value FROM json_each(?2))
      WHERE p.account_id = ?1 AND c.subscribed = 0
     UNION SELECT e.address FROM senders p JOIN erased_unsubscriptions e ON e.sender_id = p.id AND e.address IN (SELECT value FROM json_each(?2))
      WHERE p.account_id = ?1`,
    [accountId, JSON.stringify(keys), now],
  );
  return new Set(rows.map(({ key }) => key));
}
