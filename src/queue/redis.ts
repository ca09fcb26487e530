import type { Redis } from "ioredis";
import { type Clock, atMostEvery } from "../core/time/clock.ts";
import { reason, type LimitedLog } from "./limited-log.ts";

/** Loads the library at the first connection, because most services have no Redis, and it takes megabytes. */
export function redisLibrary(): typeof import("ioredis") {
  return require("ioredis");
}

/** First wait before reconnecting to Redis, milliseconds. It doubles up to the longest. */
const RETRY_FIRST_MS = 50;
const RETRY_LONGEST_MS = 1_000;
/** Time between two tries to find the primary if the connection leads to a replica, milliseconds. */
const REPLICA_PAUSE_MS = 1_000;
/** Time to connect to Redis, milliseconds. */
const CONNECT_MS = 3_000;
/** Silence after a command that ends a connection, milliseconds. A peer that vanished without a FIN never answers. */
const SILENCE_MS = 5_000;
/** Limit of the silence for workers. It is longer, because a blocking read is silent for its own time. */
const WORKER_SILENCE_MS = 15_000;

/** State that all connections of one queue share. */
export interface ConnectionState {
  /** Set when the queue closes. After that, lost connections are not reopened. */
  ended: boolean;
  /** When a connection was last lost, in `Clock.elapsed`; -Infinity: never. */
  lostAt: number;
}

/** Returns the milliseconds until every reconnection wait that has begun is over, if the queue has ended. */
export function untilNoRetry({ lostAt }: ConnectionState, now: number): number {
  return Math.max(0, lostAt + RETRY_LONGEST_MS - now);
}

function connecting(clock: Clock, lifeline: ConnectionState) {
  const mayLookAgain = atMostEvery(clock, REPLICA_PAUSE_MS);
  return {
    connectTimeout: CONNECT_MS,
    /** @param tries number of the next try, from 1 */
    retryStrategy: (tries: number): number | null => {
      if (lifeline.ended) return null;
      lifeline.lostAt = clock.elapsed();
      return Math.min(RETRY_FIRST_MS * 2 ** (tries - 1), RETRY_LONGEST_MS);
    },
    // If a primary becomes a replica, its connections stay open, although the name in the URL leads to the new
    // primary.
    reconnectOnError: ({ message }: Error): boolean =>
      !lifeline.ended && message.startsWith("READONLY") && mayLookAgain(),
  };
}

/**
 * Opens the connection that adds jobs. Commands wait for one attempt to connect and then fail, because the caller
 * must not wait for Redis. Queued commands would fill the memory while it is away.
 */
export function openProducer(
  clock: Clock,
  url: string,
  lifeline: ConnectionState,
  trouble: LimitedLog,
): Redis {
  const client = new (redisLibrary().Redis)(url, {
    ...connecting(clock, lifeline),
    maxRetriesPerRequest: 0,
    autoResendUnfulfilledCommands: false,
    socketTimeout: SILENCE_MS,
  });
  client.on("error", (error) => trouble("redis trouble", { error: reason(error) }));
  return client;
}

/** Returns the connection settings of a worker. Its commands wait for Redis without limit, as BullMQ requires. */
export function workerConnection(clock: Clock, url: string, lifeline: ConnectionState) {
  return {
    url,
    ...connecting(clock, lifeline),
    maxRetriesPerRequest: null,
    socketTimeout: WORKER_SILENCE_MS,
  };
}
