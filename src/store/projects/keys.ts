import { idCeiling } from "../../core/ids.ts";
import {
  changesRow,
  type ConfigurationQuery,
  type Db,
  type Guard,
  type Statement,
} from "../engine/client.ts";
import type { KeyBounds } from "../../core/key-bounds.ts";
import { flag, json, nullableJson, plain, type Row, table } from "../engine/columns.ts";
import type { Place } from "../engine/place.ts";
import { type Project, PROJECTS } from "./projects.ts";

/** An API key without its secret. Times in milliseconds. */
export interface ApiKey extends KeyBounds {
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
  /** Id of the member or key that made it; null: none did, or it is not known. */
  createdBy: string | null;
  /** The address of that member, or the name of that key; null if it is gone. */
  createdByName: string | null;
}

/** A key that a request presents: with the hash it was found by, and its project if it has one. */
export interface PresentedKey {
  key: ApiKey;
  secretHash: string;
  sender: Project | null;
  /** Set if it was made for a member who has signed in. */
  session?: { id: string; grant: string };
}

/** The rows of `api_keys` with the external id of their project, and the name of their maker. */
const KEYS = table<ApiKey>(
  `(SELECT k.*, s.external_id AS sender_external_id, COALESCE(m.email, c.name) AS created_by_name
    FROM api_keys k LEFT JOIN senders s ON s.id = k.sender_id
    LEFT JOIN members m ON m.id = k.created_by AND m.account_id = k.account_id
    LEFT JOIN api_keys c ON c.id = k.created_by AND c.account_id = k.account_id)`,
  {
    id: plain("id"),
    accountId: plain("account_id"),
    name: plain("name"),
    keyPrefix: plain("key_prefix"),
    last4: plain("last4"),
    senderId: plain("sender_id"),
    senderExternalId: plain("sender_external_id"),
    scopes: json("scopes"),
    allowRecipients: nullableJson("allow_recipients"),
    approval: flag("approval"),
    inboxIds: nullableJson("inbox_ids"),
    lastUsedAt: plain("last_used_at"),
    revokedAt: plain("revoked_at"),
    createdAt: plain("created_at"),
    createdBy: plain("created_by"),
    createdByName: plain("created_by_name"),
  },
);

const JOINED: ReadonlySet<string> = new Set(["sender_external_id", "created_by_name"]);
const OWN_NAMES = KEYS.names.filter((name) => !JOINED.has(name));

interface PresentedRow {
  key: Row;
  secretHash: string;
  /** The project by columns of `senders`; its id is null if there is none. */
  sender: Row;
}

/** Returns the arguments of SQL's `json_object` for a row by its columns. */
function pairsOf(names: readonly string[], alias: string): string {
  return names.map((name) => `'${name}', ${alias}.${name}`).join(", ");
}

/**
 * Runs for every request. It returns one JSON column, because the client's cost of a row grows with its columns: here
 * tenfold.
 */
