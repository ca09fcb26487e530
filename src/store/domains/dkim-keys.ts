import type { DkimAlgorithm } from "../../core/domains/dkim-keys.ts";
import type { Db, Guard, Statement } from "../engine/client.ts";
import { plain, table } from "../engine/columns.ts";
import { requireGuard } from "../engine/guards.ts";

/** `pending`: made, but its record has not been seen yet. `active`: signs. `retired`: published until `retireAt`. */
export type DkimKeyStatus = "pending" | "active" | "retired";

/** A DKIM key. The private key is sealed. Times in milliseconds. */
export interface DkimKeyRecord {
  /** Random label: the key is published at `<token>.dkim.<service domain>`. */
  token: string;
  /** null: the installation's own key. */
  domainId: string | null;
  selector: string;
  algorithm: DkimAlgorithm;
  /** The value of `p=`, base64. */
  publicKey: string;
  sealedPrivateKey: string;
  status: DkimKeyStatus;
  retireAt: number | null;
  createdAt: number;
}

/** A key without its secret. */
export type PublicDkimKey = Omit<DkimKeyRecord, "sealedPrivateKey">;

const PUBLIC = {
  token: plain<string>("token"),
  domainId: plain<string | null>("domain_id"),
  selector: plain<string>("selector"),
  algorithm: plain<DkimAlgorithm>("algorithm"),
  publicKey: plain<string>("public_key"),
  status: plain<DkimKeyStatus>("status"),
  retireAt: plain<number | null>("retire_at"),
  createdAt: plain<number>("created_at"),
};
const PUBLIC_KEYS = table<PublicDkimKey>("dkim_keys", PUBLIC);
/** The table with its private keys. */
export const KEYS = table<DkimKeyRecord>("dkim_keys", { ...PUBLIC, sealedPrivateKey: plain("private_key") });

/** RSA first: its signature is on top, for receivers that look at one alone. */
export const IN_ORDER_OF_SIGNATURES = "k.algorithm DESC";

/** Returns the statement that stores a domain's key. */
export function insertDkimKey(key: DkimKeyRecord): Statement {
  return KEYS.insert(key);
}

/**
 * Returns the statements that store a domain's next keys. A retired key with the same token is replaced, and so are pending
 * keys that the caller has read. If the domain has others, the write is undone with the guard `dkim_key_pending`: of two
 * rotations at once one wins.
 * @param replaced the domain's pending keys as read
 */
export function putPendingKeys(
  keys: readonly DkimKeyRecord[],
  domainId: string,
  replaced: readonly PublicDkimKey[],
): Statement[] {
  const noPendingKey: Guard = {
    sql: "NOT EXISTS (SELECT 1 FROM dkim_keys WHERE domain_id = ? AND status = 'pending')",
    args: [domainId],
  };
  return [
    ...replaced.map(({ token, createdAt }) => ({
      sql: "DELETE FROM dkim_keys WHERE domain_id = ? AND token = ? AND created_at = ? AND status = 'pending'",
      args: [domainId, token, createdAt],
    })),
    requireGuard("dkim_key_pending", noPendingKey),
    ...keys.map((key) => {
      const { sql, args } = KEYS.insert({ ...key, domainId, status: "pending", retireAt: null });
      return {
        sql: `${sql}
          ON CONFLICT (token) DO UPDATE SET public_key = excluded.public_key, private_key = excluded.private_key,
            status = excluded.status, retire_at = NULL, created_at = excluded.created_at`,
        args,
      };
    }),
  ];
}

/** Returns the statement that stores a key for the installation's own domains. It changes nothing if there is one. */
export function insertInstallationKey(key: DkimKeyRecord): Statement {
  return {
    sql: `INSERT INTO dkim_keys (${KEYS.columns}) SELECT ?, ?, ?, ?, ?, ?, ?, ?, ?
          WHERE NOT EXISTS (SELECT 1 FROM dkim_keys WHERE domain_id IS NULL)`,
    args: KEYS.values({ ...key, domainId: null }),
  };
}

