import { type Db, firstReturned, type Statement } from "../engine/client.ts";

/** A token that opens one session. Only its hash is stored. */
export interface StartToken {
  /** SHA-256 in hex. */
  tokenHash: string;
  /** The key that the session gets. */
  keyId: string;
  /** Milliseconds. */
  expiresAt: number;
}

/** Returns the statements that store a token and delete those that are too old. `now` is in milliseconds. */
export function insertStartToken({ tokenHash, keyId, expiresAt }: StartToken, now: number): Statement[] {
  return [
    { sql: "DELETE FROM start_tokens WHERE expires_at <= ?", args: [now] },
    {
      sql: "INSERT INTO start_tokens (token_hash, key_id, expires_at) VALUES (?, ?, ?)",
      args: [tokenHash, keyId, expiresAt],
    },
  ];
}

/** Deletes the token and returns the id of its key. Returns null if there is none, or if it is too old. */
export async function takeStartToken(db: Db, tokenHash: string, now: number): Promise<string | null> {
  const [taken] = await db.write([
    {
      sql: "DELETE FROM start_tokens WHERE token_hash = ? AND expires_at > ? RETURNING key_id",
      args: [tokenHash, now],
    },
  ]);
  return firstReturned<{ key_id: string }>(taken)?.key_id ?? null;
}
