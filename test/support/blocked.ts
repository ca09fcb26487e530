import type { Db } from "../../src/store/engine/client.ts";
import { sendFacts } from "../../src/store/messages/sending.ts";

/**
 * Returns which of the address keys a send of the project leaves out at `now`: suppressed and unsubscribed ones.
 */
export async function leftOut(
  db: Db,
  senderId: string,
  keys: readonly string[],
  now: number,
): Promise<{ suppressed: Set<string>; unsubscribed: Set<string> }> {
  const question = { fromDomain: "none.example", inboxAddress: "", keys, unsubscribeLink: true };
  const { suppressed, unsubscribed } = await sendFacts(db, { id: senderId, accountId: "" }, question, now);
  return { suppressed: new Set(suppressed), unsubscribed: new Set(unsubscribed) };
}
