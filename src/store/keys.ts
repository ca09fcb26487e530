import { idCeiling } from "../core/ids.ts";
import type { ConfigurationQuery, Db, Guard, Statement } from "./engine/client.ts";
import type { Row } from "./columns.ts";
import { type Project, PROJECTS } from "./projects.ts";

/** An API key without its secret. Times in milliseconds. */
export interface ApiKey {
  id: string;
  accountId: string;
  name: string;
  keyPrefix: string;
  last4: string;
  /** The project of a project-scoped key; null for an account-wide one. */
  senderId: string | null;
  senderExternalId: string | null;
  /** Empty: every scope. */
  scopes: string[];
  lastUsedAt: number | null;
  revokedAt: number | null;
  createdAt: number;
}

/** A key that a request presents: with the hash it was found by, and its project if it has one. */
export interface PresentedKey {
  key: ApiKey;
  secretHash: string;
  sender: Project | null;
}

interface KeyRow {
  id: string;
  account_id: string;
  name: string;
  key_prefix: string;
  last4: string;
  sender_id: string | null;
  sender_external_id: string | null;
  scopes: string;
  last_used_at: number | null;
  revoked_at: number | null;
  created_at: number;
}

interface PresentedRow extends KeyRow {
  secret_hash: string;
  /** The project by columns of `senders`; its id is null if there is none. */
  sender: Row;
}

const KEY_COLUMNS = `k.id, k.account_id, k.name, k.key_prefix, k.last4, k.sender_id,
  s.external_id AS sender_external_id, k.scopes, k.last_used_at, k.revoked_at, k.created_at`;

const SENDER_PAIRS = PROJECTS.names.map((name) => `'${name}', s.${name}`).join(", ");

function keyOf(row: KeyRow): ApiKey {
  const scopes: string[] = JSON.parse(row.scopes);
  return {
    id: row.id,
    accountId: row.account_id,
    name: row.name,
    keyPrefix: row.key_prefix,
    last4: row.last4,
    senderId: row.sender_id,
    senderExternalId: row.sender_external_id,
    scopes,
    lastUsedAt: row.last_used_at,
    revokedAt: row.revoked_at,
    createdAt: row.created_at,
  };
}

/**
 * Runs for every request. It returns one JSON column, because the client's cost of a row grows with its columns: here
 * tenfold.
 */
function presentedBy(column: "secret_hash" | "id"): ConfigurationQuery<{ json: string }, PresentedKey> {
  return {
    sql: `SELECT json_object(
      'id', k.id, 'account_id', k.account_id, 'name', k.name, 'key_prefix', k.key_prefix, 'last4', k.last4,
      'sender_id', k.sender_id, 'sender_external_id', s.external_id, 'scopes', k.scopes,
      'last_used_at', k.last_used_at, 'revoked_at', k.revoked_at, 'created_at', k.created_at,
      'secret_hash', k.secret_hash, 'sender', json_object(${SENDER_PAIRS})) AS json
    FROM api_keys k LEFT JOIN senders s ON s.id = k.sender_id WHERE k.${column} = ?`,
    read({ json }) {
      const row: PresentedRow = JSON.parse(json);
      return {
        key: keyOf(row),
        secretHash: row.secret_hash,
        sender: row.sender.id === null ? null : PROJECTS.read(row.sender),
      };
    },
  };
}
const KEY_BY_HASH = presentedBy("secret_hash");
const KEY_BY_ID = presentedBy("id");

/** Returns the key, revoked or not, whose secret has that SHA-256 in hex; null if there is none. */
export function findKeyByHash(db: Db, secretHash: string): Promise<PresentedKey | null> {
  return db.readConfig(KEY_BY_HASH, [secretHash]);
}

/** Returns the key with that id, revoked or not; null if there is none. */
export function findKeyById(db: Db, id: string): Promise<PresentedKey | null> {
  return db.readConfig(KEY_BY_ID, [id]);
}

/** Returns the statement that makes a key. Only the hash of its secret is stored. @param secretHash SHA-256 in hex */
export function insertKey(key: ApiKey, secretHash: string): Statement {
  return {
    sql: `INSERT INTO api_keys (id, account_id, sender_id, name, key_prefix, last4, secret_hash, scopes, created_at)
          VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    args: [
      key.id,
      key.accountId,
      key.senderId,
      key.name,
      key.keyPrefix,
      key.last4,
      secretHash,
      JSON.stringify(key.scopes),
      key.createdAt,
    ],
  };
}

/**
 * Returns at most `take` of the account's keys, revoked ones included, newest first, with ids below `after`.
 * @param senderId only that project's keys; null: all
 */
export async function listKeys(
  db: Db,
  accountId: string,
  senderId: string | null,
  after: string | null,
  take: number,
): Promise<ApiKey[]> {
  const rows = await db.all<KeyRow>(
    `SELECT ${KEY_COLUMNS} FROM api_keys k LEFT JOIN senders s ON s.id = k.sender_id
     WHERE k.account_id = ? AND (? IS NULL OR k.sender_id = ?) AND k.id < ?
     ORDER BY k.id DESC LIMIT ?`,
    [accountId, senderId, senderId, after ?? idCeiling("key"), take],
  );
  return rows.map(keyOf);
}

/**
 * Returns a key of the account; null if there is none with that id.
 * @param senderId only a key of that project; null: any of the account
 */
export async function getKey(
  db: Db,
  accountId: string,
  senderId: string | null,
  id: string,
): Promise<ApiKey | null> {
  const row = await db.first<KeyRow>(
    `SELECT ${KEY_COLUMNS} FROM api_keys k LEFT JOIN senders s ON s.id = k.sender_id
     WHERE k.account_id = ? AND (? IS NULL OR k.sender_id = ?) AND k.id = ?`,
    [accountId, senderId, senderId, id],
  );
  return row === null ? null : keyOf(row);
}

/**
 * Revokes a key of the account. A key that is revoked already keeps its time.
 * @param senderId only a key of that project; null: any of the account
 * @returns false if there is no such key
 */
export async function revokeKey(
  db: Db,
  accountId: string,
  senderId: string | null,
  id: string,
  now: number,
): Promise<boolean> {
  const [written] = await db.write([
    {
      sql: `UPDATE api_keys SET revoked_at = COALESCE(revoked_at, ?)
            WHERE account_id = ? AND (? IS NULL OR sender_id = ?) AND id = ?`,
      args: [now, accountId, senderId, senderId, id],
    },
  ]);
  return written?.changes === 1;
}

/** Holds while the key has not been revoked. */
export function unrevokedGuard(id: string): Guard {
  return { sql: "EXISTS (SELECT 1 FROM api_keys WHERE id = ? AND revoked_at IS NULL)", args: [id] };
}

/** Notes that a key was used. The time never goes back. */
export async function touchKey(db: Db, id: string, usedAt: number): Promise<void> {
  await db.write([
    {
      sql: "UPDATE api_keys SET last_used_at = MAX(COALESCE(last_used_at, 0), ?) WHERE id = ?",
      args: [usedAt, id],
    },
  ]);
}
