import { AppError } from "../../core/errors.ts";
import type { Db, Statement } from "../../store/engine/client.ts";
import { isBroken } from "../../store/engine/guards.ts";
import { findAnswer, IDEMPOTENCY_WINDOW_MS, insertAnswer } from "../../store/projects/idempotency.ts";

/** The place of submissions among the endpoints of stored answers. */
const ENDPOINT = "SMTP";
/** The key alone decides, because clients renew Date, Message-ID and boundaries when they send again. */
const ANY_BODY = "any";
const TAKEN = 250;

export interface KeyedMessage {
  /** See `holderOf`. */
  owner: string;
  key: string;
  /** Milliseconds. */
  now: number;
}

/**
 * Submits a message once for its key. If it comes again within 24 hours, returns the id of the first one.
 * @param submit sends the message together with the statements that it is given for its id; returns the id
 */
export async function submitOnce(
  db: Db,
  { owner, key, now }: KeyedMessage,
  submit: (record: (id: string) => Statement[]) => Promise<string>,
): Promise<string> {
  const at = { scope: owner, endpoint: ENDPOINT, key };
  const first = async (): Promise<string | null> => {
    const found = await findAnswer(db, at);
    return found === null || found.createdAt <= now - IDEMPOTENCY_WINDOW_MS ? null : found.body;
  };
  const known = await first();
  if (known !== null) return known;
  try {
    return await submit((id) => [
      insertAnswer(at, { bodyHash: ANY_BODY, status: TAKEN, body: id, createdAt: now }),
    ]);
  } catch (error) {
    // A message with this key came in another session at the same time. Ours was undone, or refused for what that one used.
    if (!isBroken(error, "key_answered") && !(error instanceof AppError)) throw error;
    const won = await first();
    if (won === null) throw error;
    return won;
  }
}
