import { openBullQueue } from "./bullmq.ts";
import { openMemoryQueue } from "./memory.ts";
import type { Queue } from "./port.ts";
import type { QueueDeps } from "./trouble.ts";

/** Where the queue lives: on a Redis, or in the process where none is named. */
export interface QueuePlace {
  redisUrl: string | null;
  /** Start of every key in Redis. */
  prefix?: string;
}

/** Opens the queue; never fails, an unreachable Redis shows in `check`. */
export function openQueue(deps: QueueDeps, place: QueuePlace): Queue {
  return place.redisUrl === null ? openMemoryQueue(deps) : openBullQueue(deps, place.redisUrl, place.prefix);
}
