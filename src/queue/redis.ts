import { Redis } from "ioredis";
import { type Clock, seldom } from "../core/clock.ts";
import { reason, type Trouble } from "./trouble.ts";

/** First wait before Redis is tried again, milliseconds; it doubles up to the longest. */
const RETRY_FIRST_MS = 50;
const RETRY_LONGEST_MS = 1_000;
/** Time between two tries to find the primary where a replica was reached, milliseconds. */
const REPLICA_PAUSE_MS = 1_000;
/** Time Redis has to take a connection, milliseconds. */
const CONNECT_MS = 3_000;
/** Silence after a command that ends a connection, milliseconds: a peer that vanished without a FIN answers nothing. */
const SILENCE_MS = 5_000;
/** The same for workers, whose blocking read is silent for its own time. */
const WORKER_SILENCE_MS = 15_000;

/** What all connections of one queue share. */
export interface Lifeline {
  /** Turned on when the queue closes: from then on a lost connection is not made again. */
  ended: boolean;
  /** When a connection was lost last, milliseconds since the epoch; 0 before any was. */
  lostAt: number;
}

/**
 * Milliseconds until every wait to connect again is over that had begun by now, once the queue has ended. A clock that was
 * put back since does not lengthen it.
 */
export function untilNoRetry({ lostAt }: Lifeline, now: number): number {
  return Math.max(0, Math.min(RETRY_LONGEST_MS, lostAt + RETRY_LONGEST_MS - now));
}

function connecting(clock: Clock, lifeline: Lifeline) {
  const mayLookAgain = seldom(clock, REPLICA_PAUSE_MS);
  return {
    connectTimeout: CONNECT_MS,
    /** @param tries the number of the try that is to come, from 1 on */
    retryStrategy: (tries: number): number | null => {
      if (lifeline.ended) return null;
      lifeline.lostAt = clock.now();
      return Math.min(RETRY_FIRST_MS * 2 ** (tries - 1), RETRY_LONGEST_MS);
    },
    // One that was made a replica keeps its connections, while the name in the URL leads to the new primary.
    reconnectOnError: ({ message }: Error): boolean =>
      !lifeline.ended && message.startsWith("READONLY") && mayLookAgain(),
  };
}

/**
 * The connection that adds jobs. Commands wait for one attempt to connect and then fail:
 * who adds a job may not wait for Redis, and commands kept for later would fill the memory while it is away.
 */
export function openProducer(clock: Clock, url: string, lifeline: Lifeline, trouble: Trouble): Redis {
  const client = new Redis(url, {
    ...connecting(clock, lifeline),
    maxRetriesPerRequest: 0,
    autoResendUnfulfilledCommands: false,
    socketTimeout: SILENCE_MS,
  });
  client.on("error", (error) => trouble("redis trouble", { error: reason(error) }));
  return client;
}

/** Settings of the connections a worker opens: its commands wait for Redis as long as it takes, which BullMQ demands. */
export function workerConnection(clock: Clock, url: string, lifeline: Lifeline) {
  return {
    url,
    ...connecting(clock, lifeline),
    maxRetriesPerRequest: null,
    socketTimeout: WORKER_SILENCE_MS,
  };
}
