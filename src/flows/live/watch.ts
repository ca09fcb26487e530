import { HOUR_MS, MINUTE_MS } from "../../core/time/units.ts";
import type { Store } from "../../store/engine/client.ts";
import {
  findLogged,
  logHead,
  newestLogged,
  trimLog,
  watchedUntil,
  watchProject,
} from "../../store/events/event-log.ts";
import { pauseWhenDone } from "../sweep/backoff.ts";

/** Time after an event in which a stream may resume there, milliseconds. */
export const RESUME_MS = HOUR_MS;
/** Time between two renewals of a watch, milliseconds, which saves a write per stream. */
export const RENEWAL_MS = 10 * MINUTE_MS;
/** Entries of the log that are removed in one write, which takes some milliseconds. */
export const TRIMMED_PER_WRITE = 2000;
/** Writes of one turn of the chore. With a turn per second it keeps up with any load that the service can take. */
export const TRIMS_PER_TURN = 10;
/** Pause after the log is short enough, milliseconds. */
const TRIM_PAUSE_MS = MINUTE_MS;

/**
 * Makes sure that the project's events are logged from now on, and for as long as a client may resume after it leaves.
 * @returns the newest place in the log: events after it are news
 */
export async function watch({ db, clock }: Store, senderId: string): Promise<number> {
  const now = clock.now();
  const least = now + RESUME_MS + RENEWAL_MS;
  const until = await watchedUntil(db, senderId);
  // If it is far ahead, the clock was ahead when it was set.
  if (until < least || until > least + 2 * RENEWAL_MS) await watchProject(db, senderId, least + RENEWAL_MS);
  return logHead(db);
}

/** Returns the place in the log of the last event that a client has seen; null if it is older than RESUME_MS, or not in the log. */
export async function resumeAfter(
  { db, clock }: Store,
  senderId: string,
  eventId: string,
): Promise<number | null> {
  const found = await findLogged(db, senderId, eventId);
  return found !== null && clock.now() - found.createdAt <= RESUME_MS ? found.seq : null;
}

/** Returns the id of the newest event after which a stream of the project may resume, or null if there is none. */
export function newestEvent({ db, clock }: Store, senderId: string): Promise<string | null> {
  const now = clock.now();
  return newestLogged(db, senderId, now - RESUME_MS, now);
}

/** Makes the chore that ends old watches and removes what no stream can resume from. */
export function trimEventLog({ db, clock }: Store): () => Promise<void> {
  return pauseWhenDone(clock, TRIM_PAUSE_MS, async (now) => {
    for (let write = 0; write < TRIMS_PER_TURN; write++)
      if ((await trimLog(db, now, now - RESUME_MS, TRIMMED_PER_WRITE)) < TRIMMED_PER_WRITE) return true;
    return false;
  });
}
