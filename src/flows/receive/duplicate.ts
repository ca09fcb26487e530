import type { ArrivalFacts, EarlierArrival } from "../../store/arrivals.ts";
import type { Db } from "../../store/engine/client.ts";
import { projectKey } from "../../store/engine/content-values.ts";
import { messagesOfRaw } from "../../store/contents/message-content.ts";

/**
 * The same mail in that inbox, if it has been taken before: same Message-ID, same bytes below our trace fields. Sent anew
 * by a person, a mail has other bytes.
 * @param digest SHA-256 of its bytes
 */
export async function earlierArrival(
  db: Db,
  { senderId }: { senderId: string },
  { earlier }: ArrivalFacts,
  digest: Uint8Array,
): Promise<EarlierArrival | null> {
  if (earlier.length === 0) return null;
  const ids = earlier.map(({ messageId }) => messageId);
  const same = await messagesOfRaw(db, senderId, ids, projectKey(senderId, digest));
  return earlier.find(({ messageId }) => same.has(messageId)) ?? null;
}
