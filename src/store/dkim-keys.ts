import type { Db, Guard, Statement } from "./engine/client.ts";
import { requireGuard } from "./guards.ts";

/** `pending`: made, but its record has not been seen yet. `active`: signs. `retired`: published until `retireAt`. */
export type DkimKeyStatus = "pending" | "active" | "retired";

/** A DKIM key. The private key is sealed. Times in milliseconds. */
export interface DkimKeyRecord {
  /** Random label: the key is published at `<token>.dkim.<service domain>`. */
  token: string;
  /** null: the installation's own key. */
  domainId: string | null;
  selector: string;
  /** The value of `p=`, base64. */
  publicKey: string;
  sealedPrivateKey: string;
  status: DkimKeyStatus;
  retireAt: number | null;
  createdAt: number;
}

/** A key without its secret. */
export type PublicDkimKey = Omit<DkimKeyRecord, "sealedPrivateKey">;

interface Row {
  token: string;
  domain_id: string | null;
  selector: string;
  public_key: string;
  status: DkimKeyStatus;
  retire_at: number | null;
  created_at: number;
}

const PUBLIC_COLUMNS = "k.token, k.domain_id, k.selector, k.public_key, k.status, k.retire_at, k.created_at";

function keyOf(row: Row): PublicDkimKey {
  return {
    token: row.token,
    domainId: row.domain_id,
    selector: row.selector,
    publicKey: row.public_key,
    status: row.status,
    retireAt: row.retire_at,
    createdAt: row.created_at,
  };
}

const INSERT = `INSERT INTO dkim_keys
  (token, domain_id, selector, public_key, private_key, status, retire_at, created_at)`;

function valuesOf(key: DkimKeyRecord) {
  return [
    key.token,
    key.domainId,
    key.selector,
    key.publicKey,
    key.sealedPrivateKey,
    key.status,
    key.retireAt,
    key.createdAt,
  ];
}

/** Returns the statement that stores a domain's key. */
export function insertDkimKey(key: DkimKeyRecord): Statement {
  return { sql: `${INSERT} VALUES (?, ?, ?, ?, ?, ?, ?, ?)`, args: valuesOf(key) };
}

/**
 * Returns the statements that store a domain's next key. A retired key with the same token is replaced. If the domain has
 * a pending key, the write is undone with the guard `dkim_key_pending`: of two rotations at once one wins.
 */
export function putPendingKey(key: DkimKeyRecord, domainId: string): Statement[] {
  const noPendingKey: Guard = {
    sql: "NOT EXISTS (SELECT 1 FROM dkim_keys WHERE domain_id = ? AND status = 'pending')",
    args: [domainId],
  };
  return [
    requireGuard("dkim_key_pending", noPendingKey),
    {
      sql: `${INSERT} VALUES (?, ?, ?, ?, ?, 'pending', NULL, ?)
          ON CONFLICT (token) DO UPDATE SET public_key = excluded.public_key, private_key = excluded.private_key,
            status = excluded.status, retire_at = NULL, created_at = excluded.created_at`,
      args: [key.token, domainId, key.selector, key.publicKey, key.sealedPrivateKey, key.createdAt],
    },
  ];
}

/** Returns the statement that stores a key for the installation's own domains. It changes nothing if there is one. */
export function insertInstallationKey(key: DkimKeyRecord): Statement {
  return {
    sql: `${INSERT} SELECT ?, ?, ?, ?, ?, ?, ?, ?
          WHERE NOT EXISTS (SELECT 1 FROM dkim_keys WHERE domain_id IS NULL)`,
    args: valuesOf({ ...key, domainId: null }),
  };
}

/** Returns the keys of the project's domain, oldest first. */
export async function listDkimKeys(db: Db, senderId: string, domainId: string): Promise<PublicDkimKey[]> {
  const rows = await db.all<Row>(
    `SELECT ${PUBLIC_COLUMNS} FROM dkim_keys k JOIN domains d ON d.id = k.domain_id
     WHERE d.sender_id = ? AND k.domain_id = ? ORDER BY k.created_at, k.token`,
    [senderId, domainId],
  );
  return rows.map(keyOf);
}

/** Returns the keys of some of a project's domains by domain id, each list oldest first. */
export async function dkimKeysOf(
  db: Db,
  senderId: string,
  domainIds: readonly string[],
): Promise<Map<string, PublicDkimKey[]>> {
  const rows = await db.all<Row>(
    `SELECT ${PUBLIC_COLUMNS} FROM dkim_keys k JOIN domains d ON d.id = k.domain_id
     WHERE d.sender_id = ? AND k.domain_id IN (SELECT value FROM json_each(?)) ORDER BY k.created_at, k.token`,
    [senderId, JSON.stringify(domainIds)],
  );
  return Map.groupBy(rows.map(keyOf), (key) => key.domainId ?? "");
}

/**
 * Returns the key of any domain that is published at a token at `now`; null if there is none, or its time is over. It
 * serves the name server, and everything in it is public.
 */
export async function findPublishedKey(db: Db, token: string, now: number): Promise<PublicDkimKey | null> {
  const row = await db.first<Row>(
    `SELECT ${PUBLIC_COLUMNS} FROM dkim_keys k WHERE k.token = ? AND (k.retire_at IS NULL OR k.retire_at > ?)`,
    [token, now],
  );
  return row === null ? null : keyOf(row);
}

/**
 * Returns at most `limit` keys of all domains that are published at `now`, ordered by token, after `afterToken`. It
 * serves the printed zone, and everything in it is public.
 */
export async function publishedKeys(
  db: Db,
  now: number,
  afterToken: string,
  limit: number,
): Promise<PublicDkimKey[]> {
  const rows = await db.all<Row>(
    `SELECT ${PUBLIC_COLUMNS} FROM dkim_keys k
     WHERE k.token > ? AND (k.retire_at IS NULL OR k.retire_at > ?) ORDER BY k.token LIMIT ?`,
    [afterToken, now, limit],
  );
  return rows.map(keyOf);
}

/** Returns the installation's own key; null before the first start is over. */
export async function publicInstallationKey(db: Db): Promise<PublicDkimKey | null> {
  const row = await db.first<Row>(`SELECT ${PUBLIC_COLUMNS} FROM dkim_keys k WHERE k.domain_id IS NULL`);
  return row === null ? null : keyOf(row);
}

/** Returns the statements that make a domain's pending key sign. The key before it stays published until `retireAt`. */
export function activateDkimKey(domainId: string, token: string, retireAt: number): Statement[] {
  return [
    {
      sql: `UPDATE dkim_keys SET status = 'retired', retire_at = ?
            WHERE domain_id = ? AND status = 'active' AND token <> ?
              AND EXISTS (SELECT 1 FROM dkim_keys WHERE token = ? AND status = 'pending')`,
      args: [retireAt, domainId, token, token],
    },
    {
      sql: "UPDATE dkim_keys SET status = 'active' WHERE domain_id = ? AND token = ? AND status = 'pending'",
      args: [domainId, token],
    },
  ];
}
