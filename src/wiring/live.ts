import { cacheFor } from "../core/time/clock.ts";
import { Streams } from "../flows/live/streams.ts";
import { Tail } from "../flows/live/tail.ts";
import { Waits } from "../flows/live/waits.ts";
import { log } from "../log.ts";
import { type CommitHints, openCommitHints } from "../queue/commit-hints.ts";
import { isAnyWatched } from "../store/events/event-log.ts";
import type { Services } from "./services.ts";

/** Milliseconds for which a process without followers assumes that no project is watched. */
const UNWATCHED_FRESH_MS = 1000;

/** The followers of events in this process. */
export interface Live {
  streams: Streams;
  waits: Waits;
  /** Ends all streams and waits, so that a stop does not wait for them. */
  close(): void;
}

/** Starts following commits: those of this process by the bell, those of others by Redis or by looking. */
export function openLive(services: Services): Live {
  const { config, clock, bell } = services;
  const hints = openCommitHints({ clock, log: log("queue") }, { redisUrl: config.redisUrl });
  const tail = new Tail(services, hints !== null);
  const streams = new Streams({ ...services, tail });
  const waits = new Waits({ ...services, tail });
  const tellOthers = hints === null ? () => undefined : teller(services, hints);
  bell.onCommit = () => {
    tail.wake();
    tellOthers();
  };
  if (config.roles.has("api")) hints?.listen(() => tail.wake());
  return {
    streams,
    waits,
    close() {
      streams.close();
      waits.close();
      tail.close();
      hints?.close();
    },
  };
}

/** Returns the function that tells other processes of a commit, if any project is watched. */
function teller({ clock, db }: Services, hints: CommitHints): () => void {
  const watched = cacheFor(clock, UNWATCHED_FRESH_MS, () => isAnyWatched(db).catch(() => false));
  let isAsked = false;
  return () => {
    if (isAsked) return;
    isAsked = true;
    // After the members of the commit, which are more urgent.
    setImmediate(async () => {
      isAsked = false;
      if (await watched()) hints.tell();
    });
  };
}
