import { DAY_MS } from "../core/time-units.ts";
import { ConstraintError, type Db, type Statement } from "./engine/client.ts";
import { rowsStatement, rowsText } from "./engine/rows-text.ts";

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

/** An older answer makes place. Of one that stands the hash becomes NULL, which the column refuses. */
const INSERT = rowsText(
  "idempotency",
  "scope, endpoint, key, body_hash, status, body, created_at",
  "(?1, ?2, ?3, ?4, ?5, ?6, ?7)",
  {
    after: ` ON CONFLICT (scope, endpoint, key) DO UPDATE SET
      body_hash = CASE WHEN idempotency.created_at <= excluded.created_at - ${IDEMPOTENCY_WINDOW_MS} THEN excluded.body_hash END,
      status = excluded.status, body = excluded.body, created_at = excluded.created_at`,
  },
);

/**
 * The statement that stores an answer, for the write that gives the request its effect. It takes the place of an answer
 * older than the window; a younger one undoes that whole write, and `isAnswered` tells why: another process has answered already.
 */
export function insertAnswer(at: IdempotencyKey, answer: StoredAnswer): Statement {
  const { bodyHash, status, body, createdAt } = answer;
  return rowsStatement(INSERT, [at.scope, at.endpoint, at.key, bodyHash, status, body, createdAt]);
}

/** Whether a write failed because its `insertAnswer` found the key answered. */
export function isAnswered(error: unknown): boolean {
  return error instanceof ConstraintError && error.notNull === "idempotency.body_hash";
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