function presentedBy(column: "secret_hash" | "id"): ConfigurationQuery<{ json: string }, PresentedKey> {
  return {
    sql: `SELECT json_object('secretHash', k.secret_hash, 'sender', json_object(${pairsOf(PROJECTS.names, "s")}),
      'key', json_object(${pairsOf(OWN_NAMES, "k")}, 'sender_external_id', s.external_id, 'created_by_name', NULL)) AS json
    FROM api_keys k LEFT JOIN senders s ON s.id = k.sender_id WHERE k.${column} = ?`,
    read({ json }) {
      const { key, secretHash, sender }: PresentedRow = JSON.parse(json);
      return { key: KEYS.read(key), secretHash, sender: sender.id === null ? null : PROJECTS.read(sender) };
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
    sql: `INSERT INTO api_keys (id, account_id, sender_id, name, key_prefix, last4, secret_hash, scopes,
            allow_recipients, approval, inbox_ids, created_at, created_by)
          VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    args: [
      key.id,
      key.accountId,
      key.senderId,
      key.name,
      key.keyPrefix,
      key.last4,
      secretHash,
      JSON.stringify(key.scopes),
      key.allowRecipients === null ? null : JSON.stringify(key.allowRecipients),
      Number(key.approval),
      key.inboxIds === null ? null : JSON.stringify(key.inboxIds),
      key.createdAt,
      key.createdBy,
    ],
  };
}

/**
 * Returns at most `take` of the account's keys, newest first, at a place.
 * @param owner its project's keys; without one, all of the account
 * @param which `unrevoked`: those that were not revoked
 */
export function listKeys(
  db: Db,
  { accountId, senderId }: { accountId: string; senderId: string | null },
  which: "all" | "unrevoked",
  place: Place,
  take: number,
): Promise<ApiKey[]> {
  const unrevoked = which === "unrevoked" ? "AND revoked_at IS NULL" : "";
  const where = `account_id = ? AND (? IS NULL OR sender_id = ?) ${unrevoked}`;
  const args = [accountId, senderId, senderId];
  return KEYS.page(db, { where, args, place, ceiling: idCeiling("key"), take });
}

/**
 * Returns a key of the account; null if there is none with that id.
 * @param senderId only a key of that project; null: any of the account
 */
export function getKey(
  db: Db,
  accountId: string,
  senderId: string | null,
  id: string,
): Promise<ApiKey | null> {
  const named = "WHERE account_id = ? AND (? IS NULL OR sender_id = ?) AND id = ?";
  return KEYS.first(db, named, [accountId, senderId, senderId, id]);
}

/** Returns the id of the account's oldest account-wide key that has every scope and is not revoked; null if there is none. */
export async function oldestWideKey(db: Db, accountId: string): Promise<string | null> {
  const row = await db.first<{ id: string }>(
    `SELECT id FROM api_keys
     WHERE account_id = ? AND sender_id IS NULL AND revoked_at IS NULL AND scopes = '[]'
       AND allow_recipients IS NULL AND approval = 0 ORDER BY id LIMIT 1`,
    [accountId],
  );
  return row === null ? null : row.id;
}

/**
 * Revokes a key of the account. A key that is revoked already keeps its time.
 * @param senderId only a key of that project; null: any of the account
 * @returns false if there is no such key
 */
export function revokeKey(
  db: Db,
  accountId: string,
  senderId: string | null,
  id: string,
  now: number,
): Promise<boolean> {
  const sql = `UPDATE api_keys SET revoked_at = COALESCE(revoked_at, ?)
    WHERE account_id = ? AND (? IS NULL OR sender_id = ?) AND id = ?`;
  return changesRow(db, sql, [now, accountId, senderId, senderId, id]);
}

/**
 * Gives a key another name.
 * @param senderId only a key of that project; null: any of the account
 * @returns false if there is no such key
 */
export function renameKey(
  db: Db,
  accountId: string,
  senderId: string | null,
  id: string,
  name: string,
): Promise<boolean> {
  const sql = "UPDATE api_keys SET name = ? WHERE account_id = ? AND (? IS NULL OR sender_id = ?) AND id = ?";
  return changesRow(db, sql, [name, accountId, senderId, senderId, id]);
}

/**
 * The grants that hold: ids of keys that are not revoked, and sessions of members, each with the role and projects of the
 * member.
 */
const grantsOf = (grants: string, now: string): string => `SELECT id AS grant
  FROM api_keys WHERE id IN (SELECT value FROM json_each(${grants})) AND revoked_at IS NULL
  UNION ALL SELECT grant FROM (SELECT s.id || ' ' || m.role || ' ' || m.sender_ids AS grant
    FROM member_sessions s JOIN members m ON m.id = s.member_id
    WHERE s.id IN (SELECT substr(value, 1, 30) FROM json_each(${grants})) AND m.status <> 'disabled'
      AND s.expires_at > ${now})
  WHERE grant IN (SELECT value FROM json_each(${grants}))`;

/** Holds while the key has not been revoked, or the session of a member has not ended. */
export function unrevokedGuard(grant: string): Guard {
  return {
    sql: `EXISTS (${grantsOf("?", "0")})`,
    args: Array(3).fill(JSON.stringify([grant])),
  };
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

/** Returns those of the grants that hold at `now`, milliseconds. */
export async function validGrants(db: Db, grants: readonly string[], now: number): Promise<Set<string>> {
  const rows = await db.all<{ grant: string }>(grantsOf("?1", "?2"), [JSON.stringify(grants), now]);
  return new Set(rows.map(({ grant }) => grant));
}
