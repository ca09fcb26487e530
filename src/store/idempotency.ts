import { DAY_MS } from "../core/time-units.ts";
import type { Db, Statement } from "./engine/client.ts";

/** How long an answer is kept for its key, in milliseconds. */
export const IDEMPOTENCY_WINDOW_MS = DAY_MS;

/** What a stored answer is known by. */
export interface IdempotencyKey {
  /** A project's or an account's id. */
  scope: string;
  /** Method and path. */
  endpoint: string;
  key: string;
}

/** The answer once given. */
export interface StoredAnswer {
  /** What tells the request again: SHA-256 of its body, hex, or of more than that. */
  bodyHash: string;
  status: number;
  body: string;
  /** Milliseconds. */
  createdAt: number;
}

interface Row {
  body_hash: string;
  status: number;
  body: string;
  created_at: number;
}

/** The answer stored for that key, of whatever age; null where there is none. */
export async function findAnswer(db: Db, at: IdempotencyKey): Promise<StoredAnswer | null> {
  const row = await db.first<Row>(
    `SELECT body_hash, status, body, created_at FROM idempotency WHERE scope = ? AND endpoint = ? AND key = ?`,
    [at.scope, at.endpoint, at.key],
  );
  return row === null
    ? null
    : { bodyHash: row.body_hash, status: row.status, body: row.body, createdAt: row.created_at };
}

/**
 * The statements that store an answer, for the write that gives the request its effect. They take the place of an
 * answer older than the window; a younger one breaks the primary key (`ConstraintError.unique` names
 * `idempotency.scope`), and so undoes that whole write: another process has answered already.
 */
export function insertAnswer(at: IdempotencyKey, answer: StoredAnswer): Statement[] {
  return [
    {
      sql: "DELETE FROM idempotency WHERE scope = ? AND endpoint = ? AND key = ? AND created_at <= ?",
      args: [at.scope, at.endpoint, at.key, answer.createdAt - IDEMPOTENCY_WINDOW_MS],
    },
    {
      sql: `INSERT INTO idempotency (scope, endpoint, key, body_hash, status, body, created_at)
            VALUES (?, ?, ?, ?, ?, ?, ?)`,
      args: [at.scope, at.endpoint, at.key, answer.bodyHash, answer.status, answer.body, answer.createdAt],
    },
  ];
}

/** Deletes at most `limit` answers older than the window; returns how many. */
export async function deleteOldAnswers(db: Db, now: number, limit: number): Promise<number> {
  const [written] = await db.write([
    {
      sql: `DELETE FROM idempotency WHERE (scope, endpoint, key) IN
              (SELECT scope, endpoint, key FROM idempotency WHERE created_at <= ? LIMIT ?)`,
      args: [now - IDEMPOTENCY_WINDOW_MS, limit],
    },
  ]);
  return written?.changes ?? 0;
}
