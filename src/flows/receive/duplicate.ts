import type { Clock } from "../../core/clock.ts";
import { arrivalsOf } from "../../store/arrivals.ts";
import type { Db } from "../../store/client.ts";
import { getRaw } from "../../store/messages.ts";
import type { InboxRef } from "../../store/sending.ts";
import type { Arrival } from "./take.ts";
import { withoutTrace } from "./trace.ts";

/**
 * Time within which the same bytes are the same mail: a sender that did not see our 250 brings it again (RFC 1047), the
 * first times within minutes, after an outage of its own hours later. Sent anew by a person, a mail has other bytes.
 */
export const DUPLICATE_WINDOW_MS = 24 * 3_600_000;
/** Mails of one Message-ID that a mail is compared with, newest first. */
export const MAX_COMPARED = 5;

/** The same mail in that inbox, if it has been taken before: same Message-ID, same bytes below our trace fields. */
export async function earlierArrival(
  { db, clock }: { db: Db; clock: Clock },
  inbox: InboxRef,
  rfcMessageId: string | null,
  raw: Uint8Array,
): Promise<Arrival | null> {
  if (rfcMessageId === null) return null;
  const since = clock.now() - DUPLICATE_WINDOW_MS;
  for (const arrival of await arrivalsOf(db, inbox, rfcMessageId, since, MAX_COMPARED)) {
    const kept = await getRaw(db, inbox.senderId, arrival.messageId);
    if (kept !== null && Buffer.compare(withoutTrace(kept), raw) === 0) return arrival;
  }
  return null;
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
