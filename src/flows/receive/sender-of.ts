import { addressKey } from "../../core/addresses.ts";
import { authenticatedSender, type SenderFacts, UNAUTHENTICATED } from "../../core/messages/sender.ts";
import type { ArrivalFacts } from "../../store/messages/arrivals.ts";
import type { Db } from "../../store/engine/client.ts";
import { isKnownAddress } from "../../store/threads/known-senders.ts";
import type { Inspection } from "../mime/inspect.ts";

/**
 * Returns what a project knows about the sender of a message that arrives. Only the author that DMARC has proven counts, and only if
 * it is the one that the record shows: envelope, display name and Reply-To are the sender's words.
 */
export async function senderOf(
  db: Db,
  senderId: string,
  { mail: { from }, authentication: { author } }: Inspection,
  { threadId }: Pick<ArrivalFacts, "threadId">,
): Promise<SenderFacts> {
  if (author === null || from === null) return UNAUTHENTICATED;
  const key = addressKey(author);
  if (addressKey(from.email) !== key) return UNAUTHENTICATED;
  return authenticatedSender(await isKnownAddress(db, senderId, key, threadId));
}