/** Returns the keys of the project's domain, oldest first. */
export async function listDkimKeys(db: Db, senderId: string, domainId: string): Promise<PublicDkimKey[]> {
  return (await dkimKeysOf(db, senderId, [domainId])).get(domainId) ?? [];
}

/** Returns the keys of some of a project's domains by domain id, each list oldest first. */
export async function dkimKeysOf(
  db: Db,
  senderId: string,
  domainIds: readonly string[],
): Promise<Map<string, PublicDkimKey[]>> {
  const keys = await PUBLIC_KEYS.all(
    db,
    `WHERE domain_id IN (SELECT id FROM domains WHERE sender_id = ? AND id IN (SELECT value FROM json_each(?)))
     ORDER BY created_at, algorithm DESC, token`,
    [senderId, JSON.stringify(domainIds)],
  );
  return Map.groupBy(keys, (key) => key.domainId ?? "");
}

/**
 * Returns the key of any domain that is published at a token at `now`; null if there is none, or its time is over. It
 * serves the name server, and everything in it is public.
 */
export function findPublishedKey(db: Db, token: string, now: number): Promise<PublicDkimKey | null> {
  return PUBLIC_KEYS.first(db, "WHERE token = ? AND (retire_at IS NULL OR retire_at > ?)", [token, now]);
}

/**
 * Returns at most `limit` keys of all domains that are published at `now`, ordered by token, after `afterToken`. It
 * serves the printed zone, and everything in it is public.
 */
export function publishedKeys(
  db: Db,
  now: number,
  afterToken: string,
  limit: number,
): Promise<PublicDkimKey[]> {
  const page = "WHERE token > ? AND (retire_at IS NULL OR retire_at > ?) ORDER BY token LIMIT ?";
  return PUBLIC_KEYS.all(db, page, [afterToken, now, limit]);
}

/** Returns the installation's own key; null before the first start is over. */
export function publicInstallationKey(db: Db): Promise<PublicDkimKey | null> {
  return PUBLIC_KEYS.first(db, "WHERE domain_id IS NULL", []);
}

/**
 * Returns the statements that make a domain's pending keys of one rotation sign. The keys before them stay published until
 * `retireAt`.
 * @param madeAt when the pending keys were made
 */
export function activateDkimKeys(domainId: string, madeAt: number, retireAt: number): Statement[] {
  const pending = "domain_id = ? AND status = 'pending' AND created_at = ?";
  return [
    {
      sql: `UPDATE dkim_keys SET status = 'retired', retire_at = ?
            WHERE domain_id = ? AND status = 'active' AND EXISTS (SELECT 1 FROM dkim_keys WHERE ${pending})`,
      args: [retireAt, domainId, domainId, madeAt],
    },
    { sql: `UPDATE dkim_keys SET status = 'active' WHERE ${pending}`, args: [domainId, madeAt] },
  ];
}

/** Which keys of delegated domains are old. Times in milliseconds. */
export interface OldKeys {
  madeBefore: number;
  now: number;
  limit: number;
}

/**
 * Returns at most `limit` domains of all projects that are delegated to us and verified, and whose key was made before that
 * time. Domains whose last rotation is not over are left out.
 */
export async function delegatedWithOldKey(
  db: Db,
  { madeBefore, now, limit }: OldKeys,
): Promise<{ id: string; senderId: string }[]> {
  const rows = await db.all<{ id: string; sender_id: string }>(
    `SELECT id, sender_id FROM domains
     WHERE served = 1 AND delegation_found = 1 AND status = 'verified'
       AND EXISTS (SELECT 1 FROM dkim_keys WHERE domain_id = domains.id AND status = 'active' AND created_at < ?)
       AND NOT EXISTS (SELECT 1 FROM dkim_keys
         WHERE domain_id = domains.id AND (status = 'pending' OR retire_at > ?))
     ORDER BY id LIMIT ?`,
    [madeBefore, now, limit],
  );
  return rows.map(({ id, sender_id: senderId }) => ({ id, senderId }));
}
