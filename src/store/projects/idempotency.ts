import { DAY_MS } from "../../core/time/units.ts";
import { plain, table } from "../engine/columns.ts";
import type { Db, Statement } from "../engine/client.ts";
import { rowsStatement, rowsText } from "../sql/rows-text.ts";

/** Time that an answer is kept for its key, milliseconds. */
export const IDEMPOTENCY_WINDOW_MS = DAY_MS;

/** The identity of a stored answer. */
export interface IdempotencyKey {
  /** A project's or an account's id. */
  scope: string;
  /** Method and path. */
  endpoint: string;
  key: string;
}

export interface StoredAnswer {
  /** Identifies the request: SHA-256 of its body, or of more than that, in hex. */
  bodyHash: string;
  status: number;
  body: string;
  /** Milliseconds. */
  createdAt: number;
}

const ANSWERS = table<StoredAnswer>("idempotency", {
  bodyHash: plain("body_hash"),
  status: plain("status"),
  body: plain("body"),
  createdAt: plain("created_at"),
});

/** Returns the answer stored for that key, however old; null if there is none. */
export function findAnswer(db: Db, at: IdempotencyKey): Promise<StoredAnswer | null> {
  return ANSWERS.first(db, "WHERE scope = ? AND endpoint = ? AND key = ?", [at.scope, at.endpoint, at.key]);
}

/** Replaces an answer that has expired. For one that has not, the hash becomes NULL, which the column refuses. */
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
 * Returns the statement that stores an answer, for the write that carries out the request. It replaces an answer older
 * than the window. If a younger one exists, another process has answered already: the write is undone with the guard
 * `key_answered`.
 */
export function insertAnswer(at: IdempotencyKey, answer: StoredAnswer): Statement {
  const { bodyHash, status, body, createdAt } = answer;
  return rowsStatement(INSERT, [at.scope, at.endpoint, at.key, bodyHash, status, body, createdAt]);
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
