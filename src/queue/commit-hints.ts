import { atMostEvery } from "../core/time/clock.ts";
import { DEFAULT_PREFIX } from "./port.ts";
import { createLimitedLog, type QueueDeps, reason } from "./limited-log.ts";
import type { RedisLocation } from "./open.ts";
import { type ConnectionState, openProducer } from "./redis.ts";

/** Least time between two hints of this process, milliseconds. Commits in between share the later one. */
const HINT_PAUSE_MS = 5;

/** Tells the processes of a service that one of them has committed events. A hint may be lost. */
export interface CommitHints {
  /** Tells the others soon. */
  tell(): void;
  /** Calls `heard` for each hint of any process. */
  listen(heard: () => void): void;
  close(): void;
}

/** Opens the hints on a channel of Redis; null if there is no Redis. Never fails. */
export function openCommitHints(deps: QueueDeps, { redisUrl, prefix }: RedisLocation): CommitHints | null {
  return redisUrl === null ? null : onRedis(deps, redisUrl, `${prefix ?? DEFAULT_PREFIX}:commits`);
}

function onRedis(deps: QueueDeps, url: string, channel: string): CommitHints {
  const trouble = createLimitedLog(deps);
  const connections: ConnectionState = { ended: false, lostAt: 0 };
  const teller = openProducer(deps.clock, url, connections, trouble);
  const mayTell = atMostEvery(deps.clock, HINT_PAUSE_MS);
  const failed = (error: unknown) => trouble("a commit could not be told", { error: reason(error) });
  let listener: ReturnType<typeof openProducer> | null = null;
  let isDue = false;
  const tell = (): void => {
    isDue = false;
    // While Redis is away, hints are useless soon, so none waits for it.
    if (teller.status === "ready") teller.publish(channel, "").catch(failed);
  };
  return {
    tell() {
      if (isDue) return;
      if (mayTell()) return tell();
      isDue = true;
      deps.clock.after(HINT_PAUSE_MS, tell);
    },
    listen(heard) {
      // A connection that listens can do nothing else.
      const client = openProducer(deps.clock, url, connections, trouble);
      client.on("message", heard);
      client.on("ready", () => void client.subscribe(channel).catch(failed));
      listener = client;
    },
    close() {
      connections.ended = true;
      teller.disconnect();
      listener?.disconnect();
    },
  };
}
