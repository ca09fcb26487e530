import { openMemoryQueue } from "./memory.ts";
import type { Queue } from "./port.ts";
import type { QueueDeps } from "./limited-log.ts";

/** A Redis, or this process if `redisUrl` is null. */
export interface RedisLocation {
  redisUrl: string | null;
  /** Start of every key in Redis. */
  prefix?: string;
}

/** The Redis or process that keeps the queue. */
export interface QueueLocation extends RedisLocation {
  /** True if this process runs the jobs. */
  works: boolean;
}

/** Loads the queue on Redis when it is used, because most services have none, and its libraries take megabytes. */
function redisQueue(): typeof import("./bullmq.ts") {
  return require("./bullmq.ts");
}

/** Opens the queue. Never fails. If Redis is unreachable, `check` reports it. */
export function openQueue(deps: QueueDeps, { redisUrl, works, prefix }: QueueLocation): Queue {
  if (redisUrl !== null) return redisQueue().openBullQueue(deps, redisUrl, prefix);
  return works ? openMemoryQueue(deps) : openDiscardingQueue();
}

/**
 * Returns a queue that drops all jobs, because no worker of this process or another one reads it. Workers find the
 * rows in the database.
 */
function openDiscardingQueue(): Queue {
  return {
    add: () => Promise.resolve(),
    work: (name) => {
      throw new Error(`this process must not work on the queue ${name}`);
    },
    check: () => Promise.resolve(),
    close: () => Promise.resolve(),
  };
}
