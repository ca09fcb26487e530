import type { ArrivalFacts, EarlierArrival } from "../../store/arrivals.ts";
import type { Db } from "../../store/engine/client.ts";
import { projectKey } from "../../store/contents/content-bytes.ts";
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

/** Does the jobs of one key one after another. */
export type OneByOne = <Result>(key: string, job: () => Promise<Result>) => Promise<Result>;

/**
 * For looking and writing without another in between: a sender that has waited too long for our answer may bring the
 * mail again while we still have it in hand. It holds within this process.
 */
export function oneByOne(): OneByOne {
  const last = new Map<string, Promise<unknown>>();
  return async (key, job) => {
    const before = last.get(key) ?? Promise.resolve();
    const own = before.then(job, job);
    last.set(key, own);
    try {
      return await own;
    } finally {
      if (last.get(key) === own) last.delete(key);
    }
  };
}
